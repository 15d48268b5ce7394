//! A Unix stream socket that listens under a name of the file system, and its clients.
//!
//! The host may close descriptors that it does not own, and may then get the same number for
//! one of its own files. So the file behind a descriptor is compared with the one that was
//! opened before each use, and a descriptor that is no longer ours is never closed.
//!
//! A name appears only once its socket listens: a client that finds a name and is refused
//! knows that nobody listens there any more.
#![allow(unsafe_code, reason = "calls poll and getsockopt, and closes a descriptor after a fork")]

use super::descriptor::{FileIdentity, move_to_high_number};
use core::mem::MaybeUninit;
use core::time::Duration;
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A socket that listens.
pub(crate) struct Listener {
    descriptor: OwnDescriptor<UnixListener>,
    path: PathBuf,
    /// The file under `path`.
    name_identity: FileIdentity,
}

/// What [`Listener::accept`] found.
pub(crate) enum Accepted {
    Client(Client),
    /// The host has closed the descriptor.
    Lost,
}

impl Listener {
    /// Listens under `path`, with mode 0600. A file with that name is replaced.
    pub(crate) fn bind(path: &Path) -> io::Result<Listener> {
        let mut temporary = path.as_os_str().to_owned();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let listener = UnixListener::bind(&temporary)?;
        let named = || -> io::Result<FileIdentity> {
            fs::set_permissions(&temporary, Permissions::from_mode(0o600))?;
            let identity = FileIdentity::of(&fs::symlink_metadata(&temporary)?);
            fs::rename(&temporary, path)?;
            listener.set_nonblocking(true)?;
            Ok(identity)
        };
        let name_identity = named().inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })?;
        let descriptor = OwnDescriptor::new(listener)?;
        Ok(Listener { descriptor, path: path.to_owned(), name_identity })
    }

    #[cfg(test)]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// For a forked child, which must not keep its parent's socket open.
    pub(crate) fn inherited(&self) -> InheritedDescriptor {
        InheritedDescriptor { number: self.descriptor.number(), identity: self.descriptor.identity }
    }

    /// Waits for a client.
    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        loop {
            if !self.descriptor.is_ours() {
                return Ok(Accepted::Lost);
            }
            poll(self.descriptor.number(), libc::POLLIN, None)?;
            if !self.descriptor.is_ours() {
                return Ok(Accepted::Lost);
            }
            match self.descriptor.get().accept() {
                Ok((stream, _)) => return Client::new(stream).map(Accepted::Client),
                Err(error) if is_transient(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Removes the name, unless it belongs to another socket by now.
    pub(crate) fn remove_name(&self) {
        let found = fs::symlink_metadata(&self.path);
        if found.is_ok_and(|found| FileIdentity::of(&found) == self.name_identity) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Errors of `accept` that concern one client only (accept(2)).
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted, WouldBlock};
    matches!(error.kind(), ConnectionAborted | Interrupted | WouldBlock)
}

/// A descriptor that a forked child has inherited.
#[derive(Clone, Copy)]
pub(crate) struct InheritedDescriptor {
    number: RawFd,
    identity: FileIdentity,
}

impl InheritedDescriptor {
    /// Closes it, if it is still the same. Async-signal-safe.
    pub(crate) fn close(self) {
        if FileIdentity::of_descriptor(self.number) == Some(self.identity) {
            // SAFETY: takes a number. In the child nobody else uses the socket: the thread
            // that owns it exists in the parent only.
            unsafe { libc::close(self.number) };
        }
    }
}

/// A client that has connected.
pub(crate) struct Client {
    stream: OwnDescriptor<UnixStream>,
}

impl Client {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Client> {
        stream.set_nonblocking(true)?;
        Ok(Client { stream: OwnDescriptor::new(stream)? })
    }

    /// The effective user of the process at the other end.
    pub(crate) fn user(&self) -> io::Result<u32> {
        Ok(self.credentials()?.uid)
    }

    /// The process at the other end: the one that has connected, or that listens.
    pub(crate) fn process(&self) -> io::Result<u32> {
        Ok(self.credentials()?.pid as u32)
    }

    fn credentials(&self) -> io::Result<libc::ucred> {
        let mut credentials = MaybeUninit::<libc::ucred>::uninit();
        let mut size = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: getsockopt writes at most `size` bytes to `credentials`, which has them.
        let failed = unsafe {
            libc::getsockopt(
                self.stream.number(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                credentials.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        if failed != 0 || size as usize != size_of::<libc::ucred>() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: getsockopt has written all of it.
        Ok(unsafe { credentials.assume_init() })
    }

    /// Reads a line of less than `max` bytes. Returns it without its end; `None` if the client has
    /// closed the connection, sends a longer line, or sends none until the deadline.
    pub(crate) fn read_line(&mut self, max: usize, deadline: Instant) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        let mut chunk = [0; 1024];
        loop {
            if let Some(end) = line.iter().position(|byte| *byte == b'\n') {
                line.truncate(end);
                return Some(line);
            }
            let room = chunk.len().min(max.checked_sub(line.len()).filter(|room| *room > 0)?);
            let read = self.when_ready(libc::POLLIN, deadline, |mut stream| {
                stream.read(chunk.get_mut(..room).unwrap_or_default())
            })?;
            line.extend_from_slice(chunk.get(..read).filter(|read| !read.is_empty())?);
        }
    }

    /// Writes all of `bytes`. False if the client has gone, or does not read them until the
    /// deadline.
    pub(crate) fn write(&mut self, mut bytes: &[u8], deadline: Instant) -> bool {
        while !bytes.is_empty() {
            let written =
                self.when_ready(libc::POLLOUT, deadline, |mut stream| stream.write(bytes));
            match written.and_then(|written| bytes.get(written..)) {
                Some(rest) if rest.len() < bytes.len() => bytes = rest,
                _ => return false,
            }
        }
        true
    }

    /// Calls `transfer` until it does not have to wait. `None` for an error, a deadline that has
    /// passed, or a descriptor that the host has closed.
    fn when_ready(
        &self,
        events: libc::c_short,
        deadline: Instant,
        mut transfer: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> Option<usize> {
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.stream.is_ours() {
                return None;
            }
            poll(self.stream.number(), events, Some(left)).ok()?;
            if !self.stream.is_ours() {
                return None;
            }
            match transfer(self.stream.get()) {
                Ok(count) => return Some(count),
                Err(error) if is_transient(&error) => {}
                Err(_) => return None,
            }
        }
    }
}

/// Waits until a descriptor is ready for one of `events`, or `longest` has passed.
fn poll(descriptor: RawFd, events: libc::c_short, longest: Option<Duration>) -> io::Result<()> {
    let mut asked = libc::pollfd { fd: descriptor, events, revents: 0 };
    // Rounded up: a wait of 0 would spin.
    let milliseconds = longest
        .map_or(-1, |longest| i32::try_from(longest.as_millis()).unwrap_or(i32::MAX - 1) + 1);
    // SAFETY: poll reads and writes one `pollfd`.
    if unsafe { libc::poll(&raw mut asked, 1, milliseconds) } >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

/// A descriptor with a high number, and the file that it refers to.
struct OwnDescriptor<T: AsRawFd + IntoRawFd> {
    /// `None` only while it is dropped.
    open: Option<T>,
    identity: FileIdentity,
}

impl<T: AsRawFd + IntoRawFd + From<OwnedFd> + Into<OwnedFd>> OwnDescriptor<T> {
    fn new(low: T) -> io::Result<OwnDescriptor<T>> {
        let file = move_to_high_number(File::from(low.into()));
        let identity = FileIdentity::of_descriptor(file.as_raw_fd());
        let identity = identity.ok_or_else(io::Error::last_os_error)?;
        let open: OwnedFd = file.into();
        Ok(OwnDescriptor { open: Some(T::from(open)), identity })
    }
}

impl<T: AsRawFd + IntoRawFd> OwnDescriptor<T> {
    fn get(&self) -> &T {
        self.open.as_ref().expect("taken by drop only")
    }

    fn number(&self) -> RawFd {
        self.get().as_raw_fd()
    }

    fn is_ours(&self) -> bool {
        FileIdentity::of_descriptor(self.number()) == Some(self.identity)
    }
}

impl<T: AsRawFd + IntoRawFd> Drop for OwnDescriptor<T> {
    fn drop(&mut self) {
        if !self.is_ours()
            && let Some(open) = self.open.take()
        {
            // The number belongs to the host now.
            let _ = open.into_raw_fd();
        }
    }
}

/// Refuses a directory that others than `user` could enter or replace. Symbolic links are not
/// followed.
pub(crate) fn check_private(directory: &Path, user: u32) -> io::Result<()> {
    let found = fs::symlink_metadata(directory)?;
    let reason = if !found.is_dir() {
        "it is not a directory"
    } else if found.uid() != user {
        "it belongs to another user"
    } else if found.mode() & 0o077 != 0 {
        "others may enter it: its mode must be 0700"
    } else {
        return Ok(());
    };
    Err(io::Error::other(reason))
}

#[cfg(test)]
#[path = "listener_tests.rs"]
mod tests;
