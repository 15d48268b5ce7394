//! The client's end of a control socket: finds the socket of a process, sends a command and
//! reads the answer.
//!
//! The process may have another environment than this one (a service, a container), so
//! every directory is tried in which its socket can be. Whoever answers is checked: the
//! kernel knows which process listens.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptap_settings::{LISTEN, control};
use rustix::net::sockopt::socket_peercred;

use crate::exit_status::Failure;
use crate::text::escape;

/// The longest silence of a program that is alive: it sends a line every second, but its
/// threads may wait for a busy machine.
const LONGEST_SILENCE: Duration = Duration::from_secs(15);

/// Between two attempts to connect.
pub(super) const PACE: Duration = Duration::from_millis(10);

/// A process of this machine.
pub(super) struct Target {
    pub(super) pid: u32,
    /// Its effective user.
    uid: u32,
}

impl Target {
    /// The process with this id.
    pub(super) fn find(pid: u32) -> Result<Target, Failure> {
        let found = fs::metadata(format!("/proc/{pid}"));
        let uid = found.map_err(|_| Failure::Trouble(format!("there is no process {pid}")))?.uid();
        Ok(Target { pid, uid })
    }

    /// The name of its program, as messages show it.
    pub(super) fn name(&self) -> String {
        let comm = fs::read(format!("/proc/{}/comm", self.pid)).unwrap_or_default();
        escape::path(Path::new(&OsString::from_vec(comm.trim_ascii_end().to_vec()))).to_string()
    }

    /// The name of its program as part of a file's name.
    pub(super) fn program(&self) -> String {
        let path = fs::read_link(format!("/proc/{}/exe", self.pid)).unwrap_or_default();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_else(|| "program".to_owned());
        name.strip_suffix(" (deleted)").map(str::to_owned).unwrap_or(name)
    }

    /// Connects to its control socket. If nobody listens under its name, tries again until the
    /// deadline: a program that closes all its descriptors is about to open its socket again.
    pub(super) fn connect(&self, deadline: Instant) -> Result<Connection, Failure> {
        loop {
            let (mut denied, mut closed) = (false, false);
            for path in self.sockets() {
                match UnixStream::connect(&path) {
                    Ok(stream) if listener(&stream) == Some(self.pid) => {
                        return Connection::new(stream, LONGEST_SILENCE)
                            .map_err(|error| self.trouble(&error.to_string()));
                    }
                    Ok(_) => {}
                    Err(error) => {
                        denied |= error.kind() == io::ErrorKind::PermissionDenied;
                        closed |= error.kind() == io::ErrorKind::ConnectionRefused;
                    }
                }
            }
            if !closed || Instant::now() >= deadline {
                return Err(self.refusal(denied));
            }
            std::thread::sleep(PACE);
            // There is nothing to wait for if the process has ended.
            Target::find(self.pid)?;
        }
    }

    /// Where its socket may be.
    fn sockets(&self) -> Vec<PathBuf> {
        let own = std::env::var_os(control::RUNTIME_DIRECTORY);
        let mut directories = vec![
            Some(PathBuf::from(format!("/run/user/{}", self.uid))),
            own.map(PathBuf::from),
            self.runtime_directory(),
        ];
        directories.retain(|directory| directory.as_ref().is_some_and(|path| path.is_absolute()));
        let below = directories.iter().flatten().map(|path| control::in_runtime_directory(path));
        let mut directories: Vec<_> = below.chain([control::in_tmp(self.uid)]).collect();
        directories.dedup();
        let here = directories.iter().map(|path| path.join(control::socket_name(self.pid)));
        // In a container it has another id and another root.
        let root = PathBuf::from(format!("/proc/{}/root", self.pid));
        let inner = self.innermost_id();
        let there = directories.iter().filter_map(|path| {
            let path = path.strip_prefix("/").ok()?;
            Some(root.join(path).join(control::socket_name(inner)))
        });
        here.chain(there).collect()
    }

    /// The user's runtime directory in its environment, if that can be read.
    fn runtime_directory(&self) -> Option<PathBuf> {
        let environment = fs::read(format!("/proc/{}/environ", self.pid)).ok()?;
        let prefix = format!("{}=", control::RUNTIME_DIRECTORY);
        let mut entries = environment.split(|byte| *byte == 0);
        let value = entries.find_map(|entry| entry.strip_prefix(prefix.as_bytes()))?;
        Some(OsString::from_vec(value.to_vec()).into())
    }

