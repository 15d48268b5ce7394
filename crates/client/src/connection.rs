//! The client's end of a control socket: finds the socket of a process, sends a command and
//! reads the answer.
//!
//! The process may have another environment than this one (a service, a container), so
//! every directory is tried in which its socket can be. Whoever answers is checked: the
//! kernel knows which process listens.

use std::fmt;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use heaptap_control::socket::{self, RUNTIME_DIRECTORY};
use heaptap_control::words::Words;
use heaptap_control::{Command, MAX_LINE, Reply};
use heaptap_settings::LISTEN;
use rustix::net::sockopt::socket_peercred;

use crate::process::Process;

/// The longest silence of a program that is alive: it sends a line every second, but its
/// threads may wait for a busy machine.
const LONGEST_SILENCE: Duration = Duration::from_secs(15);

/// How long a program that has closed its control socket may take to open it again.
const LONGEST_REOPENING: Duration = Duration::from_secs(2);

/// Between two attempts to connect.
const PACE: Duration = Duration::from_millis(10);

/// Why a command was not carried out. Printed, it follows the name of the process.
#[derive(Debug)]
pub enum AskError {
    /// The process has ended.
    Ended,
    /// It belongs to this user, who is another.
    OtherUser(u32),
    /// It has no control socket.
    NotListening,
    /// It has refused, and says why. The text is not escaped.
    Refused(String),
    /// It has not answered.
    Unanswered(io::Error),
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        match self {
            AskError::Ended => f.write_str("it has ended"),
            AskError::OtherUser(user) => write!(
                f,
                "it belongs to the user with the id {user}; run this as that user or as root"
            ),
            AskError::NotListening => write!(
                f,
                "it takes no commands; start it by `heaptap run`, or with libheaptap.so in \
                 LD_PRELOAD and {}=1",
                LISTEN.name
            ),
            AskError::Refused(why) => f.write_str(why),
            AskError::Unanswered(error) => match error.kind() {
                WouldBlock | TimedOut => f.write_str("it does not answer"),
                UnexpectedEof => f.write_str("it ended or closed the connection"),
                _ => write!(f, "the connection was lost: {error}"),
            },
        }
    }
}

impl AskError {
    /// Whether the connection was lost, as when the program has closed descriptors that it
    /// does not own, and listens again.
    fn is_lost(&self) -> bool {
        use io::ErrorKind::{BrokenPipe, ConnectionReset, UnexpectedEof};
        matches!(self, AskError::Unanswered(error)
            if matches!(error.kind(), BrokenPipe | ConnectionReset | UnexpectedEof))
    }
}

impl Process {
    /// Sends a command, and returns its answer. Calls `progress` for each line before. A program
    /// that has closed its control socket, and is about to open it again, is asked again.
    pub fn ask<A: for<'a> From<Words<'a>>>(
        self,
        command: &Command,
        mut progress: impl FnMut(),
    ) -> Result<A, AskError> {
        let mut connection = self.connect(Instant::now() + LONGEST_REOPENING)?;
        let mut answer = connection.ask(command, &mut progress);
        let deadline = Instant::now() + LONGEST_REOPENING;
        while answer.as_ref().is_err_and(AskError::is_lost) && Instant::now() < deadline {
            std::thread::sleep(PACE);
            let Ok(mut connection) = self.connect(deadline) else { break };
            answer = connection.ask(command, &mut progress);
        }
        answer
    }

    /// Connects to its control socket. If nobody listens under its name, tries again until the
    /// deadline: a program that closes all its descriptors is about to open its socket again.
    fn connect(self, deadline: Instant) -> Result<Connection, AskError> {
        let user = self.user().ok_or(AskError::Ended)?;
        loop {
            let (mut denied, mut closed) = (false, false);
            for path in self.sockets(user) {
                match UnixStream::connect(&path) {
                    Ok(stream) if listener(&stream) == Some(self.pid) => {
                        return Connection::new(stream, LONGEST_SILENCE)
                            .map_err(AskError::Unanswered);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        denied |= error.kind() == io::ErrorKind::PermissionDenied;
                        closed |= error.kind() == io::ErrorKind::ConnectionRefused;
                    }
                }
            }
            if !closed || Instant::now() >= deadline {
                let own = rustix::process::geteuid().as_raw();
                let is_other = denied || (own != 0 && own != user);
                let refusal = AskError::OtherUser(user);
                return Err(if is_other { refusal } else { AskError::NotListening });
            }
            std::thread::sleep(PACE);
            if !self.is_running() {
                return Err(AskError::Ended);
            }
        }
    }

