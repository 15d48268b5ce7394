//! A file of somebody else's to which lines are appended, a few bytes in one write.
//!
//! It stays open, since the process may leave it behind by `chroot`, or use up its
//! descriptors. A host may close descriptors that it does not own: then the file is opened
//! again, by its name.
#![allow(unsafe_code, reason = "writes to a raw descriptor, which the host may have closed")]

use super::descriptor::OwnDescriptor;
use super::write_signals::without_write_signals;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file that exists, open for appending.
pub(crate) struct AppendFile {
    path: CString,
    file: OwnDescriptor<File>,
}

impl AppendFile {
    pub(crate) fn open(path: &Path) -> io::Result<AppendFile> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let file = OpenOptions::new().append(true).open(path)?;
        Ok(AppendFile { path: name, file: OwnDescriptor::new(file)? })
    }

    /// Whether the lines were written. Async-signal-safe.
    pub(crate) fn append(&self, lines: &[u8]) -> bool {
        if self.file.is_ours() {
            return write(self.file.number(), lines);
        }
        let flags = libc::O_WRONLY | libc::O_APPEND | libc::O_CLOEXEC;
        // SAFETY: the path is a C string that this value keeps.
        let descriptor = unsafe { libc::open(self.path.as_ptr(), flags) };
        if descriptor < 0 {
            return false;
        }
        let written = write(descriptor, lines);
        // SAFETY: `open` has just returned this descriptor.
        unsafe { libc::close(descriptor) };
        written
    }
}

/// Whether all of it was written at once.
fn write(descriptor: RawFd, lines: &[u8]) -> bool {
    // SAFETY: write(2) reads `lines.len()` bytes from the slice.
    let write = || unsafe { libc::write(descriptor, lines.as_ptr().cast(), lines.len()) };
    usize::try_from(without_write_signals(write)) == Ok(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_even_if_the_descriptor_was_closed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("report");
        assert!(AppendFile::open(&path).is_err(), "it is not made");
        std::fs::write(&path, "a\n").unwrap();
        let file = AppendFile::open(&path).unwrap();
        assert!(file.append(b"b\n"));
        // SAFETY: a descriptor that this test has opened.
        unsafe { libc::close(file.file.number()) };
        assert!(file.append(b"c\n"));
        assert_eq!(std::fs::read(&path).unwrap(), b"a\nb\nc\n");
        std::fs::remove_file(&path).unwrap();
        assert!(!file.append(b"d\n"));
    }
}
