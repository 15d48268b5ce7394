//! `heaptap report --timeline`: the collector's time line beside the live size.

use std::fs;

use heaptap_trace::Format;
use serde_json::Value;

use crate::made_sidecar::sidecar;
use crate::program::{Place, command, heaptap};
use crate::traces::{Writer, workload};

/// A trace of ten seconds, whose live size grows.
pub(crate) fn ten_seconds() -> Vec<u8> {
    let mut writer = Writer::new(Format::V2);
    for _ in 0..100 {
        writer.time += 99_999;
        writer.small();
    }
    writer.finish()
}

#[test]
fn intervals_have_collections_pauses_and_memory() {
    let place = Place::new();
    let trace = place.file("t.ctf", &ten_seconds());
    place.file("t.ctf.probes", &sidecar());
    let text = heaptap("report --timeline --top 10", &[&trace]).text(0);
    let rows: Vec<Vec<&str>> = text
        .lines()
        .take(11)
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let headings = ["from", "live est.", "minor", "major", "paused", "longest", "promoted", "heap"];
    assert_eq!(rows[0][..8], headings, "{text}");
    // 4 minor pauses of 0.5 ms and 1 major one of 2 ms in each of 10 ticks; the longest is in tick 33.
    let row = ["3.0 s", "31.2 KiB", "40", "1", "40.0 ms", "9.0 ms", "5.0 %", "1.3 MiB"];
    assert_eq!(rows[4][..8], row, "{text}");
    assert_eq!(rows[10][..4], ["9.0 s", "78.1 KiB", "40", "1"], "{text}");
    for part in [
        "collections  400 minor, 10 major, 0 compactions",
        "paused       minor: 200 ms in 400 pauses, 2.0 % of the time, longest 500 µs",
        "paused       major: 200 ms in 100 pauses, 2.0 % of the time, longest 9.0 ms",
        "promoted     5.0 % of the words allocated in the minor heap",
        "cgroup       16.0 MiB at most, after 0 µs, 25.0 % of the limit of 64.0 MiB",
        "summed       5 pauses are in the totals",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
}

#[test]
fn sums_are_the_totals_however_many_rows() {
    let place = Place::new();
    let trace = place.file("t.ctf", &ten_seconds());
    place.file("t.ctf.probes", &sidecar());
    for rows in [1, 7, 20, 100, 0] {
        let call = format!("report --timeline --json --top {rows}");
        let json: Value = serde_json::from_str(&heaptap(&call, &[&trace]).text(0)).unwrap();
        let intervals = json["intervals"].as_array().unwrap();
        assert!(rows == 0 || intervals.len() <= rows, "{} of {rows}", intervals.len());
        let sum = |field: &dyn Fn(&Value) -> &Value| -> u64 {
            intervals.iter().map(|row| field(row).as_u64().unwrap()).sum()
        };
        for field in ["minor_collections", "major_collections", "minor_words", "promoted_words"] {
            let known = |row: &Value| row[field].as_u64().unwrap_or(0);
            let all: u64 = intervals.iter().map(known).sum();
            assert_eq!(Value::from(all), json["total"][field], "{field}");
        }
        assert_eq!(sum(&|row| &row["minor"]["count"]), 400);
        assert_eq!(sum(&|row| &row["major"]["total_ns"]), 200_000_000);
        let csv = heaptap(&format!("report --timeline --csv --top {rows}"), &[&trace]).text(0);
        assert_eq!(csv.lines().count(), 1 + intervals.len());
    }
}

#[test]
fn it_fits_narrow_terminals() {
    let place = Place::new();
    let trace = place.file("t.ctf", &ten_seconds());
    place.file("t.ctf.probes", &sidecar());
    for columns in [40, 60, 80, 132] {
        let mut call = command("report --timeline", &[&trace]);
        let output = call.env("COLUMNS", columns.to_string()).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().all(|line| line.chars().count() <= columns), "{columns}\n{text}");
        assert_eq!(text.contains("There is no room for threads"), columns < 132, "{text}");
        assert!(text.contains("live est."), "{text}");
    }
}

#[test]
fn what_has_no_time_line_is_explained() {
    let place = Place::new();
    let trace = place.file("t.ctf", &ten_seconds());
    heaptap("report --timeline", &[&trace]).says(2, &["t.ctf.probes does not exist"]);
    heaptap("report --timeline nowhere.ctf", &[]).says(2, &["nowhere.ctf: no such file"]);
    heaptap("report --timeline -", &[]).says(2, &["takes one trace"]);
    heaptap("report --timeline", &[&place.path("")]).says(2, &["takes one trace"]);
    heaptap("report --timeline --by file", &[&trace]).says(2, &["--by"]);
    place.file("t.ctf.probes", &sidecar());
    let other = place.file("other.ctf", &made_at_another_time());
    fs::copy(place.path("t.ctf.probes"), place.path("other.ctf.probes")).unwrap();
    heaptap("report --timeline", &[&other]).says(2, &["belongs to another trace"]);
    let bytes = sidecar();
    place.file("t.ctf.probes", &[&bytes[..], &[7; 80]].concat());
    let damaged = format!("damaged at byte {}", bytes.len());
    heaptap("report --timeline", &[&trace]).says(1, &["t.ctf.probes", &damaged]);
    // Other reports do not look at it.
    assert_eq!(heaptap("report", &[&trace]).status, 0);
    assert_eq!(
        heaptap("report", &[&place.file("w.ctf", &workload(Format::V2, 1, 9, 1))]).status,
        0
    );
}

fn made_at_another_time() -> Vec<u8> {
    let info = crate::traces::trace_info();
    let info = heaptap_trace::TraceInfo { start_time: info.start_time + 1, ..info };
    let mut writer = Writer::of(Format::V2, &info);
    writer.small();
    writer.finish()
}
