//! The progress bar: for people who wait, and for nobody else.

use std::fs;
use std::process::{Command, Stdio};

use heaptap_trace::Format;

use crate::program::Place;
use crate::traces::workload;

/// What `heaptap report -` shows of a trace of which the second half comes late,
/// on a terminal of `script` (util-linux).
fn shown(place: &Place, late: &str, errors: &str) -> Option<String> {
    let trace = workload(Format::V2, 1, 3000, 95);
    let (first, second) = trace.split_at(trace.len() / 2);
    let first = place.file("first", first);
    let second = place.file("second", second);
    let program = env!("CARGO_BIN_EXE_heaptap");
    let (first, second) = (first.display(), second.display());
    let call = format!("(cat {first}; sleep {late}; cat {second}) | {program} report - {errors}");
    let mut script = Command::new("script");
    script.args(["-qec", &call, "/dev/null"]).stdin(Stdio::null()).env("TERM", "xterm");
    let Ok(run) = script.output() else {
        eprintln!("\n*** SKIPPED: there is no `script` to give a terminal ***\n");
        return None;
    };
    Some(String::from_utf8_lossy(&run.stdout).into_owned())
}

#[test]
fn a_bar_appears_on_a_terminal_after_a_second_and_goes_away() {
    let place = Place::new();
    let Some(slow) = shown(&place, "1.6", "") else { return };
    assert!(slow.contains(" read, "), "no progress in {slow:?}");
    let report = slow.rfind("allocated").unwrap();
    assert!(slow.rfind(" read, ").unwrap() < report, "{slow:?}");
    let log = place.path("log");
    let unseen = shown(&place, "1.6", &format!("2> {}", log.display())).unwrap();
    assert!(unseen.contains("allocated") && !unseen.contains(" read, "), "{unseen:?}");
    assert_eq!(fs::read_to_string(&log).unwrap(), "");
    let quick = shown(&place, "0", "").unwrap();
    assert!(!quick.contains(" read, "), "{quick:?}");
}
