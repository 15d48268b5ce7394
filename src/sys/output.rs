//! Writes packets so that what is on disk is whole packets only.
//!
//! Each call of [`write`](io::Write::write) takes one packet and writes all of it,
//! with one `write(2)` unless the system takes less. If it cannot, a regular file
//! is cut back to its last whole packet and the error is returned.
//!
//! The host may close descriptors that are not its own, and then get the same
//! number for a file of its own. So before each packet the descriptor is compared
//! with what was opened; if it is another's, the trace is opened again by its
//! name, if it is still there as it was left. Somebody else's file is never
//! written to nor closed.
//!
//! For a thread on which SIGPIPE and SIGXFSZ are blocked, see
//! [`thread`](super::thread): elsewhere they would end the host.
#![allow(unsafe_code, reason = "works on a descriptor that may have become another's")]

use super::file::{lock, raise};
use core::mem::MaybeUninit;
use core::time::Duration;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{IntoRawFd, RawFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// How long a pipe's reader may take no byte.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a file is, whatever its name and descriptor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
}

/// An open trace.
#[derive(Debug)]
pub(crate) struct Output {
    /// Ours only while it has our identity.
    descriptor: RawFd,
    identity: Identity,
    /// Absolute, and without symbolic links for a regular file.
    path: PathBuf,
    regular: bool,
    /// Bytes of whole packets.
    written: u64,
    /// Part of a packet went out and could not be taken back.
    broken: bool,
    patience: Duration,
}

impl Output {
    /// An empty file, open for writing, that was found as `path`, and is this.
    pub(super) fn new(file: File, found: &Metadata, path: &Path) -> io::Result<Self> {
        let path = std::fs::canonicalize(path).or_else(|_| std::path::absolute(path))?;
        Ok(Self {
            descriptor: raise(file).into_raw_fd(),
            identity: Identity { device: found.dev(), inode: found.ino() },
            path,
            regular: found.is_file(),
            written: 0,
            broken: false,
            patience: PATIENCE,
        })
    }

    /// Where it goes.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of whole packets so far.
    #[cfg(test)]
    pub(crate) fn written(&self) -> u64 {
        self.written
    }

    fn is_ours(&self) -> bool {
        identify(self.descriptor) == Some(self.identity)
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
        let file = OpenOptions::new()
            .append(true)
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY)
            .open(&self.path)
            .map_err(|error| lost(&error))?;
        let found = file.metadata().map_err(|error| lost(&error))?;
        if (Identity { device: found.dev(), inode: found.ino() }) != self.identity {
            return Err(lost(&"another file has its name"));
        }
        if !lock(&file).map_err(|error| lost(&error))? {
            return Err(lost(&"another process is tracing into it"));
        }
        if found.len() != self.written {
            return Err(lost(&"somebody else has written to it"));
        }
        self.descriptor = raise(file).into_raw_fd();
        Ok(())
    }

    /// Writes all of `packet`, or says how much of it went out and why no more.
    fn write_whole(&self, packet: &[u8]) -> Result<(), (usize, io::Error)> {
        let mut done = 0;
        let mut progress = Instant::now();
        while let Some(rest) = packet.get(done..).filter(|rest| !rest.is_empty()) {
            // SAFETY: writes from a slice that lives.
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

    /// Waits a little until there may be room.
    fn poll(&self) {
        let mut asked = libc::pollfd { fd: self.descriptor, events: libc::POLLOUT, revents: 0 };
        // SAFETY: one entry, which lives; whatever the outcome, the write tells.
        unsafe { libc::poll(&raw mut asked, 1, 100) };
    }

    /// Takes back part of a packet.
    fn cut_back(&mut self) {
        let Some(end) = libc::off_t::try_from(self.written).ok().filter(|_| self.regular) else {
            self.broken = true;
            return;
        };
        // SAFETY: works on the descriptor, which was ours before the write.
        let cut = unsafe { libc::ftruncate(self.descriptor, end) };
        // SAFETY: as above.
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
        if !self.is_ours() {
            self.reopen()?;
        }
        match self.write_whole(packet) {
            Ok(()) => {
                self.written += packet.len() as u64;
                Ok(packet.len())
            }
            Err((done, error)) => {
                if done > 0 {
                    self.cut_back();
                }
                Err(error)
            }
        }
    }

    /// Nothing is held back.
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if self.is_ours() {
            // SAFETY: the descriptor is ours and not used again.
            unsafe { libc::close(self.descriptor) };
        }
    }
}

/// What a descriptor refers to; `None` if nothing.
fn identify(descriptor: RawFd) -> Option<Identity> {
    let mut found = MaybeUninit::<libc::stat>::uninit();
    // SAFETY: writes one stat to the place given.
    if unsafe { libc::fstat(descriptor, found.as_mut_ptr()) } != 0 {
        return None;
    }
    // SAFETY: written by the successful call.
    let found = unsafe { found.assume_init() };
    Some(Identity { device: found.st_dev, inode: found.st_ino })
}

#[cfg(test)]
#[path = "output_tests.rs"]
mod tests;
