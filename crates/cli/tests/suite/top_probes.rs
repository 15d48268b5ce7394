//! `heaptap top`: probes, log and time line in a real terminal, while the program writes them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use heaptap_probes::Event;
use heaptap_trace::Format;

use crate::made_sidecar::{SidecarWriter, sidecar_of};
use crate::program::Place;
use crate::top::{PretendedWriter, Tmux};
use crate::traces::{START, workload};

/// Where captured screens go to be looked at, if this is set.
const SCREENS: &str = "HEAPTAP_TEST_SCREENS";

#[track_caller]
fn captured(tmux: &Tmux, name: &str, columns: usize, parts: &[&str]) {
    // The title ends one column before the right edge: the view has noticed its new width.
    let mut screen = tmux.shows(parts);
    while screen.lines().next().unwrap_or_default().chars().count() != columns - 1 {
        thread::sleep(Duration::from_millis(20));
        screen = tmux.shows(parts);
    }
    let longest = screen.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(longest <= columns, "{longest} of {columns}\n{screen}");
    assert!(!screen.replace(r"\x1b[2J", "").contains("[2J"), "a name is raw\n{screen}");
    if let Some(folder) = std::env::var_os(SCREENS) {
        let file = Path::new(&folder).join(format!("{name}-{columns}.txt"));
        fs::write(file, &screen).unwrap();
    }
}

/// Packets of ticks, and what is logged behind them.
fn packets(from: u64, to: u64, behind: Option<Event>) -> Vec<u8> {
    let mut writer = SidecarWriter::continued(4_711);
    if from == 1 {
        writer = SidecarWriter::new(4_711, "elsewhere");
        writer.open_probes();
    }
    for tick in from..=to {
        writer.tick(tick);
    }
    behind.into_iter().for_each(|event| writer.add(event));
    writer.finish()
}

/// A process that has these files open, as the one that writes them has.
fn holder(files: &[&Path]) -> PretendedWriter {
    let mut command = String::new();
    for (number, file) in (7..).zip(files) {
        command += &format!("exec {number}<>'{}'; ", file.display());
    }
    let child = Command::new("sh").args(["-c", &format!("{command} exec sleep 600")]).spawn();
    let holder = PretendedWriter(child.unwrap());
    let last = format!("/proc/{}/fd/{}", holder.0.id(), 6 + files.len());
    let deadline = Instant::now() + Duration::from_secs(20);
    while fs::metadata(&last).is_err() {
        assert!(Instant::now() < deadline, "{last} is not opened");
        thread::sleep(Duration::from_millis(5));
    }
    holder
}

#[test]
fn the_sidecar_of_a_process_is_found_although_it_has_no_name() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V3, 1, 200, 520));
    // That of a trace which the same process wrote before comes first.
    let old = place.file("old.ctf.probes", &sidecar_of(START - 1));
    let own = place.file("t.ctf.probes", &packets(1, 30, None));
    let holder = holder(&[&trace, &old, &own]);
    for file in [&trace, &old, &own] {
        fs::remove_file(file).unwrap();
    }
    let pid = holder.0.id().to_string();
    let tmux = Tmux::start("unlinked", 80, 24, Path::new(&pid));
    tmux.press("4");
    tmux.shows(&["7 probes", "tokens", "900"]);
    tmux.press("5");
    tmux.shows(&["log, 1 line,", "2.000  tick 20"]);
    // It grows.
    let link = format!("/proc/{pid}/fd/9");
    let mut sidecar = OpenOptions::new().append(true).open(link).unwrap();
    sidecar.write_all(&packets(31, 45, None)).unwrap();
    tmux.shows(&["log, 2 lines,", "4.000  tick 40"]);
}

#[test]
fn a_process_without_a_sidecar_says_so() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V3, 1, 200, 521));
    let other = place.file("old.ctf.probes", &sidecar_of(START - 1));
    let holder = holder(&[&trace, &other]);
    fs::remove_file(&trace).unwrap();
    let tmux = Tmux::start("bare", 80, 24, Path::new(&holder.0.id().to_string()));
    tmux.press("4");
    tmux.shows(&["there is no file of probes beside"]);
}

