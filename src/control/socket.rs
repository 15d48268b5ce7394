//! The socket in the user's directory.
//!
//! The directory is `$XDG_RUNTIME_DIR/heaptap`, or `/tmp/heaptap-UID` for a user without a
//! runtime directory. It must be a directory of this user that nobody else may enter;
//! symbolic links are not followed. So nobody else can connect, and nobody can
//! replace the socket. The kernel's word on who has connected is asked for as well.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use heaptap_control::socket::{RUNTIME_DIRECTORY, in_runtime_directory, in_tmp, name};

use super::process::Process;
use super::server::Server;
use crate::sys::listener::{Client, Listener, check_private};
use crate::sys::thread;
use crate::tracer::say;

/// The socket of this process, never freed; null if it has none. In a forked child, the
/// parent's.
static LISTENER: AtomicPtr<Listener> = AtomicPtr::new(std::ptr::null_mut());

/// The socket of this process, or of the parent that has forked.
fn current() -> Option<&'static Listener> {
    // SAFETY: null, or from `Box::leak`.
    unsafe { LISTENER.load(Ordering::Acquire).as_ref() }
}

/// Opens the socket and starts the thread that answers on it. Failures are reported to the user.
pub(super) fn start(process: &'static Process) {
    let started = match open_unserved(process.pid) {
        Ok(Some(listener)) => serve(process, listener),
        Ok(None) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    if let Err(why) = started {
        say(format_args!("the program takes no commands: {why}"));
    }
}

/// Opens the socket of this process. `None` if another copy of this library listens for it.
pub(super) fn open_unserved(pid: u32) -> io::Result<Option<Listener>> {
    open_in(&directories(std::env::var_os(RUNTIME_DIRECTORY), user()), user(), pid)
}

/// Whether this process, or the parent that has forked, has opened a socket.
pub(super) fn is_open() -> bool {
    current().is_some()
}

/// Starts the thread that answers on a socket.
pub(super) fn serve(process: &'static Process, listener: Listener) -> Result<(), String> {
    let listener = keep(listener);
    let serve = move |_| Server::new(process, listener, user(), open_again).run();
    let started = thread::start("heaptap-control", serve);
    started.map(drop).map_err(|error| {
        listener.remove_name();
        format!("cannot start a thread: {error}")
    })
}

fn user() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// The socket of this process from now on.
fn keep(listener: Listener) -> &'static Listener {
    let listener = &*Box::leak(Box::new(listener));
    LISTENER.store(std::ptr::from_ref(listener).cast_mut(), Ordering::Release);
    listener
}

/// Removes the name of the socket. At exit.
pub(super) fn remove_name() {
    if let Some(listener) = current() {
        listener.remove_name();
    }
}

/// In a forked child: closes the parent's socket. Async-signal-safe.
pub(super) fn close_in_child() {
    if let Some(listener) = current() {
        listener.close_in_child();
    }
}

/// Opens the socket again after the host has closed it. Tries several times, because the host may
/// still be closing descriptors, and with them the new one before it listens.
fn open_again(user: u32, pid: u32) -> Option<&'static Listener> {
    const ATTEMPTS: usize = 10;
    const PAUSE: Duration = Duration::from_millis(100);
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            std::thread::sleep(PAUSE);
        }
        if let Ok(Some(listener)) = open(user, pid) {
            return Some(listener);
        }
    }
    None
}

/// Opens the socket in the first directory that can be used. `None` if another copy of this
/// library listens for the same process.
fn open(user: u32, pid: u32) -> io::Result<Option<&'static Listener>> {
    let runtime = std::env::var_os(RUNTIME_DIRECTORY);
    let listener = open_in(&directories(runtime, user), user, pid)?;
    Ok(listener.map(keep))
}

/// The directories for the socket, the best first.
fn directories(runtime: Option<OsString>, user: u32) -> Vec<PathBuf> {
    let is_own = |path: &PathBuf| {
        let found = path.metadata();
        path.is_absolute() && found.is_ok_and(|found| found.is_dir() && found.uid() == user)
    };
    let runtime = runtime.map(PathBuf::from).filter(is_own);
    let runtime = runtime.map(|runtime| in_runtime_directory(&runtime));
    runtime.into_iter().chain([in_tmp(user)]).collect()
}

fn open_in(directories: &[PathBuf], user: u32, pid: u32) -> io::Result<Option<Listener>> {
    let mut failure = io::Error::other("there is no directory for its socket");
    for directory in directories {
        let path = directory.join(name(pid));
        match make_private(directory, user).and_then(|()| open_at(&path, pid)) {
            Ok(listener) => return Ok(listener),
            Err(error) => {
                failure = io::Error::new(error.kind(), format!("{}: {error}", path.display()));
            }
        }
    }
    Err(failure)
}

fn make_private(directory: &Path, user: u32) -> io::Result<()> {
    match DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => check_private(directory, user),
    }
}

/// Replaces a socket that a killed process with the same id has left, but not one that
/// somebody listens on.
fn open_at(path: &Path, pid: u32) -> io::Result<Option<Listener>> {
    if let Ok(stream) = UnixStream::connect(path) {
        // The kernel records who listens, as it does who connects.
        if Client::new(stream)?.process()? == pid {
            return Ok(None);
        }
        return Err(io::Error::other(
            "a process of another namespace listens there; give each its own runtime directory",
        ));
    }
    Listener::bind(path).map(Some)
}

#[cfg(test)]
#[path = "socket_tests.rs"]
mod tests;
