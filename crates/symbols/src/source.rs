//! The bytes of a module, and the limit on those kept in memory.
//!
//! A source is opened, read section by section, and closed again. No file descriptor
//! stays open between lookups, because a host may close descriptors it does not know
//! (daemons do) and open its own under the same number. Files are read, never mapped:
//! accessing a mapped file that was truncated kills the host with SIGBUS.
//!
//! The memory of a process, also of this one, is read through `/proc/PID/mem`, so that
//! an address that is no longer mapped is an error and not a crash.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that can be read at any offset.
pub(crate) trait ReadAt {
    /// The number of bytes.
    fn size(&self) -> u64;
    /// Fills `into` from `offset`; false if not all of it can be read.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool;
    /// The identity and version of the file; `None` if it is not a file.
    fn stamp(&self) -> Option<Stamp> {
        None
    }
}

/// The identity of a file, and its version: two files with equal stamps have the same
/// bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// The time of its last change, in seconds and nanoseconds.
    written: (i64, i64),
}

impl ReadAt for Arc<[u8]> {
    fn size(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        let found = usize::try_from(offset).ok().and_then(|start| {
            let end = start.checked_add(into.len())?;
            self.get(start..end)
        });
        found.map(|bytes| into.copy_from_slice(bytes)).is_some()
    }
}

/// `size` bytes of a file, from `start` on.
struct Window {
    file: File,
    start: u64,
    size: u64,
    /// A whole regular file, and no memory of a process.
    is_whole: bool,
}

impl ReadAt for Window {
    fn size(&self) -> u64 {
        self.size
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool {
        let end = offset.checked_add(into.len() as u64);
        let start = self.start.checked_add(offset);
        match (start, end) {
            (Some(start), Some(end)) if end <= self.size => {
                self.file.read_exact_at(into, start).is_ok()
            }
            _ => false,
        }
    }

    fn stamp(&self) -> Option<Stamp> {
        let metadata = self.is_whole.then(|| self.file.metadata())?.ok()?;
        Some(Stamp {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            written: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}

/// A process whose modules are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// The calling process; after a fork, the child.
    This,
    /// The process with this id.
    Id(u32),
}

impl Process {
    /// The file of that name in the process's directory of `/proc`.
    pub(crate) fn path(self, name: &str) -> PathBuf {
        let directory = match self {
            Process::This => String::from("self"),
            Process::Id(id) => id.to_string(),
        };
        Path::new("/proc").join(directory).join(name)
    }
}

/// Where a source is opened from, as often as needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A regular file.
    File(PathBuf),
    /// A range of a process's memory.
    Memory {
        /// The process.
        process: Process,
        /// The first address.
        start: u64,
        /// The number of bytes.
        size: u64,
    },
    /// Bytes in memory.
    Bytes(Arc<[u8]>),
}

impl Origin {
    /// Opens it; `None` if there is nothing to read.
    pub(crate) fn open(&self) -> Option<Box<dyn ReadAt>> {
        match self {
            Origin::File(path) => {
                // Checked before it is opened: opening a FIFO would block.
                let known = std::fs::metadata(path).ok()?;
                if !known.is_file() {
                    return None;
                }
                let file = File::open(path).ok()?;
                Some(Box::new(Window { file, start: 0, size: known.len(), is_whole: true }))
            }
            Origin::Memory { process, start, size } => {
                let file = File::open(process.path("mem")).ok()?;
                Some(Box::new(Window { file, start: *start, size: *size, is_whole: false }))
            }
            Origin::Bytes(bytes) => Some(Box::new(Arc::clone(bytes))),
        }
    }
}

/// The number of bytes of files that may still be kept in memory.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Budget {
        Budget { left: bytes }
    }

    /// Takes `bytes`; takes nothing and returns false if there are fewer.
    pub(crate) fn spend(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Returns `bytes` that were taken.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
    }

    /// The number of bytes left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }
}

/// Reads a range of the source. The range is checked before memory is allocated, so
/// that a forged size costs nothing.
pub(crate) fn read_range(source: &dyn ReadAt, offset: u64, size: u64) -> Option<Arc<[u8]>> {
    if offset.checked_add(size)? > source.size() {
        return None;
    }
    // Zeros straight into the shared slice: converting a Vec would copy it.
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, usize::try_from(size).ok()?).collect();
    let read = Arc::get_mut(&mut bytes).is_some_and(|into| source.read_at(offset, into));
    read.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_beyond_the_source_is_refused_before_memory_is_allocated() {
        let bytes: Arc<[u8]> = Arc::from(&b"0123456789"[..]);
        assert_eq!(read_range(&bytes, 2, 3).as_deref(), Some(&b"234"[..]));
        assert_eq!(read_range(&bytes, 10, 0).as_deref(), Some(&b""[..]));
        assert!(read_range(&bytes, 8, 3).is_none());
        assert!(read_range(&bytes, u64::MAX, 2).is_none());
        assert!(read_range(&bytes, 0, u64::MAX).is_none());
    }

    #[test]
    fn own_memory_is_read_and_unmapped_memory_is_an_error() {
        let text = *b"some bytes of this process";
        let start = text.as_ptr() as u64;
        let source = Origin::Memory { process: Process::This, start, size: text.len() as u64 }
            .open()
            .unwrap();
        assert_eq!(read_range(&*source, 5, 5).as_deref(), Some(&b"bytes"[..]));
        assert!(read_range(&*source, 20, 20).is_none());
        let nothing = Origin::Memory { process: Process::This, start: 8, size: 64 }.open().unwrap();
        assert!(read_range(&*nothing, 0, 8).is_none());
    }

    #[test]
    fn only_regular_files_are_opened() {
        assert!(Origin::File(PathBuf::from("/dev/null")).open().is_none());
        assert!(Origin::File(PathBuf::from("/")).open().is_none());
        assert!(Origin::File(PathBuf::from("/proc/self/no-such-file")).open().is_none());
    }

    #[test]
    fn a_budget_is_not_overdrawn() {
        let mut budget = Budget::new(10);
        assert!(budget.spend(10));
        assert!(!budget.spend(1));
        budget.give_back(4);
        assert!(!budget.spend(5));
        assert!(budget.spend(4));
        assert_eq!(budget.left(), 0);
    }
}
