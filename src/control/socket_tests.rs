//! The socket as clients see it: what they send, who they are, and what a fork does.

use super::*;
use crate::control::process::RuntimeSupport;
use crate::control::settings::Settings;
use crate::snapshot::{Order, SnapshotError, Taken};
use crate::sys::testing::{in_a_fork, in_a_process};
use heaptap_control::{CLIENT_SECONDS, MAX_LINE};
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::time::Instant;
use tempfile::TempDir;

fn user() -> u32 {
    // SAFETY: takes no arguments and cannot fail.
    unsafe { libc::geteuid() }
}

/// A process that takes commands on a socket in a directory of its own.
struct Listening {
    _directory: TempDir,
    path: PathBuf,
    process: &'static Process,
}

/// What a snapshot of the test program is.
fn taken(order: &Order) -> Result<Taken, SnapshotError> {
    let Order { path, method, .. } = order;
    match path.to_str() {
        Some("/full") => {
            let error = io::Error::from_raw_os_error(libc::ENOSPC);
            Err(SnapshotError::File(path.clone(), error))
        }
        Some("/panic") => panic!("on purpose"),
        Some("/slow") => {
            std::thread::sleep(Duration::from_millis(2500));
            Err(SnapshotError::NoSafePoint(order.patience))
        }
        Some("/endless") => {
            while !order.cancellation.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            Err(SnapshotError::Cancelled)
        }
        _ => Ok(Taken {
            path: path.clone(),
            method: *method,
            blocks: 1,
            words: 2,
            roots: u64::from(order.string_bytes),
            bytes: 4,
            pause: Duration::from_micros(5),
        }),
    }
}

impl Listening {
    fn new(refusal: Option<&str>) -> Listening {
        let directory = tempfile::tempdir().unwrap();
        let support = RuntimeSupport::of_test(refusal);
        let process = Process::new(&Settings::default(), support, taken);
        let process = &*Box::leak(Box::new(process));
        let own = directory.path().join("own");
        let listener = open_in(&[own], user(), process.pid).unwrap().unwrap();
        let listener = &*Box::leak(Box::new(listener));
        let path = listener.path().to_owned();
        let serve = move |_| Server::new(process, listener, user(), open_again).run();
        thread::start("test-control", serve).unwrap();
        Listening { _directory: directory, path, process }
    }

