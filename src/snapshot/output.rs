//! The file of a snapshot: it has a temporary name until it is complete.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use heaptap_heap::{MAGIC, Sink};

use super::order::SnapshotError;
use crate::sys::errno;

/// Writes to a descriptor by system calls alone.
#[derive(Clone, Copy)]
pub(crate) struct DescriptorSink {
    /// Open for writing as long as this value is used.
    descriptor: i32,
}

impl Sink for DescriptorSink {
    fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), i32> {
        while !bytes.is_empty() {
            // SAFETY: the kernel reads `bytes.len()` bytes.
            let written =
                unsafe { libc::write(self.descriptor, bytes.as_ptr().cast(), bytes.len()) };
            match usize::try_from(written) {
                Ok(0) => return Err(libc::ENOSPC),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(_) if errno::get() == libc::EINTR => {}
                Err(_) => return Err(errno::get()),
            }
        }
        Ok(())
    }
}

/// A new file beside its final name. Dropped, it is removed.
pub(super) struct TemporaryFile {
    pub(super) file: File,
    path: PathBuf,
    final_path: PathBuf,
    is_kept: bool,
}

impl TemporaryFile {
    /// Refuses a final name that belongs to something else than a snapshot.
    pub(super) fn create(final_path: &Path) -> Result<TemporaryFile, SnapshotError> {
        let failed = |error| SnapshotError::File(final_path.to_path_buf(), error);
        if !may_replace(final_path).map_err(failed)? {
            return Err(SnapshotError::Taken(final_path.to_path_buf()));
        }
        let path = temporary_name(final_path).ok_or_else(|| {
            failed(io::Error::new(io::ErrorKind::InvalidInput, "it is not the name of a file"))
        })?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed)?;
        Ok(TemporaryFile { file, path, final_path: final_path.to_path_buf(), is_kept: false })
    }

    pub(super) fn sink(&self) -> DescriptorSink {
        DescriptorSink { descriptor: self.file.as_raw_fd() }
    }

    pub(super) fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Gives the file its final name. Returns its size.
    pub(super) fn keep(mut self) -> io::Result<u64> {
        let bytes = self.file.metadata()?.len();
        std::fs::rename(&self.path, &self.final_path)?;
        self.is_kept = true;
        Ok(bytes)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if !self.is_kept {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether there is no such file, an empty one, or a snapshot.
fn may_replace(path: &Path) -> io::Result<bool> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if !found.is_file() || found.len() == 0 {
        return Ok(found.is_file());
    }
    let mut magic = [0; MAGIC.len()];
    match File::open(path)?.read_exact(&mut magic) {
        Ok(()) => Ok(magic == MAGIC),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// In the same directory, so that renaming is one step. `None` for a path without a file
/// name.
fn temporary_name(path: &Path) -> Option<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    let mut name = OsString::from(".");
    name.push(path.file_name()?);
    name.push(format!(".{}-{number}.partial", std::process::id()));
    Some(path.with_file_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.heap");
        drop(TemporaryFile::create(&path).unwrap());
        assert!(names(directory.path()).is_empty(), "nothing is left behind");
        let file = TemporaryFile::create(&path).unwrap();
        file.sink().write_all(b"0123456789").unwrap();
        assert!(!path.exists());
        assert_eq!(file.keep().unwrap(), 10);
        assert_eq!(names(directory.path()), ["a.heap"]);
        let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn only_snapshots_and_empty_files_are_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.heap");
        let create = || TemporaryFile::create(&path).map(drop);
        std::fs::write(&path, b"a letter").unwrap();
        assert!(matches!(create(), Err(SnapshotError::Taken(_))));
        std::fs::write(&path, b"ab").unwrap();
        assert!(matches!(create(), Err(SnapshotError::Taken(_))));
        assert_eq!(std::fs::read(&path).unwrap(), b"ab");
        std::fs::write(&path, b"").unwrap();
        assert!(create().is_ok());
        std::fs::write(&path, [&MAGIC[..], b"rest"].concat()).unwrap();
        assert!(create().is_ok());
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(matches!(create(), Err(SnapshotError::Taken(_))), "not through a link");
        assert!(matches!(
            TemporaryFile::create(Path::new("/")),
            Err(SnapshotError::Taken(_) | SnapshotError::File(..))
        ));
    }
}
