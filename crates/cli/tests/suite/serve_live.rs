//! `heaptap serve` with a trace that is still being written.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use heaptap_query::Engine;
use heaptap_trace::{Completion, Format, TraceInfo};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::program::{Place, heaptap};
use crate::serve::Server;
use crate::top::{Locker, PretendedWriter};
use crate::traces::{Sources, Writer, small_block, trace_info, workload};

impl Server {
    /// The state of the first trace, once it is this one.
    #[track_caller]
    fn reaches(&self, state: &str) -> Value {
        self.until(|live| live["state"] == state)
    }

    /// The state of the first trace, once this holds.
    #[track_caller]
    fn until(&self, holds: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let status = self.get("/status").json();
            let live = &status[0]["live"];
            if holds(live) {
                return live.clone();
            }
            assert!(Instant::now() < deadline, "{status}");
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// What the page shows of the first trace: the answer to a question about it.
    fn shown(&self, question: &Value) -> Value {
        let answer = self.get("/trace/0");
        assert_eq!(answer.status, 200, "{:?}", answer.body);
        let mut archive = Vec::new();
        GzDecoder::new(&answer.body[..]).read_to_end(&mut archive).unwrap();
        let mut engine = Engine::default();
        engine.open(&archive).unwrap();
        serde_json::from_str(&engine.query(question.to_string().as_bytes())).unwrap()
    }

    fn events(&self) -> u64 {
        self.shown(&json!({ "q": "info", "trace": 0 }))["events"].as_u64().unwrap()
    }
}

/// The rows and totals of the page are those of the command line.
#[track_caller]
fn agrees_with_report(server: &Server, path: &Path) {
    for metric in ["live", "allocated", "peak"] {
        let report = heaptap(&format!("report --json --top 0 --metric {metric}"), &[path]);
        let report: Value = serde_json::from_slice(&report.out).unwrap();
        let shown = server.shown(&json!({
            "q": "report", "trace": 0, "filter": {}, "metric": metric, "by": "function", "top": 0
        }));
        assert_eq!(shown["totals"], report["totals"], "{metric}");
        assert_eq!(shown["table"]["rows"], report["table"]["rows"], "{metric}");
        assert!(!report["table"]["rows"].as_array().unwrap().is_empty());
    }
}

#[test]
fn a_trace_is_followed_until_its_writer_is_killed() {
    let place = Place::new();
    let path = place.path("grows.ctf");
    let mut file = File::create(&path).unwrap();
    let mut writer = PretendedWriter::start(&path);
    let mut trace = writer.trace();
    // As the plugin marks a trace while it writes it.
    let mark = Completion::OFFSET as usize;
    trace[mark..mark + 4].copy_from_slice(&Completion::Unfinished.bytes());
    let server = Server::start("--live", &[&path]);
    assert_eq!(server.reaches("reading")["state"], "reading");
    assert_eq!(server.get("/trace/0").status, 503);
    file.write_all(&trace[..trace.len() / 2]).unwrap();
    let half = server.reaches("live");
    let events = server.events();
    assert!(events > 0);
    // Nothing is new while nothing is written.
    thread::sleep(Duration::from_millis(300));
    assert_eq!(server.reaches("live"), half);
    file.write_all(&trace[trace.len() / 2..trace.len() - 9]).unwrap();
    server.until(|live| live["version"] != half["version"]);
    server.until(|_| server.events() > events);
    let refused = server.exact(&json!({
        "q": "report", "trace": 0, "filter": {}, "metric": "live", "by": "function", "top": 5
    }));
    assert!(refused["error"].as_str().unwrap().contains("followed while it is written"));
    writer.0.kill().unwrap();
    server.reaches("killed");
    let end = server.shown(&json!({ "q": "info", "trace": 0 }));
    assert!(end["cut_short"].as_str().unwrap().contains("killed"), "{end}");
    agrees_with_report(&server, &path);
}

#[test]
fn another_trace_of_the_same_name_is_shown() {
    let place = Place::new();
    let path = place.path("t.ctf");
    let writer = PretendedWriter::start(&path);
    let trace = writer.trace();
    fs::write(&path, &trace[..trace.len() / 3]).unwrap();
    let server = Server::start("--live", &[&path]);
    let first = server.reaches("live");
    let events = server.events();
    fs::rename(&path, place.path("old.ctf")).unwrap();
    fs::write(&path, workload(Format::V3, 1, 200, 3)).unwrap();
    server.until(|live| live["version"] != first["version"]);
    server.until(|_| server.events() != events);
    let info = server.shown(&json!({ "q": "info", "trace": 0 }));
    assert_eq!(info["pid"], trace_info().pid, "{info}");
}

#[test]
fn several_domains_have_the_figures_of_a_report_at_the_end() {
    let place = Place::new();
    // The writer is known, and gone.
    let path = place.file("t.ctf", &trace_of(u32::MAX, 5));
    let server = Server::start("--live", &[&path]);
    server.reaches("ended");
    agrees_with_report(&server, &path);
}

/// A trace of several domains that this process of this machine is said to have written.
fn trace_of(pid: u32, domains: u16) -> Vec<u8> {
    let host = fs::read("/proc/sys/kernel/hostname").unwrap().trim_ascii_end().to_vec();
    let info = TraceInfo { pid: pid.into(), host, ..trace_info() };
    let mut writer = Writer::of(Format::V3, &info);
    for turn in 0..5000_u64 {
        let domain = (turn % u64::from(domains)) as u16;
        let frames = [Sources::FIRST, Sources::FIRST + 1 + turn % 12];
        let id = writer.alloc(domain, small_block(), &frames);
        if turn % 3 == 0 {
            writer.collect(domain, id);
        }
    }
    writer.finish()
}

#[test]
fn a_pipe_is_followed_to_its_end() {
    let trace = workload(Format::V2, 1, 5000, 9);
    let place = Place::new();
    let path = place.file("t.ctf", &trace);
    let mut server = Server::start_reading("--live -", &[], Stdio::piped());
    let mut pipe = server.child.stdin.take().unwrap();
    pipe.write_all(&trace[..trace.len() / 2]).unwrap();
    server.reaches("live");
    let events = server.events();
    pipe.write_all(&trace[trace.len() / 2..]).unwrap();
    drop(pipe);
    server.reaches("ended");
    assert!(server.events() > events);
    agrees_with_report(&server, &path);
}

#[test]
fn a_file_that_its_program_has_open_is_followed_without_being_asked() {
    let place = Place::new();
    let path = place.path("own.ctf");
    let trace = trace_of(std::process::id(), 1);
    let mut file = File::create(&path).unwrap();
    file.write_all(&trace[..trace.len() / 2]).unwrap();
    let server = Server::start("", &[&path]);
    server.reaches("live");
    let events = server.events();
    file.write_all(&trace[trace.len() / 2..]).unwrap();
    server.until(|_| server.events() > events);
    drop(file);
    // Nobody has it open any more, so it is a trace like others.
    let server = Server::start("", &[&path]);
    assert!(server.status()[0].get("live").is_none());
}

/// Its number names a process here too, or that of nobody: what shows the writer is its lock.
#[test]
fn a_file_that_is_written_in_another_namespace_is_followed() {
    let place = Place::new();
    let path = place.file("t.ctf", &trace_of(u32::MAX, 1));
    let locker = Locker::start(&path);
    let server = Server::start("", &[&path]);
    server.reaches("live");
    drop(locker);
    server.reaches("ended");
    let path = place.file("reused.ctf", &trace_of(1, 1));
    let server = Server::start("", &[&path]);
    assert!(server.status()[0].get("live").is_none());
}

#[test]
fn a_number_is_a_process() {
    let place = Place::new();
    let path = place.path("t.ctf");
    let writer = PretendedWriter::start(&path);
    fs::write(&path, writer.trace()).unwrap();
    let number = writer.0.id().to_string();
    let server = Server::start(&number, &[]);
    server.reaches("live");
    heaptap("serve --no-open 4294967294", &[]).says(2, &["no process 4294967294"]);
    // A file of that name comes first.
    let path = place.file("4294967294", &trace_of(u32::MAX, 1));
    assert!(Server::start("", &[&path]).status()[0].get("live").is_none());
}

#[test]
fn a_server_that_is_started_again_has_its_token() {
    let place = Place::new();
    let path = place.file("t.ctf", &workload(Format::V3, 1, 100, 4));
    let token_file = place.path("token");
    let options = format!("--token-file {}", token_file.display());
    let first = Server::start(&options, &[&path]);
    let (port, token) = (first.address.port(), first.token.clone());
    assert_eq!(first.stop(Signal::INT).0, Some(0));
    let again = Server::start(&format!("{options} --port {port}"), &[&path]);
    assert_eq!(again.token, token);
    let header = format!("Host: {}\r\nAuthorization: Bearer {token}", again.address);
    let by_header = again.send(format!("GET /status HTTP/1.1\r\n{header}\r\n\r\n").as_bytes());
    assert_eq!(by_header.status, 200);
    let wrong = header.replace("Bearer ", "Bearer 0");
    let refused = again.send(format!("GET /status HTTP/1.1\r\n{wrong}\r\n\r\n").as_bytes());
    assert_eq!(refused.status, 403);
}

#[test]
fn what_cannot_be_followed_is_explained_before_anything_listens() {
    let place = Place::new();
    let none = place.path("nowhere.ctf");
    heaptap("serve --no-open --live", &[&none]).says(2, &["nowhere.ctf", "no such file"]);
    let text = place.file("text", b"this is not a trace at all");
    heaptap("serve --no-open --live", &[&text]).says(2, &["not a memtrace file"]);
    heaptap("serve --no-open --live 4294967294", &[]).says(2, &["no process 4294967294"]);
    heaptap("serve --no-open --live", &[&place.path("")]).says(2, &["is a directory"]);
    heaptap("serve --no-open", &[]).says(2, &["no trace is named"]);
    let many = " --live -".repeat(9);
    heaptap(&format!("serve --no-open{many}"), &[]).says(2, &["at most 8"]);
    // A pipe is read only once, so what is wrong with it shows when it is read.
    heaptap("serve --no-open --live -", &[]).says(2, &["standard input", "empty"]);
}