    fn connect(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// All lines that come back.
    fn ask(&self, line: &[u8]) -> Vec<String> {
        let mut stream = self.connect();
        // A line that is too long may be answered before all of it is sent.
        let _ = stream.write_all(line);
        BufReader::new(stream).lines().map_while(Result::ok).collect()
    }

    fn last(&self, line: &[u8]) -> String {
        self.ask(line).pop().unwrap_or_default()
    }
}

#[test]
fn commands_are_answered() {
    let listening = Listening::new(None);
    for number in 0..20 {
        let line = format!("snapshot /tmp/{number}%20x strings={number}\n");
        let expected = format!(
            "ok file=/tmp/{number}%20x blocks=1 words=2 roots={number} bytes=4 pause_us=5 \
             method=copy-on-write"
        );
        assert_eq!(listening.ask(line.as_bytes()), [expected]);
    }
    assert!(listening.last(b"snapshot /x sync\n").ends_with("method=synchronous"));
    let status = listening.last(b"status\n");
    let pid = std::process::id();
    assert!(status.starts_with(&format!("ok pid={pid} program=")), "{status}");
    assert!(status.contains(&format!(" version={} ", crate::VERSION)), "{status}");
    assert!(listening.last(b"flush\n").starts_with("error the program is not traced"));
    assert_eq!(listening.last(b"start /x\n"), "error this is a test");
    assert_eq!(listening.last(b"stop wait=1\n"), "error this is a test");
    assert!(listening.last(b"mark text\n").starts_with("error the program is not traced"));
    assert!(status.contains(" sessions=no:%20this%20is%20a%20test state=idle rate=0 "), "{status}");
    let unknown = listening.last(b"strat /x\n");
    assert!(unknown.starts_with("error unknown command `strat`; known are: snap"), "{unknown}");
}

#[test]
fn failures_are_answered_with_their_reason() {
    let listening = Listening::new(None);
    let full = listening.last(b"snapshot /full\n");
    assert!(full.starts_with("error /full: No space left"), "{full}");
    let defect = listening.last(b"snapshot /panic\n");
    assert!(defect.starts_with("error a defect in heaptap"), "{defect}");
    assert!(listening.last(b"snapshot /x\n").starts_with("ok "), "it still answers");
    let refusing = Listening::new(Some("its runtime is too old"));
    assert_eq!(refusing.last(b"snapshot /x\n"), "error its runtime is too old");
    let status = refusing.last(b"status\n");
    assert!(
        status.contains("runtime=test trace= snapshots=no:%20its%20runtime%20is%20too%20old "),
        "{status}"
    );
}

#[test]
fn a_client_that_waits_gets_lines() {
    let lines = Listening::new(None).ask(b"snapshot /slow wait=7\n");
    assert_eq!(lines[..2], ["wait 1", "wait 2"]);
    assert!(lines[2].starts_with("error ") && lines[2].contains("within 7 s"), "{lines:?}");
}

#[test]
fn hostile_lines_do_no_harm() {
    let listening = Listening::new(None);
    let long = [&vec![b'x'; MAX_LINE + 10][..], b"\n"].concat();
    let path = [b"snapshot /", &vec![b'%'; 5000][..], b"\n"].concat();
    for line in
        [&b"\n"[..], b"\0\0\0\n", b"\xff\xfe\n", b"snapshot %\n", b"snapshot\n", &long, &path]
    {
        let answer = listening.last(line);
        assert!(answer.starts_with("error "), "{answer}");
    }
    // Clients that go away at once, or in the middle of a line.
    for line in [&b""[..], b"snap", b"snapshot /x"] {
        let mut stream = listening.connect();
        stream.write_all(line).unwrap();
        drop(stream);
    }
    // Of several lines the first counts.
    assert_eq!(listening.ask(b"flush\nsnapshot /x\n").len(), 1);
    assert!(listening.last(b"snapshot /x\n").starts_with("ok "));
}

#[test]
fn what_is_in_progress_ends_before_the_program_does() {
    let listening = Listening::new(None);
    let mut stream = listening.connect();
    stream.write_all(b"snapshot /slow\n").unwrap();
    let mut lines = BufReader::new(stream).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "wait 1");
    listening.process.finish(Duration::from_secs(30));
    let rest: Vec<_> = lines.map_while(Result::ok).collect();
    assert!(rest.last().unwrap().starts_with("error "), "{rest:?}");
    assert_eq!(listening.last(b"snapshot /x\n"), "error the program exits");
}

/// A client of the test waits this long for what should come at once.
const LONG: Duration = Duration::from_secs(20);