    /// Its id in its own namespace: the last number of `NSpid` (proc(5)).
    fn innermost_id(&self) -> u32 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"));
        ids.and_then(|ids| ids.split_whitespace().last()?.parse().ok()).unwrap_or(self.pid)
    }

    /// Why there is no connection.
    fn refusal(&self, denied: bool) -> Failure {
        let own = rustix::process::geteuid().as_raw();
        if denied || (own != 0 && own != self.uid) {
            let uid = self.uid;
            return self.trouble(&format!(
                "it belongs to the user with the id {uid}; run this as that user or as root"
            ));
        }
        self.trouble(&format!(
            "it takes no commands; start it by `heaptap run`, or with libheaptap.so in LD_PRELOAD \
             and {}=1",
            LISTEN.name
        ))
    }

    /// A failure that names the process.
    pub(super) fn trouble(&self, reason: &str) -> Failure {
        Failure::Trouble(format!("process {} ({}): {reason}", self.pid, self.name()))
    }
}

/// The process that listens at the other end; `None` if it is in a namespace that this one
/// does not see.
pub(super) fn listener(stream: &UnixStream) -> Option<u32> {
    let credentials = socket_peercred(stream).ok()?;
    u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
}

/// A connection to a control socket.
pub(super) struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Uses a stream that is connected. No single wait is longer than `silence`.
    pub(super) fn new(stream: UnixStream, silence: Duration) -> io::Result<Connection> {
        stream.set_read_timeout(Some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// Sends a command. Calls `progress` for each line before the answer, and returns
    /// the answer.
    pub(super) fn ask(&mut self, command: &str, mut progress: impl FnMut()) -> Answer {
        if let Err(error) = self.stream.get_mut().write_all(format!("{command}\n").as_bytes()) {
            return Answer::None(error);
        }
        loop {
            let mut line = Vec::new();
            let read = self.stream.by_ref().take(control::MAX_LINE as u64 + 1);
            match { read }.read_until(b'\n', &mut line) {
                Ok(_) => {}
                Err(error) => return Answer::None(error),
            }
            if line.pop() != Some(b'\n') {
                return Answer::None(io::ErrorKind::UnexpectedEof.into());
            }
            let (kind, rest) = match line.iter().position(|byte| *byte == b' ') {
                Some(at) => (&line[..at], &line[at + 1..]),
                None => (&line[..], &[][..]),
            };
            match kind {
                b"ok" => return Answer::Done(rest.to_vec()),
                b"error" => {
                    return Answer::Refused(
                        escape::path(Path::new(OsStr::from_bytes(rest))).to_string(),
                    );
                }
                // A later version may have other lines.
                _ => progress(),
            }
        }
    }
}

/// What came back.
#[derive(Debug)]
pub(super) enum Answer {
    /// The words of the answer.
    Done(Vec<u8>),
    /// It cannot be done, and why.
    Refused(String),
    /// Nothing, and why.
    None(io::Error),
}

impl Answer {
    /// Whether the connection was lost, as when the program has closed descriptors that it
    /// does not own, and listens again.
    pub(super) fn is_lost(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(self, Answer::None(error)
            if matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Target {
        Target::find(std::process::id()).unwrap()
    }

    #[test]
    fn sockets_are_looked_for_here_and_in_containers() {
        let target = own();
        let sockets = target.sockets();
        let name = control::socket_name(target.pid);
        assert!(sockets.contains(&control::in_tmp(target.uid).join(&name)), "{sockets:?}");
        let there = format!("/proc/{}/root/tmp/heaptap-{}", target.pid, target.uid);
        assert!(sockets.iter().any(|path| path.starts_with(&there)), "{sockets:?}");
        assert!(sockets.iter().all(|path| path.is_absolute()), "{sockets:?}");
    }

    #[test]
    fn answers_are_told_apart() {
        let ask = |answer: &'static [u8]| {
            let (client, mut server) = UnixStream::pair().unwrap();
            server.write_all(answer).unwrap();
            server.shutdown(std::net::Shutdown::Write).unwrap();
            let mut lines = 0;
            let mut connection = Connection::new(client, Duration::from_secs(20)).unwrap();
            let answer = connection.ask("status", || lines += 1);
            (answer, lines)
        };
        assert!(matches!(ask(b"ok\n"), (Answer::Done(words), 0) if words.is_empty()));
        assert!(
            matches!(ask(b"wait 1\nwait 2\nok a=1\n"), (Answer::Done(words), 2) if words == b"a=1")
        );
        assert!(
            matches!(ask(b"error no\x1b[2J\n"), (Answer::Refused(why), 0) if !why.contains('\x1b'))
        );
        assert!(ask(b"").0.is_lost());
        assert!(ask(b"ok without an end").0.is_lost());
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let flood = std::thread::spawn(move || while server.write_all(&[b'x'; 4096]).is_ok() {});
        let mut connection = Connection::new(client, Duration::from_secs(20)).unwrap();
        assert!(connection.ask("status", || {}).is_lost());
        drop(connection);
        flood.join().unwrap();
    }

    #[test]
    fn silence_ends_the_wait() {
        let (client, _server) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(client, Duration::from_millis(50)).unwrap();
        let answer = connection.ask("status", || {});
        assert!(
            matches!(&answer, Answer::None(error) if error.kind() == io::ErrorKind::WouldBlock)
        );
        assert!(!answer.is_lost());
    }
}
