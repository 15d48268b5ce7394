//! The processes that take commands, and one of them by its name.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_control::socket::{RUNTIME_DIRECTORY, in_runtime_directory, in_tmp, pid_of};
use heaptap_control::{Command, Status};

use crate::connection::{AskError, Connection, listener};
use crate::process::Process;

/// A process that does not say within this time what it is, has no status.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// What each process of this user says of itself; root sees those of all users. Sockets that
/// killed processes have left are removed.
pub fn listening() -> BTreeMap<u32, Result<Status, AskError>> {
    sockets().iter().filter_map(|path| ask(path)).collect()
}

/// Why no process is found.
#[derive(Debug)]
pub enum NotFound {
    /// None has this number.
    Number(u32),
    /// None that takes commands runs a program of this name.
    Name,
    /// Several do.
    Several(Vec<u32>),
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotFound::Number(pid) => write!(f, "there is no process {pid}"),
            NotFound::Name => f.write_str("no process that takes commands runs it"),
            NotFound::Several(pids) => {
                let pids: Vec<_> = pids.iter().map(u32::to_string).collect();
                write!(f, "several processes run it, give the number of one: {}", pids.join(", "))
            }
        }
    }
}

impl Process {
    /// The process with this number, or the one that takes commands and runs a program of this
    /// name.
    pub fn find(text: &OsStr) -> Result<Process, NotFound> {
        if let Some(pid) = text.to_str().and_then(|text| text.parse().ok()) {
            return Process::of(pid).ok_or(NotFound::Number(pid));
        }
        let runs = |status: Result<Status, _>| status.is_ok_and(|status| status.program == text);
        let all = listening().into_iter().filter_map(|(pid, status)| runs(status).then_some(pid));
        match all.collect::<Vec<u32>>()[..] {
            [pid] => Process::of(pid).ok_or(NotFound::Name),
            [] => Err(NotFound::Name),
            ref several => Err(NotFound::Several(several.to_vec())),
        }
    }
}

/// Every file that may be a control socket.
fn sockets() -> Vec<PathBuf> {
    let mut directories: Vec<PathBuf> = Vec::new();
    let own = std::env::var_os(RUNTIME_DIRECTORY).map(PathBuf::from);
    directories.extend(own.filter(|path| path.is_absolute()));
    let uid = rustix::process::geteuid().as_raw();
    directories.push(PathBuf::from(format!("/run/user/{uid}")));
    let mut found = vec![in_tmp(uid)];
    if uid == 0 {
        directories.extend(entries("/run/user"));
        let in_tmp = entries("/tmp").into_iter();
        found.extend(in_tmp.filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("heaptap-"))
        }));
    }
    found.extend(directories.iter().map(|path| in_runtime_directory(path)));
    found.sort();
    found.dedup();
    let is_socket = |path: &PathBuf| path.file_name().and_then(pid_of).is_some();
    found.iter().flat_map(entries).filter(is_socket).collect()
}

fn entries(directory: impl AsRef<Path>) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

/// The process behind a socket; `None` if nobody listens.
fn ask(path: &Path) -> Option<(u32, Result<Status, AskError>)> {
    let stream = match UnixStream::connect(path) {
        Ok(stream) => stream,
        Err(error) => {
            if error.kind() == io::ErrorKind::ConnectionRefused {
                // Nobody can listen on it again.
                let _ = fs::remove_file(path);
            }
            return None;
        }
    };
    let pid = listener(&stream)?;
    let mut connection = Connection::new(stream, LONGEST_SILENCE).ok()?;
    Some((pid, connection.ask(&Command::Status, &mut || {})))
}