#[test]
fn a_sidecar_that_appears_later_grows_and_pauses_the_view() {
    let place = Place::new();
    let path = place.path("t.ctf");
    let mut writer = PretendedWriter::start(&path);
    let trace = writer.trace();
    fs::write(&path, &trace[..trace.len() - 9]).unwrap();
    let tmux = Tmux::start("probes", 80, 24, &path);
    tmux.shows(&["live, 6.0 s", "total of"]);
    tmux.press("4");
    tmux.shows(&["there is no ", "t.ctf.probes yet"]);
    tmux.press("5");
    tmux.shows(&["t.ctf.probes yet"]);
    let mut sidecar =
        OpenOptions::new().create_new(true).append(true).open(place.path("t.ctf.probes")).unwrap();
    let first = packets(1, 30, None);
    // A part of a packet is nothing yet.
    sidecar.write_all(&first[..first.len() - 5]).unwrap();
    sidecar.write_all(&first[first.len() - 5..]).unwrap();
    tmux.shows(&["log, 1 line,", "2.000  tick 20"]);
    tmux.press("4");
    tmux.shows(&["7 probes", "tokens", "900", "500/s", "entries", "≤ 2 live", "240.0 KiB"]);
    tmux.press("2");
    tmux.shows(&["live size over time", "minor GC", "RSS", "the second until 3.0 s"]);
    // The program asks to look at a moment that the trace has.
    let stop = Event::Pause { text: "look at the map".to_owned() };
    sidecar.write_all(&packets(31, 55, Some(stop))).unwrap();
    tmux.shows(&["PAUSED at 5.5 s of 6.0 s", "paused by the program: look at the map"]);
    tmux.press("4");
    tmux.shows(&["3,025", "1,000/s", "≤ 6 live", "≥ 440.0 KiB"]);
    for columns in [60, 80, 200] {
        tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", "30"]);
        tmux.press("4");
        captured(
            &tmux,
            "probes",
            columns,
            &["7 probes", "parser/", "depth", "writing", "≥ 440.0 KiB"],
        );
        tmux.press("5");
        let stopped = "5.500  pause: look at the map";
        captured(&tmux, "log", columns, &["log, 3 lines", stopped, "4.000  tick 40"]);
        tmux.press("2");
        captured(&tmux, "timeline", columns, &["heap", "longest", "64.0 MiB", "9.0 ms"]);
        tmux.press("?");
        captured(&tmux, "help", columns, &["probes, log"]);
    }
    tmux.press("5");
    // Earlier moments have an earlier log; live, all is there.
    for _ in 0..10 {
        tmux.press("Left");
    }
    tmux.shows(&["log, 1 line,", "2.000  tick 20"]);
    tmux.hides("paused by the program");
    tmux.press("End");
    tmux.shows(&["log, 3 lines"]);
    // Damage is named, and what is before it stays.
    sidecar.write_all(&[9; 100]).unwrap();
    tmux.press("4");
    tmux.shows(&["damaged at byte", "7 probes"]);
    // The writer is killed: everything can still be looked at.
    writer.0.kill().unwrap();
    tmux.shows(&["ended after 6.0 s", "7 probes"]);
    tmux.press("Tab");
    tmux.shows(&["log, 3 lines"]);
    tmux.press("Tab");
    tmux.shows(&["total of"]);
}

/// Stops of the past do not pause a view that begins later, and another trace has no use for them.
#[test]
fn past_stops_and_foreign_sidecars_are_left_alone() {
    let place = Place::new();
    let path = place.path("t.ctf");
    let writer = PretendedWriter::start(&path);
    fs::write(&path, writer.trace()).unwrap();
    let stop = Event::Pause { text: "past".to_owned() };
    place.file("t.ctf.probes", &packets(1, 30, Some(stop)));
    let tmux = Tmux::start("past", 80, 24, &path);
    tmux.shows(&["live, 6.0 s"]);
    tmux.press("5");
    tmux.shows(&["live, 6.0 s", "3.000  pause: past"]);
    // Another sidecar takes its place, of another trace.
    let mut other = packets(1, 30, None);
    let at = 54 + 1 + 8;
    other[at..at + 8].copy_from_slice(&7_u64.to_le_bytes());
    let new = place.file("new", &other);
    fs::rename(new, place.path("t.ctf.probes")).unwrap();
    tmux.shows(&["belongs to another trace"]);
    tmux.press("2");
    tmux.hides("minor GC");
}
