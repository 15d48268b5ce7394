//! Writes packets such that the file always holds whole packets only.
//!
//! Each call of [`write`](io::Write::write) takes one packet and writes all of it,
//! with one `write(2)` unless the system accepts less. If that fails, a regular file
//! is truncated to its last whole packet, and the error is returned.
//!
//! The host may close descriptors that it does not own, and may then get the same
//! number for one of its own files. So before each packet the descriptor's file is
//! compared with the one that was opened. If it is another file, the trace is opened
//! again by its name, provided that it is unchanged. A file of the host is never
//! written to or closed.
//!
//! Somebody may also truncate the file while it is written, as `logrotate` does with
//! `copytruncate`. Written on at the old offset, it would begin with a hole. So the size
//! is compared before each packet, and packets of a truncated file are dropped until its
//! owner begins it again ([`Output::restart`]): what they refer to is gone.
//!
//! Runs on a thread that blocks SIGPIPE and SIGXFSZ: the writer thread (see
//! [`thread`](super::thread)), or inside
//! [`without_write_signals`](super::write_signals::without_write_signals). Elsewhere these
//! signals would kill the host.
#![allow(unsafe_code, reason = "writes to a raw descriptor, which the host may have closed")]

mod replacement;

use super::descriptor::{FileIdentity, lock, move_to_high_number, show_writer};
use core::time::Duration;
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Seek as _, SeekFrom};
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use replacement::Replacement;

/// How long a pipe's reader may go without reading a byte.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many bytes tell whether a file still begins with its first packet: one that was
/// truncated just before a packet was written begins with zeros.
const HEAD: usize = 16;

/// An open trace file, pipe or device.
#[derive(Debug)]
pub(crate) struct Output {
    /// Owned only while it refers to the file with `identity`.
    descriptor: RawFd,
    identity: FileIdentity,
    /// Absolute; for a regular file without symbolic links.
    path: PathBuf,
    regular: bool,
    /// Bytes of whole packets.
    written: u64,
    /// The first bytes of the first packet.
    head: [u8; HEAD],
    /// The file has fewer bytes than were written to it.
    truncated: bool,
    /// Part of a packet was written and could not be removed.
    broken: bool,
    /// [`PATIENCE`], except in tests.
    patience: Duration,
}

impl Output {
    /// `file` is empty and open for writing, and was opened as `path`.
    pub(super) fn new(file: File, metadata: &Metadata, path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
        let (regular, descriptor) = (metadata.is_file(), move_to_high_number(file).into_raw_fd());
        if regular {
            show_writer(descriptor);
        }
        Ok(Self {
            descriptor,
            identity: FileIdentity::of(metadata),
            path,
            regular,
            written: 0,
            head: [0; HEAD],
            truncated: false,
            broken: false,
            patience: PATIENCE,
        })
    }

    /// The path of the file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file, and not a pipe or a device.
    pub(crate) fn is_regular(&self) -> bool {
        self.regular
    }

    /// Bytes of whole packets so far.
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    /// Whether the descriptor still refers to the file that was opened.
    fn owns_descriptor(&self) -> bool {
        self.size().is_some()
    }

    /// The size of the file; `None` if the descriptor is not that of the file any more.
    fn size(&self) -> Option<u64> {
        let (identity, size) = FileIdentity::with_size(self.descriptor)?;
        (identity == self.identity).then_some(size)
    }

    /// Whether somebody has truncated the file since it began.
    pub(crate) fn was_truncated(&mut self) -> bool {
        if self.regular && !self.truncated && self.written > 0 {
            let mut head = [0; HEAD];
            let is_other = self.read_at(&mut head, 0).is_ok_and(|read| {
                head.get(..read) != self.head.get(..self.written.min(HEAD as u64) as usize)
            });
            self.truncated = is_other || self.size().is_some_and(|size| size < self.written);
        }
        self.truncated
    }