/// Waits until `holds` does.
fn soon(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn silent_clients_delay_nobody() {
    let listening = Listening::new(None);
    let silent: Vec<_> = (0..3).map(|_| listening.connect()).collect();
    let start = Instant::now();
    assert!(listening.last(b"status\n").starts_with("ok "));
    assert!(listening.last(b"snapshot /x\n").starts_with("ok "));
    let limit = Duration::from_secs(CLIENT_SECONDS);
    assert!(start.elapsed() < limit, "{:?}", start.elapsed());
    drop(silent);
    // More than there are places for.
    let _silent: Vec<_> = (0..120).map(|_| listening.connect()).collect();
    let start = Instant::now();
    assert!(listening.last(b"status\n").starts_with("ok "));
    assert!(start.elapsed() < limit, "{:?}", start.elapsed());
}

#[test]
fn a_client_that_gives_way_or_is_late_is_told_so() {
    let listening = Listening::new(None);
    let mut first = BufReader::new(listening.connect());
    let start = Instant::now();
    let others: Vec<_> = (0..40).map(|_| listening.connect()).collect();
    let mut line = String::new();
    first.read_line(&mut line).unwrap();
    assert_eq!(line, "error too many clients are connected; try again\n");
    assert!(start.elapsed() < Duration::from_secs(CLIENT_SECONDS));
    drop(others);
    let late = listening.ask(b"half a line");
    assert_eq!(late, ["error no line came within 5 s"]);
}

#[test]
fn a_snapshot_in_progress_delays_no_other_command() {
    let listening = Listening::new(None);
    let mut waiting = listening.connect();
    waiting.write_all(b"snapshot /endless\n").unwrap();
    let mut lines = BufReader::new(waiting.try_clone().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "wait 1");
    assert_eq!(listening.ask(b"status\n").len(), 1);
    assert!(listening.last(b"flush\n").starts_with("error the program is not traced"));
    // Others wait for their turn, and there is a limit.
    let queue: Vec<_> = (0..20)
        .map(|_| {
            let mut stream = listening.connect();
            stream.write_all(b"snapshot /x\n").unwrap();
            stream
        })
        .collect();
    let (refused, queue) = queue.split_last().unwrap();
    let refused = BufReader::new(refused).lines().next().unwrap().unwrap();
    assert_eq!(refused, "error 8 clients wait for the same already; try again later");
    // With the first client goes its snapshot, and the others get theirs.
    drop((lines, waiting));
    let answers = queue.iter().map(|stream| BufReader::new(stream).lines());
    let answers = answers.map(|lines| lines.map_while(Result::ok).last().unwrap());
    assert_eq!(answers.filter(|answer| answer.starts_with("ok ")).count(), 7);
}

#[test]
fn a_client_that_goes_away_cancels_what_it_has_asked_for() {
    let listening = Listening::new(None);
    let is_idle = || listening.process.is_idle();
    let mut client = listening.connect();
    client.write_all(b"snapshot /endless wait=3600\n").unwrap();
    soon("it begins", || !is_idle());
    // It only says that it sends no more.
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut lines = BufReader::new(client.try_clone().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "wait 1");
    assert!(!is_idle());
    drop((lines, client));
    soon("it is cancelled", is_idle);
    assert!(listening.last(b"snapshot /x\n").starts_with("ok "));
}

#[test]
fn a_line_has_a_limit_and_is_answered() {
    let listening = Listening::new(None);
    let line = |length: usize| [&vec![b'x'; length][..], b"\n"].concat();
    // Read to the end: after the answer the connection ends, and is not reset.
    let ask = |line: &[u8]| {
        let mut stream = listening.connect();
        stream.write_all(line).unwrap();
        let mut answer = String::new();
        io::Read::read_to_string(&mut stream, &mut answer).unwrap();
        answer
    };
    assert!(ask(&line(MAX_LINE)).starts_with("error unknown command `xxx"));
    let too_long = "error a line has at most 16384 bytes before its newline\n";
    assert_eq!(ask(&line(MAX_LINE + 1)), too_long);
    assert_eq!(ask(&line(8 * MAX_LINE)), too_long);
    // More lines than one, of which the first counts.
    assert!(ask(&[b"status\n", &line(100_000)[..]].concat()).starts_with("ok "));
}

#[test]
fn other_users_are_refused_and_root_is_not() {
    assert!(crate::control::answer::may_command(7, 7));
    assert!(crate::control::answer::may_command(0, 7));
    assert!(!crate::control::answer::may_command(7, 8));
    assert!(!crate::control::answer::may_command(7, 0));
    if user() != 0 {
        return;
    }
    in_a_process(module_path!(), "other_users_are_refused_and_root_is_not", || {
        let listening = Listening::new(None);
        // Modes that would let anybody connect.
        for path in [&listening.path, &listening.path.parent().unwrap().to_owned()] {
            fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        }
        let directory = listening.path.parent().unwrap().parent().unwrap();
        fs::set_permissions(directory, Permissions::from_mode(0o777)).unwrap();
        in_a_fork(|| {
            // SAFETY: takes a number; changes the child only.
            assert_eq!(unsafe { libc::setuid(65_534) }, 0);
            let answer = listening.last(b"snapshot /x\n");
            assert!(answer.starts_with("error the process belongs to the user 0"), "{answer}");
        });
    });
}

#[test]
fn a_socket_that_was_left_is_replaced_but_not_one_in_use() {
    let place = tempfile::tempdir().unwrap();
    let directory = [place.path().join("own")];
    let left = directory[0].join(name(7));
    make_private(&directory[0], user()).unwrap();
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    let first = open_in(&directory, user(), 7).unwrap().expect("nobody listens");
    // The kernel names this process, which is not 7.
    let error = open_in(&directory, user(), 7).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("another namespace") && error.contains("7.sock"), "{error}");
    drop(first);
    let own = std::process::id();
    let _again = open_in(&directory, user(), own).unwrap().expect("nobody listens");
    assert!(open_in(&directory, user(), own).unwrap().is_none(), "another copy of the library");
}

