//! A Unix stream socket that listens under a name of the file system, and its clients.
//!
//! The host may close descriptors that it does not own, and may then get the same number for
//! one of its own files. So the file behind a descriptor is compared with the one that was
//! opened before each use, and a descriptor that is no longer ours is never closed.
//!
//! Nothing here waits: `poll` waits for several sockets at a time.
//!
//! A name appears only once its socket listens: a client that finds a name and is refused
//! knows that nobody listens there any more.
#![allow(unsafe_code, reason = "calls getsockopt, and closes a descriptor after a fork")]

use super::descriptor::{FileIdentity, OwnDescriptor};
use super::poll::{Wants, Watched};
use core::mem::MaybeUninit;
use std::fs::{self, Permissions};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

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
    /// Nobody waits.
    None,
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

    /// Closes the descriptor of a forked child, which must not keep its parent's socket open, if it
    /// is still the same. Async-signal-safe.
    pub(crate) fn close_in_child(&self) {
        if self.descriptor.is_ours() {
            // SAFETY: takes a number. In the child nobody else uses the socket: the thread
            // that owns it exists in the parent only.
            unsafe { libc::close(self.descriptor.number()) };
        }
    }

    /// To be waited for with [`poll::wait`](super::poll::wait): is ready when a client connects.
    pub(crate) fn watched(&self) -> Watched {
        Watched::new(self.descriptor.number(), Wants::Input)
    }

    /// The next client, if one waits.
    pub(crate) fn accept(&self) -> io::Result<Accepted> {
        loop {
            if !self.descriptor.is_ours() {
                return Ok(Accepted::Lost);
            }
            match self.descriptor.get().accept() {
                Ok((stream, _)) => return Client::new(stream).map(Accepted::Client),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    return Ok(Accepted::None);
                }
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

/// Errors after which the next attempt may succeed at once (accept(2)).
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, Interrupted};
    matches!(error.kind(), ConnectionAborted | Interrupted)
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

    /// To be waited for with [`poll::wait`](super::poll::wait).
    pub(crate) fn watched(&self, wants: Wants) -> Watched {
        Watched::new(self.stream.number(), wants)
    }

    /// Reads what is there, without waiting.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> Transfer {
        self.transfer(|mut stream| stream.read(bytes))
    }

    /// Writes as much as the socket takes, without waiting.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Transfer {
        self.transfer(|mut stream| stream.write(bytes))
    }

    /// Ends the connection for writing: the client has everything. In a child that was forked
    /// meanwhile, too, which has inherited the descriptor.
    pub(crate) fn end_answer(&mut self) {
        if self.stream.is_ours() {
            // A client that has gone is of no interest.
            let _ = self.stream.get().shutdown(Shutdown::Write);
        }
    }

    fn transfer(&self, mut attempt: impl FnMut(&UnixStream) -> io::Result<usize>) -> Transfer {
        loop {
            if !self.stream.is_ours() {
                return Transfer::Ended;
            }
            match attempt(self.stream.get()) {
                Ok(0) => return Transfer::Ended,
                Ok(count) => return Transfer::Done(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Transfer::Later,
                Err(error) if is_transient(&error) => {}
                Err(_) => return Transfer::Ended,
            }
        }
    }
}

/// What came of reading or writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transfer {
    /// This many bytes.
    Done(usize),
    /// It would have to wait.
    Later,
    /// The client has closed the connection, or the host the descriptor.
    Ended,
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