    /// Empties a file that was truncated, to begin it again.
    pub(crate) fn restart(&mut self) -> io::Result<()> {
        if !self.owns_descriptor() {
            self.reopen()?;
        }
        self.written = 0;
        self.truncate_to_whole_packets();
        self.truncated = self.broken;
        if self.broken { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Reads what the file has, of a regular file.
    pub(crate) fn read_at(&self, room: &mut [u8], offset: u64) -> io::Result<usize> {
        if !self.owns_descriptor() {
            return Err(io::Error::other("the program has closed its descriptor"));
        }
        let offset = libc::off_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: pread writes at most `room.len()` bytes to the slice. The descriptor refers
        // to the trace.
        let read =
            unsafe { libc::pread(self.descriptor, room.as_mut_ptr().cast(), room.len(), offset) };
        usize::try_from(read).map_err(|_| io::Error::last_os_error())
    }

    /// Opens the trace again after the host has closed it.
    fn reopen(&mut self) -> io::Result<()> {
        let lost = |reason: &dyn core::fmt::Display| {
            let path = self.path.display();
            let text = format!(
                "the program closed the descriptor of its trace {path}, which cannot be \
                 opened again: {reason}"
            );
            io::Error::other(text)
        };
        if !self.regular {
            return Err(lost(&"it is no regular file"));
        }
        // Not for appending: `overwrite` would append, too.
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&self.path)
            .map_err(|error| lost(&error))?;
        let metadata = file.metadata().map_err(|error| lost(&error))?;
        if FileIdentity::of(&metadata) != self.identity {
            return Err(lost(&"another file has its name"));
        }
        if !lock(&file).map_err(|error| lost(&error))? {
            return Err(lost(&"another process is tracing into it"));
        }
        if metadata.len() > self.written {
            return Err(lost(&"somebody else has written to it"));
        }
        self.truncated = metadata.len() < self.written;
        file.seek(SeekFrom::End(0)).map_err(|error| lost(&error))?;
        self.descriptor = move_to_high_number(file).into_raw_fd();
        show_writer(self.descriptor);
        Ok(())
    }

    /// Changes bytes of whole packets in a regular file. Failures are ignored.
    pub(crate) fn overwrite(&mut self, offset: u64, bytes: &[u8]) {
        let end = offset.saturating_add(bytes.len() as u64);
        let Ok(offset) = libc::off_t::try_from(offset) else { return };
        let is_there = || self.size().is_some_and(|size| size >= self.written);
        if self.regular && end <= self.written && !self.truncated && is_there() {
            // SAFETY: pwrite reads `bytes.len()` bytes from the slice. The descriptor
            // refers to the trace.
            unsafe { libc::pwrite(self.descriptor, bytes.as_ptr().cast(), bytes.len(), offset) };
        }
    }

    /// Writes all of `packet`, or returns how many bytes were written and the error.
    fn write_whole(&self, packet: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut done = 0;
        let mut progress = Instant::now();
        while let Some(rest) = packet.get(done..).filter(|rest| !rest.is_empty()) {
            // SAFETY: write(2) reads `rest.len()` bytes from the slice.
            let wrote = unsafe { libc::write(self.descriptor, rest.as_ptr().cast(), rest.len()) };
            if let Ok(wrote @ 1..) = usize::try_from(wrote) {
                done += wrote;
                progress = Instant::now();
                continue;
            }
            let error = match wrote {
                0 => io::ErrorKind::WriteZero.into(),
                _ => io::Error::last_os_error(),
            };
            match error.kind() {
                io::ErrorKind::Interrupted => {}
                io::ErrorKind::WouldBlock if progress.elapsed() < self.patience => self.poll(),
                io::ErrorKind::WouldBlock => {
                    let text = format!("nobody reads from {}", self.path.display());
                    return Err((done, io::Error::new(io::ErrorKind::TimedOut, text)));
                }
                _ => return Err((done, error)),
            }
        }
        Ok(())
    }

    /// Waits at most 100 ms until the descriptor may be writable.
    fn poll(&self) {
        let mut asked = libc::pollfd { fd: self.descriptor, events: libc::POLLOUT, revents: 0 };
        // The result does not matter: the next write finds out.
        // SAFETY: poll reads and writes one entry, which is on this stack.
        unsafe { libc::poll(&raw mut asked, 1, 100) };
    }

    /// Removes a packet that was written in part.
    fn truncate_to_whole_packets(&mut self) {
        let Some(end) = libc::off_t::try_from(self.written).ok().filter(|_| self.regular) else {
            self.broken = true;
            return;
        };
        // SAFETY: ftruncate takes numbers. `write` has checked that the descriptor refers
        // to the trace.
        let cut = unsafe { libc::ftruncate(self.descriptor, end) };
        // SAFETY: lseek takes numbers, and the same descriptor.
        let back = unsafe { libc::lseek(self.descriptor, end, libc::SEEK_SET) };
        self.broken = cut != 0 || back != end;
    }
}

impl io::Write for Output {
    /// Writes one packet, all of it or nothing.
    fn write(&mut self, packet: &[u8]) -> io::Result<usize> {
        if self.broken {
            return Err(io::Error::other("the trace ends in the middle of a packet"));
        }
        match self.size() {
            Some(size) => self.truncated |= self.regular && size < self.written,
            None => self.reopen()?,
        }
        if self.truncated {
            return Ok(packet.len());
        }
        match self.write_whole(packet) {
            Ok(()) => {
                if self.written == 0 {
                    let begin = packet.iter().copied().chain(std::iter::repeat(0));
                    self.head.iter_mut().zip(begin).for_each(|(to, from)| *to = from);
                }
                self.written += packet.len() as u64;
                Ok(packet.len())
            }
            Err((done, error)) => {
                if done > 0 {
                    self.truncate_to_whole_packets();
                }
                Err(error)
            }
        }
    }

    /// Does nothing: `write` does not buffer.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.owns_descriptor() {
            // SAFETY: the descriptor refers to the trace, which this value opened, and is
            // not used again.
            unsafe { libc::close(self.descriptor) };
        }
    }
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
