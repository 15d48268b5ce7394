//! Waiting for several descriptors at a time.
#![allow(unsafe_code, reason = "calls poll")]

use core::time::Duration;
use std::io;
use std::os::fd::RawFd;

/// What a descriptor is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// Bytes, a client, or the end of the other side.
    Input,
    /// Room for bytes.
    Output,
    /// Only that the other side has closed it. One that has said that it sends no more is still
    /// there.
    Hangup,
}

/// A descriptor that is waited for, and what came of it.
#[repr(transparent)]
pub(crate) struct Watched(libc::pollfd);

impl Watched {
    pub(super) fn new(fd: RawFd, wants: Wants) -> Watched {
        let events = match wants {
            Wants::Input => libc::POLLIN,
            Wants::Output => libc::POLLOUT,
            Wants::Hangup => 0,
        };
        Watched(libc::pollfd { fd, events, revents: 0 })
    }

    /// Whether there is something to do: what was wanted, or the other side has closed it.
    pub(crate) fn is_ready(&self) -> bool {
        self.0.revents != 0
    }

    /// Whether the other side has closed it, or it is not open here any more.
    pub(crate) fn is_hung_up(&self) -> bool {
        self.0.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0
    }
}

/// Waits until one of them is ready, or `longest` has passed; `None` for no limit.
pub(crate) fn wait(watched: &mut [Watched], longest: Option<Duration>) -> io::Result<()> {
    // Rounded up: a wait of 0 would spin.
    let milliseconds = longest
        .map_or(-1, |longest| i32::try_from(longest.as_millis()).unwrap_or(i32::MAX - 1) + 1);
    let count = watched.len() as libc::nfds_t;
    let first = watched.as_mut_ptr().cast::<libc::pollfd>();
    // SAFETY: poll reads and writes `count` structures, which `Watched` is made of.
    if unsafe { libc::poll(first, count, milliseconds) } >= 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;
    use std::net::Shutdown;
    use std::os::fd::AsRawFd as _;
    use std::os::unix::net::UnixStream;

    fn look(socket: &UnixStream, wants: Wants) -> Watched {
        let mut watched = [Watched::new(socket.as_raw_fd(), wants)];
        wait(&mut watched, Some(Duration::ZERO)).unwrap();
        let [watched] = watched;
        watched
    }

    #[test]
    fn only_a_closed_end_is_a_hangup() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        assert!(!look(&ours, Wants::Input).is_ready());
        assert!(look(&ours, Wants::Output).is_ready());
        theirs.write_all(b"x").unwrap();
        assert!(look(&ours, Wants::Input).is_ready());
        theirs.shutdown(Shutdown::Write).unwrap();
        assert!(!look(&ours, Wants::Hangup).is_ready(), "it may still read");
        drop(theirs);
        assert!(look(&ours, Wants::Hangup).is_hung_up());
    }

    #[test]
    fn a_wait_ends() {
        wait(&mut [], Some(Duration::from_millis(1))).unwrap();
    }
}
