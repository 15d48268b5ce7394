//! `heaptap probes`: the tree, its exports, the log, and files that are not what they should be.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use heaptap_probes::{Event, ProbeKind};
use heaptap_trace::Format;
use serde_json::Value;

use crate::made_sidecar::{SidecarWriter, TICKS, sidecar};
use crate::program::{Place, command, heaptap, heaptap_reading};
use crate::traces::workload;

/// The line of a probe.
#[track_caller]
fn line<'a>(text: &'a str, label: &str) -> &'a str {
    let found = text.lines().find(|line| line.trim_start().starts_with(label));
    found.unwrap_or_else(|| panic!("no {label} in\n{text}"))
}

#[test]
fn probes_are_a_tree_with_their_last_states() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V2, 1, 500, 1));
    let path = place.file("t.ctf.probes", &sidecar());
    let text = heaptap("probes", &[&trace]).text(0);
    assert_eq!(heaptap("probes", &[&path]).text(0), text);
    let compressed = place.file("t.ctf.gz", b"\x1f\x8b");
    assert_eq!(heaptap("probes", &[&compressed]).text(0), text, "of the trace before");
    assert_eq!(heaptap_reading("probes -", &[], &sidecar()).text(0), text);
    for (label, parts) in [
        ("program", &["/usr/bin/secretive-program (process 4711)"][..]),
        ("until", &["10.0 s"]),
        ("lost", &["2 lines of the log: there was no room"]),
        // 100² − 90² in the last second.
        ("tokens", &["count", "10,000, 1,900/s lately, 1,000/s in all"]),
        ("time", &["timer", "2.5 s in 100 runs, mean 25.0 ms, 25.0 % of the time lately, 25.0 %"]),
        ("depth", &["value", "0, least -0.5, greatest 16"]),
        ("phase", &["text", "writing"]),
        ("entries", &["tag", "at most 2 live of 100 marked, ≥ 800.0 KiB"]),
        ("unused", &["never changed"]),
    ] {
        for part in parts {
            assert!(line(&text, label).contains(part), "no {part:?} in\n{text}");
        }
    }
    let lines: Vec<&str> = text.lines().map(|line| line.split("  ").next().unwrap_or("")).collect();
    assert!(lines.contains(&"parser/") && text.contains("\n  depth "), "{text}");
    assert!(text.contains(r"\x1b[2Jname\x0a") && !text.contains('\u{1b}'), "{text}");
    assert!(text.contains("    8.000000  tick 80"), "{text}");
    assert!(text.contains("    7.000000  look at the cache"), "{text}");
}

#[test]
fn an_earlier_moment_and_some_names() {
    let place = Place::new();
    let path = place.file("t.ctf.probes", &sidecar());
    let text = heaptap("probes --at 3s --name ^parser/|phase", &[&path]).text(0);
    assert!(line(&text, "tokens").contains(" 900, 500/s lately, 300/s in all"), "{text}");
    assert!(line(&text, "phase").contains("reading"), "{text}");
    assert!(text.contains("tick 20") && !text.contains("tick 40"), "{text}");
    assert!(!text.contains("entries") && !text.contains("look at"), "{text}");
    heaptap("probes --name (", &[&path]).says(2, &["--name ("]);
    let log = heaptap("probes --log --name 4|6", &[&path]).text(0);
    assert_eq!(log, "    4.000000  tick 40\n    6.000000  tick 60\n");
}

