//! The diagnosis in the web page is that of `heaptap doctor`.

use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heaptap_trace::Format;
use serde_json::Value;

use crate::heap_snapshots::{Flaw, snapshot};
use crate::made_snapshot::made_snapshot;
use crate::page_snapshots::unpacked;
use crate::program::{Place, heaptap};
use crate::serve::Server;
use crate::top::PretendedWriter;
use crate::traces::workload;

/// What `doctor` prints, whatever it finds.
#[track_caller]
fn doctor(files: &[&Path]) -> Value {
    let run = heaptap("doctor --json", files);
    assert!([0, 3, 4].contains(&run.status), "{}", run.err);
    serde_json::from_slice(&run.out).unwrap()
}

impl Server {
    /// The diagnosis with this number, once this holds of it.
    #[track_caller]
    fn diagnosis(&self, number: usize, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let state = self.get(&format!("/diagnosis/{number}")).json();
            if holds(&state) {
                return state;
            }
            assert!(Instant::now() < deadline, "{state}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    #[track_caller]
    fn made(&self, number: usize) -> Value {
        let made = self.diagnosis(number, |state| state["state"] != "waiting");
        assert_eq!((&made["state"], &made["so_far"]), (&"ready".into(), &false.into()), "{made}");
        made["diagnosis"].clone()
    }
}

/// The diagnoses in a page that `export` writes.
fn embedded(options: &str, files: &[&Path], place: &Place) -> Option<Value> {
    let to = place.path("page.html");
    heaptap(&format!("export --to html {options} -o {}", to.display()), files).text(0);
    let page = fs::read_to_string(to).unwrap();
    let (_, rest) = page.split_once("id=\"heaptap-diagnoses\">")?;
    Some(unpacked(&STANDARD.decode(rest.split('<').next().unwrap()).unwrap()))
}

#[test]
fn it_is_what_the_doctor_says_of_the_same_files() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V3, 2, 20_000, 9));
    let heap = place.file("made.heap", &made_snapshot());
    for files in [&[&*trace] as &[&Path], &[&trace, &heap], &[&heap]] {
        let said = doctor(files);
        assert!(!said["verdict"]["sentence"].as_str().unwrap().is_empty());
        let server = Server::start("", files);
        assert_eq!(server.made(0), said, "{files:?}");
        let page = embedded("", files, &place).unwrap();
        assert_eq!(page.as_array().unwrap().len(), 1);
        assert_eq!(page[0]["diagnosis"], said, "{files:?}");
    }
}

#[test]
fn snapshots_beside_a_trace_count_and_those_of_another_trace_do_not() {
    let place = Place::new();
    let first = place.file("one.ctf", &workload(Format::V3, 1, 3000, 1));
    let second = place.file("two.ctf", &workload(Format::V3, 1, 3000, 2));
    place.file("two-1.heap", &made_snapshot());
    // Of process 4711, which has written neither.
    let foreign = place.file("three.heap", &snapshot(Flaw::None));
    let server = Server::start("", &[&first, &second, &foreign]);
    let [one, two] = [0, 1].map(|number| server.made(number));
    assert_eq!(one, doctor(&[&first]));
    assert_eq!(two, doctor(&[&second]));
    let snapshots = |made: &Value| made["examined"]["snapshots"].as_array().unwrap().len();
    assert_eq!([snapshots(&one), snapshots(&two)], [0, 1]);
}

#[test]
fn a_page_of_selected_blocks_has_none() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V3, 1, 3000, 4));
    assert!(embedded("--min-size 64", &[&trace], &place).is_none());
}

#[test]
fn only_who_knows_the_token_gets_it_and_only_that_of_a_trace() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V3, 1, 1000, 3));
    let server = Server::start("", &[&trace]);
    let request = format!("GET /diagnosis/0 HTTP/1.1\r\nHost: {}\r\n\r\n", server.address);
    assert_eq!(server.send(request.as_bytes()).status, 403);
    for path in ["/diagnosis/1", "/diagnosis/", "/diagnosis/-1", "/diagnosis/0/0"] {
        assert_eq!(server.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_pipe_has_none_and_the_page_is_told_why() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V3, 1, 1000, 3));
    let server = Server::start_reading("-", &[], File::open(&trace).unwrap().into());
    let mut piped = Server::start_reading("-", &[], Stdio::piped());
    piped.child.stdin.take().unwrap().write_all(&fs::read(&trace).unwrap()).unwrap();
    for server in [server, piped] {
        let state = server.diagnosis(0, |state| state["state"] != "waiting");
        assert_eq!(state["state"], "failed", "{state}");
        assert!(state["error"].as_str().unwrap().contains("pipe"), "{state}");
        assert_eq!(server.get("/trace/0").status, 200, "nothing else breaks");
    }
}

#[test]
fn of_a_program_that_runs_it_is_what_is_known_so_far() {
    let place = Place::new();
    let path = place.path("grows.ctf");
    let mut writer = PretendedWriter::start(&path);
    let trace = writer.trace();
    fs::write(&path, &trace[..trace.len() / 2]).unwrap();
    let server = Server::start("--live", &[&path]);
    let so_far = server.diagnosis(0, |state| state["state"] != "waiting");
    assert_eq!((&so_far["state"], &so_far["so_far"]), (&"ready".into(), &true.into()), "{so_far}");
    let pid = writer.0.id().to_string();
    if let Some(command) = so_far["diagnosis"]["verdict"]["command"].as_str() {
        assert!(command.contains(&pid), "it can be asked for more: {command}");
    }
    fs::write(&path, &trace).unwrap();
    writer.0.kill().unwrap();
    let end = server.diagnosis(0, |state| state["so_far"] == false);
    assert_eq!(end["diagnosis"], doctor(&[&path]));
}
