//! `heaptap snapshot PID`: what the client sends, what it makes of the answers, and its
//! messages. The other end is played by the test; the real one is tested in the plugin, in
//! `c-tests` and in `ocaml-tests`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::program::{Place, Run};

/// A program that takes commands: this process.
struct Program {
    place: Place,
    server: JoinHandle<Vec<String>>,
}

impl Program {
    /// Answers one connection for each of `answers`, with these bytes; an empty answer
    /// closes the connection. Returns the commands that came.
    fn answering(answers: &'static [&'static [u8]]) -> Program {
        let place = Place::new();
        fs::create_dir(place.path("heaptap")).unwrap();
        let socket = place.path("heaptap").join(format!("{}.sock", std::process::id()));
        let listener = UnixListener::bind(socket).unwrap();
        let server = thread::spawn(move || {
            let mut commands = Vec::new();
            for answer in answers {
                let (stream, _) = listener.accept().unwrap();
                let mut line = String::new();
                BufReader::new(&stream).read_line(&mut line).unwrap();
                commands.push(line.trim_end().to_owned());
                (&stream).write_all(answer).unwrap();
            }
            commands
        });
        Program { place, server }
    }

    /// Asks it, and returns the commands that it got.
    fn asked(self, arguments: &[&str]) -> (Run, Vec<String>) {
        let pid = std::process::id().to_string();
        let arguments: Vec<_> = std::iter::once(&*pid).chain(arguments.iter().copied()).collect();
        let run = snapshot(&self.place.path(""), &arguments);
        (run, self.server.join().unwrap())
    }
}

