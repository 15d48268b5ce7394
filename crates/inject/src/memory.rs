//! The program's memory, read and written through `/proc/PID/mem`.
//!
//! The file belongs to the address space that the process had when it was opened: after an
//! `execve`, and when the process is gone, nothing can be read or written. So what was found
//! out about a program is never applied to another.
//!
//! What is read is untrusted. Whatever is read, is read in a size that the reader has chosen.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::stopped::Stopped;

/// The address space of a process.
pub(crate) struct Memory {
    file: File,
}

/// A range of the program's memory that may be written, because it was proved what it is: by
/// `room`, dead bytes at the end of a page; by `runtime`, a variable of OCaml's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Writable {
    pub(crate) start: u64,
    pub(crate) size: u64,
}

impl Memory {
    /// Opens the memory of a process. Needs the right to trace it.
    pub(crate) fn open(pid: libc::pid_t) -> io::Result<Memory> {
        let file = File::options().read(true).write(true).open(format!("/proc/{pid}/mem"))?;
        Ok(Memory { file })
    }

    #[cfg(test)]
    pub(crate) fn of_file(file: File) -> Memory {
        Memory { file }
    }

    /// Fills the buffer; `None` if something of it is not there.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> Option<()> {
        self.file.read_exact_at(buffer, address).ok()
    }

    /// Reads as much as is there; less than the buffer only at the end of a mapping.
    pub(crate) fn read_some(&self, address: u64, buffer: &mut [u8]) -> usize {
        self.file.read_at(buffer, address).unwrap_or(0)
    }

    /// Bytes of a size that the caller knows.
    pub(crate) fn array<const N: usize>(&self, address: u64) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.read(address, &mut bytes)?;
        Some(bytes)
    }

    /// A word.
    pub(crate) fn word(&self, address: u64) -> Option<u64> {
        self.array(address).map(u64::from_le_bytes)
    }

    /// An `int`.
    pub(crate) fn int(&self, address: u64) -> Option<u32> {
        self.array(address).map(u32::from_le_bytes)
    }

    /// The bytes of a range, which is no larger than a page or two.
    pub(crate) fn bytes(&self, range: Writable) -> Option<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(range.size).ok()?];
        self.read(range.start, &mut bytes)?;
        Some(bytes)
    }

    /// A string that ends within this many bytes, or is cut there.
    pub(crate) fn string(&self, address: u64, limit: usize) -> Vec<u8> {
        let mut bytes = vec![0; limit];
        let size = self.read_some(address, &mut bytes);
        bytes.truncate(size);
        if let Some(end) = bytes.iter().position(|&byte| byte == 0) {
            bytes.truncate(end);
        }
        bytes
    }

    /// Writes to the beginning of a range while all threads stand still.
    pub(crate) fn write(&self, _: &Stopped, range: Writable, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() as u64 > range.size {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        self.file.write_all_at(bytes, range.start)
    }

    /// Writes a word, which no reader sees half.
    pub(crate) fn write_word(&self, at: &Stopped, range: Writable, word: u64) -> io::Result<()> {
        self.write(at, range, &word.to_le_bytes())
    }
}