#[test]
fn the_directory_is_private_or_the_next_is_used() {
    let place = tempfile::tempdir().unwrap();
    let [shared, link, file, own] =
        ["shared", "link", "file", "own"].map(|name| place.path().join(name));
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    fs::write(&file, b"").unwrap();
    for directory in [&shared, &link, &file] {
        let error = open_in(std::slice::from_ref(directory), user(), 7).map(|_| ()).unwrap_err();
        assert!(error.to_string().starts_with(directory.to_str().unwrap()), "{error}");
    }
    let long = place.path().join("x".repeat(120));
    let listener = open_in(&[shared, long, own.clone()], user(), 7).unwrap().unwrap();
    assert_eq!(listener.path(), own.join("7.sock"));
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_runtime_directory_must_be_the_users() {
    let place = tempfile::tempdir().unwrap();
    let tmp = in_tmp(user());
    let found = |runtime: Option<&str>| directories(runtime.map(OsString::from), user());
    assert_eq!(found(None), std::slice::from_ref(&tmp));
    assert_eq!(found(Some("relative")), std::slice::from_ref(&tmp));
    assert_eq!(found(Some("/no/such/directory")), std::slice::from_ref(&tmp));
    let own = place.path().join("heaptap");
    assert_eq!(found(place.path().to_str()), [own, tmp]);
    let other = directories(Some(place.path().into()), user() + 1);
    assert_eq!(other, [in_tmp(user() + 1)]);
}

/// Commands with bytes changed, cut and joined: each line gets one answer, and the socket goes on.
#[test]
fn garbage_is_answered_and_harms_nothing() {
    const LINES: [&str; 6] = [
        "start /tmp/%25p.ctf 1e-4 wait=1",
        "stop wait=0.1",
        "mark some text",
        "snapshot /tmp/x.heap strings=9",
        "status",
        "flush",
    ];
    let listening = Listening::new(None);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: usize| {
        // xorshift64 (Marsaglia 2003)
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    for _ in 0..500 {
        let mut line = LINES[next(LINES.len())].as_bytes().to_vec();
        for _ in 0..next(4) {
            let at = next(line.len());
            match next(3) {
                0 => line[at] = next(256) as u8,
                1 => line.truncate(at + 1),
                _ => line.extend_from_slice(LINES[next(LINES.len())].as_bytes()),
            }
        }
        line.retain(|byte| *byte != b'\n');
        line.push(b'\n');
        let answer = listening.last(&line);
        let is_answer = answer.starts_with("ok") || answer.starts_with("error ");
        assert!(is_answer, "{:?}: {answer:?}", String::from_utf8_lossy(&line));
    }
    assert!(listening.last(b"status\n").starts_with("ok pid="));
}
