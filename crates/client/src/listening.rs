//! The processes that take commands.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_control::socket::{RUNTIME_DIRECTORY, in_runtime_directory, in_tmp, pid_of};
use heaptap_control::{Command, Status};

use crate::connection::{AskError, Connection, listener};

/// A process that does not say within this time what it is, has no status.
const LONGEST_SILENCE: Duration = Duration::from_secs(2);

/// What each process of this user says of itself; root sees those of all users. Sockets that
/// killed processes have left are removed.
pub fn listening() -> BTreeMap<u32, Result<Status, AskError>> {
    sockets().iter().filter_map(|path| ask(path)).collect()
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