#[test]
fn json_and_csv_have_every_state() {
    let place = Place::new();
    let path = place.file("t.ctf.probes", &sidecar());
    let json: Value = serde_json::from_str(&heaptap("probes --json", &[&path]).text(0)).unwrap();
    let probe = |name: &str| {
        let all = json["probes"].as_array().unwrap();
        all.iter()
            .find(|probe| probe["name"] == name)
            .unwrap_or_else(|| panic!("no {name}"))
            .clone()
    };
    assert_eq!(probe("parser/tokens")["total"], TICKS * TICKS);
    assert_eq!(probe("parser/time")["mean_ns"], 25e6);
    assert_eq!(probe("parser/depth")["greatest"], 16.0);
    assert_eq!(probe("cache/entries")["size_bytes"], 8 * 1_024 * TICKS);
    assert_eq!(probe("cache/entries")["size_is_least"], true);
    assert_eq!(probe("unused")["changed_us"], Value::Null);
    assert_eq!((&json["complete"], &json["damage"]), (&Value::Bool(true), &Value::Null));
    assert_eq!(json["stops"][0]["text"], "look at the cache");

    let csv = heaptap("probes --csv", &[&path]).text(0);
    let rows = |part: &str| csv.lines().filter(|line| line.contains(part)).count() as u64;
    assert!(csv.starts_with("time_us,probe,kind,field,value\n"), "{csv}");
    assert_eq!(rows(",parser/tokens,count,total,"), TICKS);
    assert_eq!(rows(",parser/time,timer,"), 3 * TICKS);
    assert_eq!(rows(",cache/entries,tag,least_size_words,"), 51);
    assert!(csv.contains("\n3300000,parser/tokens,count,total,1089\n"), "{csv}");
    assert!(csv.contains("\n4000000,,log,text,tick 40\n"), "{csv}");
    let two = heaptap("probes --csv", &[&path, &path]).text(0);
    assert_eq!(two.lines().count(), 2 * csv.lines().count() - 1);
    assert!(two.starts_with("file,time_us,"), "{two}");
}

#[test]
fn a_sidecar_is_no_trace() {
    let place = Place::new();
    let path = place.file("t.ctf.probes", &sidecar());
    for verb in ["report", "info", "check", "top --once", "serve --live"] {
        heaptap(verb, &[&path])
            .says(2, &["t.ctf.probes: is the sidecar of a trace", "heaptap probes"]);
    }
}

#[test]
fn what_is_no_sidecar_is_explained() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V2, 1, 500, 2));
    heaptap("probes", &[&trace]).says(2, &["t.ctf.probes does not exist", "opened no probe"]);
    heaptap("probes nowhere.ctf", &[]).says(2, &["nowhere.ctf: no such file"]);
    heaptap("probes", &[&place.path("")]).says(2, &["is a directory"]);
    let named = place.file("x.probes", &fs::read(&trace).unwrap());
    heaptap("probes", &[&named]).says(2, &["x.probes: no sidecar of a trace"]);
    heaptap("probes", &[&place.file("empty.probes", b"")]).says(2, &["is empty"]);
    // Of several, the others are shown.
    let sound = place.file("s.ctf.probes", &sidecar());
    let run = heaptap("probes", &[&trace, &sound]);
    run.says(2, &["t.ctf.probes does not exist"]);
    assert!(String::from_utf8(run.out).unwrap().contains("tokens"));
}

#[test]
fn damage_and_a_cut_end_leave_what_is_before() {
    let place = Place::new();
    let bytes = sidecar();
    let cut = place.file("cut.probes", &bytes[..bytes.len() - 7]);
    let run = heaptap("probes", &[&cut]);
    run.says(0, &["cut.probes: ends inside the packet at byte ", "killed or still runs"]);
    assert!(run.text(0).contains("without an end: killed or still running"), "{}", run.text(0));
    let mut damaged = bytes.clone();
    // The event number behind the header of a packet in the middle.
    let packets: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at..].starts_with(b"\xc1\x1f\xfc\xc1heaptap probes 1"))
        .collect();
    let at = packets[packets.len() / 2];
    damaged[at + 54] = 200;
    let path = place.file("damaged.probes", &damaged);
    let message = format!("damaged at byte {at}: an event that this heaptap does not know");
    let run = heaptap("probes", &[&path]);
    run.says(1, &["damaged.probes", &message]);
    assert!(run.text(1).contains("tokens") && run.text(1).contains("tick 20"), "{}", run.text(1));
    let json: Value = serde_json::from_str(&heaptap("probes --json", &[&path]).text(1)).unwrap();
    assert!(json["damage"].as_str().unwrap().contains(&message), "{json}");
}