/// `heaptap snapshot` in a directory, which is also the user's runtime directory.
fn snapshot(directory: &Path, arguments: &[&str]) -> Run {
    let output = Command::new(env!("CARGO_BIN_EXE_heaptap"))
        .arg("snapshot")
        .args(arguments)
        .env("XDG_RUNTIME_DIR", directory)
        .current_dir(directory)
        .output()
        .unwrap();
    Run {
        status: output.status.code().expect("ended by a signal"),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

const DONE: &[u8] =
    b"wait 1\nok blocks=2 words=128 roots=1 bytes=300 pause_us=2500 method=copy-on-write\n";

#[test]
fn a_snapshot_is_asked_for_and_its_figures_are_printed() {
    let program = Program::answering(&[DONE]);
    let file = program.place.path("").canonicalize().unwrap().join("a b%.heap");
    let (run, commands) =
        program.asked(&["-o", "a b%.heap", "--sync", "--with-strings", "--timeout", "7"]);
    let expected = format!("{}: 2 blocks in 1.0 KiB of heap, 1 root, 300 bytes", file.display());
    let text = run.text(0);
    assert!(text.starts_with(&expected), "{text} is not {expected}");
    assert!(text.contains("stood still for 2.5 ms"), "{text}");
    let sent = file.to_str().unwrap().replace('%', "%25").replace(' ', "%20");
    assert_eq!(commands, [format!("snapshot {sent} sync strings=256 wait=7")]);
}

#[test]
fn a_timeout_may_be_less_than_a_second() {
    let program = Program::answering(&[DONE]);
    let (run, commands) = program.asked(&["-o", "/x", "--timeout", "0.6"]);
    run.text(0);
    assert_eq!(commands, ["snapshot /x wait=0.6"]);
}

#[test]
fn without_a_name_the_first_free_one_is_used() {
    let program = Program::answering(&[DONE]);
    let here = program.place.path("").canonicalize().unwrap();
    let own = std::env::current_exe().unwrap();
    let own = own.file_name().unwrap().to_str().unwrap();
    let name = |number: u32| here.join(format!("{own}-{}-{number}.heap", std::process::id()));
    fs::write(name(1), b"").unwrap();
    let (run, commands) = program.asked(&[]);
    run.text(0);
    assert_eq!(commands, [format!("snapshot {} wait=10", name(2).display())]);
}

#[test]
fn a_refusal_is_shown_with_its_reason() {
    let (run, _) = Program::answering(&[b"error the disk is full\n"]).asked(&["-o", "x"]);
    let process = format!("process {} (", std::process::id());
    run.says(2, &[&process, "no snapshot was taken: the disk is full"]);
    assert_eq!(run.out, b"");
}

#[test]
fn a_lost_connection_is_tried_again() {
    let (run, commands) = Program::answering(&[b"", DONE]).asked(&["-o", "x"]);
    run.text(0);
    assert_eq!(commands[0], commands[1]);
    let (run, _) = Program::answering(&[b"", b"wait 1\n"]).asked(&["-o", "x"]);
    run.says(2, &["it ended or closed the connection"]);
}

#[test]
fn a_socket_that_is_about_to_be_opened_again_is_waited_for() {
    let place = Place::new();
    fs::create_dir(place.path("heaptap")).unwrap();
    let socket = place.path("heaptap").join(format!("{}.sock", std::process::id()));
    drop(UnixListener::bind(&socket).unwrap());
    let server = thread::spawn(move || {
        thread::sleep(Duration::from_millis(200));
        let again = socket.with_extension("new");
        let listener = UnixListener::bind(&again).unwrap();
        fs::rename(again, socket).unwrap();
        let (stream, _) = listener.accept().unwrap();
        BufReader::new(&stream).read_line(&mut String::new()).unwrap();
        (&stream).write_all(DONE).unwrap();
    });
    snapshot(&place.path(""), &[&std::process::id().to_string(), "-o", "x"]).text(0);
    server.join().unwrap();
}

#[test]
fn processes_that_cannot_be_asked_are_explained() {
    let place = Place::new();
    // Above the highest id that Linux gives (proc(5), pid_max).
    snapshot(&place.path(""), &["4194305"]).says(2, &["there is no process 4194305"]);
    let mut sleeper = Command::new("sleep").arg("60").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let run = snapshot(&place.path(""), &[&pid]);
    run.says(2, &[&pid, "(sleep)", "takes no commands", "heaptap run", "HEAPTAP_LISTEN=1"]);
    // A socket that a killed process with the same id has left.
    fs::create_dir(place.path("heaptap")).unwrap();
    drop(UnixListener::bind(place.path("heaptap").join(format!("{pid}.sock"))).unwrap());
    snapshot(&place.path(""), &[&pid]).says(2, &["takes no commands"]);
    // Somebody else listens under its name.
    fs::remove_file(place.path("heaptap").join(format!("{pid}.sock"))).unwrap();
    let impostor = UnixListener::bind(place.path("heaptap").join(format!("{pid}.sock"))).unwrap();
    snapshot(&place.path(""), &[&pid]).says(2, &["takes no commands"]);
    drop(impostor);
    sleeper.kill().unwrap();
    sleeper.wait().unwrap();
}

#[test]
fn without_a_process_those_that_listen_are_listed() {
    let status: &[&[u8]] =
        &[b"ok pid=1 program=my%20server runtime=OCaml%204.14.1 trace=/t/a.ctf snapshots=yes\n"];
    let program = Program::answering(status);
    let stale = program.place.path("heaptap").join("4194305.sock");
    drop(UnixListener::bind(&stale).unwrap());
    let run = snapshot(&program.place.path(""), &[]);
    assert_eq!(program.server.join().unwrap(), ["status"]);
    let text = run.text(0);
    let own = std::process::id().to_string();
    let row = text.lines().find(|line| line.trim_start().starts_with(&own)).expect("a row");
    for cell in ["my", "server", "OCaml", "/t/a.ctf", "yes"] {
        assert!(row.contains(cell), "{text}");
    }
    assert!(!stale.exists(), "nobody listens on it");
}

#[test]
fn a_process_is_found_by_the_name_of_its_program() {
    const STATUS: &[u8] = b"ok pid=1 program=my%20server snapshots=yes\n";
    let program = Program::answering(&[STATUS, STATUS, DONE]);
    let place = program.place.path("");
    let none = snapshot(&place, &["another server"]);
    none.says(2, &["another server: no process that takes commands runs it"]);
    snapshot(&place, &["my server", "-o", "/x"]).text(0);
    assert_eq!(program.server.join().unwrap(), ["status", "status", "snapshot /x wait=10"]);
}

#[test]
fn values_that_make_no_sense_are_refused() {
    let place = Place::new();
    for arguments in [
        &["0"][..],
        &["-1"],
        &["server"],
        &["1", "--with-strings=0"],
        &["1", "--with-strings=4097"],
        &["1", "--timeout", "0"],
        &["1", "--timeout", "0.0"],
        &["1", "--timeout", "3600.5"],
        &["1", "--timeout", "soon"],
        &["--sync"],
        &["-o", "x"],
    ] {
        assert_eq!(snapshot(&place.path(""), arguments).status, 2, "{arguments:?}");
    }
    let (run, _) = {
        let program = Program::answering(&[]);
        program.asked(&["-o", "-"])
    };
    run.says(2, &["-o", "name of a file"]);
}