    /// Where its socket may be.
    fn sockets(self, user: u32) -> Vec<PathBuf> {
        let mut directories = vec![
            Some(PathBuf::from(format!("/run/user/{user}"))),
            std::env::var_os(RUNTIME_DIRECTORY).map(PathBuf::from),
            self.variable(RUNTIME_DIRECTORY).map(PathBuf::from),
        ];
        directories.retain(|directory| directory.as_ref().is_some_and(|path| path.is_absolute()));
        let below = directories.iter().flatten().map(|path| socket::in_runtime_directory(path));
        let mut directories: Vec<_> = below.chain([socket::in_tmp(user)]).collect();
        directories.dedup();
        let here = directories.iter().map(|path| path.join(socket::name(self.pid)));
        // In a container it has another number and another root.
        let (root, inner) = (self.file("root"), self.innermost_pid());
        let there = directories.iter().filter_map(|path| {
            let path = path.strip_prefix("/").ok()?;
            Some(root.join(path).join(socket::name(inner)))
        });
        here.chain(there).collect()
    }
}

/// The process that listens at the other end; `None` if it is in a namespace that this one
/// does not see.
pub(crate) fn listener(stream: &UnixStream) -> Option<u32> {
    let credentials = socket_peercred(stream).ok()?;
    u32::try_from(credentials.pid.as_raw_nonzero().get()).ok()
}

/// A connection to a control socket.
pub(crate) struct Connection {
    stream: BufReader<UnixStream>,
}

impl Connection {
    /// Uses a stream that is connected. No single wait is longer than `silence`.
    pub(crate) fn new(stream: UnixStream, silence: Duration) -> io::Result<Connection> {
        stream.set_read_timeout(Some(silence))?;
        stream.set_write_timeout(Some(silence))?;
        Ok(Connection { stream: BufReader::new(stream) })
    }

    /// Sends a command. Calls `progress` for each line before the answer, and returns
    /// the answer.
    pub(crate) fn ask<A: for<'a> From<Words<'a>>>(
        &mut self,
        command: &Command,
        progress: &mut impl FnMut(),
    ) -> Result<A, AskError> {
        let sent = self.stream.get_mut().write_all(format!("{command}\n").as_bytes());
        sent.map_err(AskError::Unanswered)?;
        loop {
            match Reply::parse(&self.line().map_err(AskError::Unanswered)?) {
                Some(Reply::Done(words)) => return Ok(Words(words.as_bytes()).into()),
                Some(Reply::Refused(why)) => return Err(AskError::Refused(why)),
                Some(Reply::Wait(_)) | None => progress(),
            }
        }
    }

    /// The next line, without its end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        let mut read = self.stream.by_ref().take(MAX_LINE as u64 + 1);
        read.read_until(b'\n', &mut line)?;
        match line.pop() {
            Some(b'\n') => Ok(line),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_control::{Flushed, Taken};

    #[test]
    fn sockets_are_looked_for_here_and_in_containers() {
        let own = Process::of(std::process::id()).unwrap();
        let (pid, user) = (own.pid, own.user().unwrap());
        let sockets = own.sockets(user);
        let name = socket::name(pid);
        assert!(sockets.contains(&socket::in_tmp(user).join(&name)), "{sockets:?}");
        let there = format!("/proc/{pid}/root/tmp/heaptap-{user}");
        assert!(sockets.iter().any(|path| path.starts_with(&there)), "{sockets:?}");
        assert!(sockets.iter().all(|path| path.is_absolute()), "{sockets:?}");
    }

    #[test]
    fn answers_are_told_apart() {
        fn ask<A: for<'a> From<Words<'a>>>(answer: &[u8]) -> (Result<A, AskError>, usize) {
            let (client, mut server) = UnixStream::pair().unwrap();
            server.write_all(answer).unwrap();
            server.shutdown(std::net::Shutdown::Write).unwrap();
            let mut lines = 0;
            let mut connection = Connection::new(client, Duration::from_secs(20)).unwrap();
            let answer = connection.ask(&Command::Status, &mut || lines += 1);
            (answer, lines)
        }
        assert!(matches!(ask(b"ok\n"), (Ok(Flushed {}), 0)));
        let (taken, lines) = ask::<Taken>(b"wait 1\nlater version\nok blocks=1 new=2\n");
        assert_eq!((taken.unwrap(), lines), (Taken { blocks: 1, ..Taken::default() }, 2));
        let (refused, _) = ask::<Taken>(b"error no, thanks\n");
        assert!(matches!(refused, Err(AskError::Refused(why)) if why == "no, thanks"));
        assert!(ask::<Flushed>(b"").0.unwrap_err().is_lost());
        assert!(ask::<Flushed>(b"ok without an end").0.unwrap_err().is_lost());
    }

    fn ask(connection: &mut Connection) -> AskError {
        connection.ask::<Flushed>(&Command::Flush, &mut || {}).unwrap_err()
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let (client, mut server) = UnixStream::pair().unwrap();
        let flood = std::thread::spawn(move || while server.write_all(&[b'x'; 4096]).is_ok() {});
        let mut connection = Connection::new(client, Duration::from_secs(20)).unwrap();
        assert!(ask(&mut connection).is_lost());
        drop(connection);
        flood.join().unwrap();
    }

    #[test]
    fn silence_ends_the_wait() {
        let (client, _server) = UnixStream::pair().unwrap();
        let mut connection = Connection::new(client, Duration::from_millis(50)).unwrap();
        let error = ask(&mut connection);
        assert!(!error.is_lost());
        assert_eq!(error.to_string(), "it does not answer");
    }
}
