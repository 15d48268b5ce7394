//! `/debug/pprof/heap` and `/debug/pprof/allocs` of `heaptap serve`, asked by `go tool pprof`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use flate2::read::GzDecoder;
use heaptap_trace::Format;
use serde_json::Value;

use crate::consumers::{have, text};
use crate::program::{Place, heaptap};
use crate::serve::Server;
use crate::top::PretendedWriter;
use crate::traces::workload;

/// What `go tool pprof -top` prints of an address of the server, in bytes or objects: the total,
/// and each row with its own value and its name.
fn pprof(place: &Place, server: &Server, path: &str, value: &str) -> (f64, Vec<(f64, String)>) {
    let mark = if path.contains('?') { '&' } else { '?' };
    let url = format!("http://{}{path}{mark}token={}", server.address, server.token);
    let run = Command::new("go")
        .args(["tool", "pprof", "-top", "-nodecount=1000", "-nodefraction=0"])
        .args(["-unit=B", &format!("-sample_index={value}"), &url])
        .env("PPROF_TMPDIR", place.path("pprof"))
        .env("HOME", place.path(""))
        .output()
        .unwrap();
    let out = text(&run);
    let number = |text: &str| -> f64 { text.trim_end_matches('B').parse().expect(text) };
    // Showing nodes accounting for 5B, 100% of 5B total
    let total = out.lines().find_map(|line| line.strip_suffix(" total")).expect(&out);
    let total = number(total.rsplit(' ').next().unwrap());
    let rows = out.lines().skip_while(|line| !line.contains("flat%")).skip(1);
    let row = |line: &str| {
        let mut words = line.split_whitespace();
        (number(words.next().unwrap()), words.skip(4).collect::<Vec<_>>().join(" "))
    };
    (total, rows.map(row).collect())
}

fn total(path: &std::path::Path, metric: &str) -> f64 {
    let report = heaptap(&format!("report --json --metric {metric}"), &[path]);
    let report: Value = serde_json::from_slice(&report.out).unwrap();
    report["table"]["total"]["bytes"].as_f64().unwrap()
}

/// Each stack is rounded, and pprof rounds what it prints.
#[track_caller]
fn assert_close(what: &str, found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-3 * expected + 100.0, "{what}: {found} for {expected}");
}

#[test]
fn go_tool_pprof_reads_a_program_while_it_runs() {
    let Some(()) = have("go", "version") else { return };
    let place = Place::new();
    let path = place.path("grows.ctf");
    let mut file = File::create(&path).unwrap();
    let writer = PretendedWriter::start(&path);
    let trace = writer.trace();
    file.write_all(&trace[..trace.len() / 2]).unwrap();
    let server = Server::start("--live", &[&path]);
    while server.get("/debug/pprof/heap").status != 200 {
        thread::sleep(Duration::from_millis(20));
    }
    let (live, rows) = pprof(&place, &server, "/debug/pprof/heap?gc=1&debug=0", "inuse_space");
    assert_close("inuse_space", live, total(&path, "live"));
    assert!(rows.len() > 5 && rows.iter().any(|(_, name)| name.contains(".function_")), "{rows:?}");
    let (before, _) = pprof(&place, &server, "/debug/pprof/allocs", "alloc_space");
    assert_close("alloc_space", before, total(&path, "allocated"));
    // As many samples as words were sampled, of blocks of three words and a header.
    let (objects, _) = pprof(&place, &server, "/debug/pprof/allocs", "alloc_objects");
    assert_close("alloc_objects", objects, before / 8.0 / 4.0);
    let (objects, _) = pprof(&place, &server, "/debug/pprof/heap", "inuse_objects");
    assert_close("inuse_objects", objects, live / 8.0 / 4.0);

    // What is written while it waits is in the difference, and nothing else.
    let (rest, mut growing) = (trace[trace.len() / 2..].to_vec(), file.try_clone().unwrap());
    let growth = thread::spawn(move || {
        thread::sleep(Duration::from_millis(700));
        growing.write_all(&rest).unwrap();
    });
    let (change, _) = pprof(&place, &server, "/debug/pprof/allocs?seconds=3", "alloc_space");
    growth.join().unwrap();
    assert_close("the change", change, total(&path, "allocated") - before);
    let unchanged = server.get("/debug/pprof/heap?seconds=1");
    let mut profile = Vec::new();
    GzDecoder::new(&unchanged.body[..]).read_to_end(&mut profile).unwrap();
    // A sample begins with the tag of its field, and there is none.
    assert!(!profile.is_empty() && profile[0] != 0x12, "{:?}", &profile[..8]);
}

#[test]
fn what_is_no_profile_is_refused_in_words() {
    let place = Place::new();
    let path = place.file("t.ctf", &workload(Format::V3, 1, 300, 5));
    let complete = Server::start("", &[&path]);
    complete.status();
    let refused = complete.get("/debug/pprof/heap");
    assert_eq!(refused.status, 404);
    assert!(refused.text().contains("heaptap export FILE --to pprof"), "{}", refused.text());
    let server = Server::start("--live", &[&path]);
    for (query, part) in [
        ("debug=1", "only 0"),
        ("seconds=0", "from 1 to 3600"),
        ("seconds=-5", "from 1 to 3600"),
        ("gc=yes", "0 or 1"),
        ("rate=2", "parameters"),
    ] {
        let refused = server.get(&format!("/debug/pprof/allocs?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert!(refused.text().contains(part), "{query}: {}", refused.text());
    }
    assert_eq!(server.get("/debug/pprof/heap?trace=1").status, 404);
    assert_eq!(server.get("/debug/pprof/goroutine").status, 404);
    assert!(server.get("/debug/pprof/").text().contains("/debug/pprof/allocs"));
    let host = format!("Host: {}", server.address);
    let stranger =
        server.send(format!("GET /debug/pprof/heap HTTP/1.1\r\n{host}\r\n\r\n").as_bytes());
    assert_eq!(stranger.status, 403);
}

/// Whoever collects profiles notices that a program has ended, and its last profile can be had.
#[test]
fn a_program_that_has_ended_has_no_profile_but_its_last() {
    let place = Place::new();
    let path = place.path("t.ctf");
    let mut writer = PretendedWriter::start(&path);
    std::fs::write(&path, writer.trace()).unwrap();
    let server = Server::start("--live", &[&path]);
    while server.get("/debug/pprof/heap").status != 200 {
        thread::sleep(Duration::from_millis(20));
    }
    writer.0.kill().unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    let refused = loop {
        let answer = server.get("/debug/pprof/heap");
        if answer.status != 200 {
            break answer;
        }
        assert!(Instant::now() < deadline, "it is not noticed");
        thread::sleep(Duration::from_millis(20));
    };
    assert_eq!(refused.status, 410);
    assert!(
        refused.text().contains("ended") && refused.text().contains("final=1"),
        "{}",
        refused.text()
    );
    assert_eq!(server.get("/debug/pprof/allocs?seconds=1").status, 410);
    let last = server.get("/debug/pprof/heap?final=1");
    assert_eq!((last.status, &last.body[..2]), (200, &b"\x1f\x8b"[..]));
    assert_eq!(server.get("/debug/pprof/heap?final=2").status, 400);
}
