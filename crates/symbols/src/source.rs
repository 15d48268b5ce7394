//! Where the bytes of a module come from.
//!
//! A source is opened, read section by section, and closed again: no file
//! descriptor outlives a question, because a host may close descriptors it does
//! not know (daemons do) and open its own under the same number. Files are read,
//! never mapped: a map of a file that is truncated kills the host with SIGBUS.
//!
//! A process's memory, this one's too, is read through `/proc/PID/mem`, so that an
//! address that is no longer mapped is an error and not a crash.

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes that can be read at any offset.
pub(crate) trait ReadAt {
    /// How many bytes there are.
    fn size(&self) -> u64;
    /// Fills `into` from `offset`; false if that is not possible in full.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> bool;
    /// What tells the file it is from others, and from itself changed; none if it
    /// is no file.
    fn stamp(&self) -> Option<Stamp> {
        None
    }
}

/// See [`ReadAt::stamp`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    /// When it was last written: seconds and nanoseconds.
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

/// `size` bytes from `start` on of a file.
struct Window {
    file: File,
    start: u64,
    size: u64,
    /// All of a file that stays.
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

/// A process whose modules are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Process {
    /// This one; after a fork, the child.
    This,
    /// The one with this id.
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

/// What a source is opened from, as often as needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A regular file.
    File(PathBuf),
    /// A range of a process's memory.
    Memory {
        /// Whose.
        process: Process,
        /// The first address.
        start: u64,
        /// How many bytes.
        size: u64,
    },
    /// Bytes already at hand.
    Bytes(Arc<[u8]>),
}

impl Origin {
    /// Opens it, or None if there is nothing to read.
    pub(crate) fn open(&self) -> Option<Box<dyn ReadAt>> {
        match self {
            Origin::File(path) => {
                // Asked before it is opened: opening a FIFO would block.
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

/// How many bytes of files may still be kept in memory.
#[derive(Debug)]
pub struct Budget {
    left: u64,
}

impl Budget {
    /// A budget of `bytes`.
    pub fn new(bytes: u64) -> Budget {
        Budget { left: bytes }
    }

    /// Takes `bytes`; false, and nothing is taken, when they are not there.
    pub(crate) fn spend(&mut self, bytes: u64) -> bool {
        match self.left.checked_sub(bytes) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    /// Gives back what was taken.
    pub(crate) fn give_back(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
    }

    /// What is left.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }
}

/// Reads a range that lies within the source. The size is compared with the
/// source's before memory is asked for, so a false header costs nothing.
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
    fn a_range_beyond_the_source_is_refused_before_memory_is_asked_for() {
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
    fn what_is_no_regular_file_is_not_opened() {
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
