//! The file of a snapshot: it gets its name when it is complete.
//!
//! Until then it has no name at all, so that nothing is left if the process is killed. Where the
//! file system does not have such files, it has a temporary name.

use std::ffi::{CString, OsString};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use heaptap_heap::{HEADER_BYTES, Sink, is_snapshot_header};

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

/// A new file in the directory of its final name. Dropped, it is removed.
pub(super) struct TemporaryFile {
    pub(super) file: File,
    /// `None` if it has no name.
    path: Option<PathBuf>,
    final_path: PathBuf,
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
        let nameless = final_path.parent().and_then(create_nameless);
        let is_nameless = nameless.is_some();
        let file = nameless.map_or_else(|| create_named(&path), Ok).map_err(failed)?;
        let path = (!is_nameless).then_some(path);
        Ok(TemporaryFile { file, path, final_path: final_path.to_path_buf() })
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
        if self.path.is_none() {
            match link(&self.file, &self.final_path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                result => return result.map(|()| bytes),
            }
            // Only renaming replaces a file.
            let path = temporary_name(&self.final_path).ok_or(io::ErrorKind::InvalidInput)?;
            link(&self.file, &path)?;
            self.path = Some(path);
        }
        if let Some(path) = &self.path {
            std::fs::rename(path, &self.final_path)?;
            self.path = None;
        }
        Ok(bytes)
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// The file is readable by its owner only.
const MODE: u32 = 0o600;

fn create_named(path: &Path) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(MODE)
        .custom_flags(libc::O_NOFOLLOW)
        .open(path)
}

/// A file without a name (`O_TMPFILE`, open(2)). `None` if the file system has none, or the file
/// could not be named afterwards.
fn create_nameless(directory: &Path) -> Option<File> {
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).mode(MODE).custom_flags(libc::O_TMPFILE);
    let file = options.open(directory).ok()?;
    descriptor_name(&file).symlink_metadata().is_ok().then_some(file)
}

/// The name under which the kernel shows an open file: there is one only if /proc is mounted.
fn descriptor_name(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

/// Gives a file without a name one. Fails if there is such a file.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let from = CString::new(descriptor_name(file).as_os_str().as_bytes())?;
    let to = CString::new(path.as_os_str().as_bytes())?;
    let here = libc::AT_FDCWD;
    // SAFETY: `from` and `to` are C strings that live until the call returns (linkat(2)).
    let failed =
        unsafe { libc::linkat(here, from.as_ptr(), here, to.as_ptr(), libc::AT_SYMLINK_FOLLOW) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether there is no such file, an empty one, or a snapshot: not just the first bytes of one.
fn may_replace(path: &Path) -> io::Result<bool> {
    let found = match std::fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(true),
        Err(error) => return Err(error),
    };
    if !found.is_file() || found.len() == 0 {
        return Ok(found.is_file());
    }
    let mut header = [0; HEADER_BYTES];
    match File::open(path)?.read_exact(&mut header) {
        Ok(()) => Ok(is_snapshot_header(&header)),
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
    use heaptap_heap::{Encoder, MAGIC, Workspace};

    /// The bytes of a snapshot without blocks.
    fn snapshot() -> Vec<u8> {
        let directory = tempfile::tempdir().unwrap();
        let file = create_with_name(&directory.path().join("a.heap"));
        let mut workspace = Box::new(Workspace::new());
        Encoder::new(file.sink(), &mut workspace, 1).finish().unwrap();
        std::fs::read(file.path.as_ref().unwrap()).unwrap()
    }

    fn names(directory: &Path) -> Vec<OsString> {
        let entries = std::fs::read_dir(directory).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    }

    /// As `create` where the file system has no files without names.
    fn create_with_name(path: &Path) -> TemporaryFile {
        let name = temporary_name(path).unwrap();
        let file = create_named(&name).unwrap();
        TemporaryFile { file, path: Some(name), final_path: path.to_path_buf() }
    }

    #[test]
    fn a_file_that_is_not_complete_has_no_name() {
        let directory = tempfile::tempdir().unwrap();
        if create_nameless(directory.path()).is_none() {
            return;
        }
        let path = directory.path().join("a.heap");
        let file = TemporaryFile::create(&path).unwrap();
        file.sink().write_all(b"0123456789").unwrap();
        assert!(names(directory.path()).is_empty(), "{:?}", names(directory.path()));
        file.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"0123456789");
        // The file that is replaced is there until the other one is complete.
        std::fs::write(&path, snapshot()).unwrap();
        let file = TemporaryFile::create(&path).unwrap();
        file.sink().write_all(b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), snapshot());
        assert_eq!(file.keep().unwrap(), 3);
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a.heap"]);
    }

    #[test]
    fn a_file_has_its_name_only_when_it_is_complete() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.heap");
        drop(create_with_name(&path));
        assert!(names(directory.path()).is_empty(), "nothing is left behind");
        let file = create_with_name(&path);
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
        for like_one in [&MAGIC[..], &[&MAGIC[..], b"and a long letter"].concat()] {
            std::fs::write(&path, like_one).unwrap();
            assert!(matches!(create(), Err(SnapshotError::Taken(_))), "only its magic is right");
        }
        std::fs::write(&path, snapshot()).unwrap();
        assert!(create().is_ok());
        std::fs::write(&path, &snapshot()[..HEADER_BYTES]).unwrap();
        assert!(create().is_ok(), "one that is cut short");
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/null", &path).unwrap();
        assert!(matches!(create(), Err(SnapshotError::Taken(_))), "not through a link");
        assert!(matches!(
            TemporaryFile::create(Path::new("/")),
            Err(SnapshotError::Taken(_) | SnapshotError::File(..))
        ));
    }
}