/// A directory of traces is one of traces: their sidecars begin with the same bytes.
#[test]
fn a_sidecar_in_a_directory_is_no_trace() {
    let place = Place::new();
    place.file("t.ctf", &workload(Format::V2, 1, 500, 3));
    let alone = heaptap("report --json", &[&place.path("")]).text(0);
    let path = place.file("t.ctf.probes", &sidecar());
    assert_eq!(heaptap("report --json", &[&place.path("")]).text(0), alone);
    heaptap("report", &[&path]).says(2, &["t.ctf.probes", "heaptap probes"]);
}

#[test]
fn the_log_is_followed_to_its_end() {
    let place = Place::new();
    let trace = place.path("t.ctf");
    let mut child = command("probes --follow", &[&trace]).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut writer = SidecarWriter::new(1, "elsewhere");
    writer.time = 1_500_000_000;
    writer.add(Event::Log { text: "first\u{7}".to_owned() });
    let first = writer.finish();
    fs::write(place.path("t.ctf.probes"), &first).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), r"    1.500000  first\x07");
    let mut writer = SidecarWriter::continued(1);
    writer.add(Event::Log { text: "second".to_owned() });
    writer.add(Event::End);
    let second = [first, writer.finish()].concat();
    fs::write(place.path("t.ctf.probes"), second).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "    0.000000  second");
    assert!(lines.next().is_none());
    assert!(child.wait().unwrap().success());
}

#[test]
fn the_log_on_standard_input_ends_with_it() {
    let log = heaptap_reading("probes - --follow --name 4|6", &[], &sidecar()).text(0);
    assert_eq!(log, "    4.000000  tick 40\n    6.000000  tick 60\n");
    heaptap_reading("probes - --follow", &[], b"").says(2, &["standard input", "is empty"]);
    heaptap_reading("probes - --follow", &[], &[7; 100]).says(2, &["no sidecar of a trace"]);
    let bytes = sidecar();
    let cut = heaptap_reading("probes - --follow", &[], &bytes[..bytes.len() - 7]);
    cut.says(0, &["ends inside the packet"]);
    // Lines come while the pipe is open.
    let mut command = command("probes - --follow", &[]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(&bytes).unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "    2.000000  tick 20");
    drop(pipe);
    assert_eq!(lines.count(), 4);
    assert!(child.wait().unwrap().success());
}

#[test]
fn one_long_name_leaves_the_others_where_they_are() {
    let place = Place::new();
    let mut writer = SidecarWriter::new(1, "elsewhere");
    for (probe, name) in (0..).zip(["n".repeat(1_024), "short".to_owned()]) {
        writer.add(Event::Probe { probe, kind: ProbeKind::Count, name });
        writer.add(Event::Count { probe, total: 7 });
    }
    let path = place.file("t.ctf.probes", &writer.finish());
    let text = heaptap("probes", &[&path]).text(0);
    let short = text.lines().find(|line| line.starts_with("short")).unwrap();
    assert!(short.len() < 140, "{short}");
    assert!(text.contains(&"n".repeat(1_024)), "in a file, names are whole");
}

/// Thousands of probes with names of hundreds of parts, and a log that fills the memory of the view:
/// text and page stay small.
#[test]
fn a_hostile_sidecar_is_bounded() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V2, 1, 500, 4));
    let mut writer = SidecarWriter::new(1, "elsewhere");
    for probe in 0..2_000 {
        let name = format!("{probe}/{}", "x/".repeat(500));
        writer.add(Event::Probe { probe, kind: ProbeKind::Count, name });
        writer.add(Event::Count { probe, total: u64::MAX });
        writer.add(Event::Log { text: "y".repeat(1_000) });
    }
    let bytes = writer.finish();
    let path = place.file("t.ctf.probes", &bytes);
    let text = heaptap("probes", &[&path]).text(0);
    assert!(text.len() < 30 * bytes.len(), "{} of {}", text.len(), bytes.len());
    let page = place.path("page.html");
    let run = heaptap("export --to html", &[&trace, "-o".as_ref(), &page]);
    assert_eq!(run.status, 0, "{}", run.err);
    let size = fs::metadata(&page).unwrap().len();
    assert!(size < 2 << 20, "{size} bytes");
}
