//! `heaptap top`: one screen as text, and the view in a real terminal.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use heaptap_trace::{Format, TraceInfo};

use crate::program::{Place, heaptap, heaptap_reading};
use crate::traces::{Sources, Writer, small_block, trace_info, workload};

#[test]
fn one_screen_has_the_rows_of_a_report() {
    let place = Place::new();
    for (domains, format) in [(1, Format::V2), (4, Format::V3)] {
        let path = place.file("t.ctf", &workload(format, domains, 20_000, 8));
        let report = heaptap("report --metric allocated --top 15", &[&path]).text(0);
        let screen = heaptap("top --once --metric allocated --top 15", &[&path]).text(0);
        let rows = report.lines().skip_while(|line| !line.contains("allocated by function"));
        let rows: Vec<&str> = rows.skip(1).take(15).collect();
        assert_eq!(rows.len(), 15);
        for row in rows {
            let numbers = row.split_whitespace().take(7).collect::<Vec<_>>().join(" ");
            let mut lines = screen.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            assert!(lines.any(|line| line.join(" ").starts_with(&numbers)), "{numbers}\n{screen}");
        }
    }
}

#[test]
fn a_pipe_is_read_to_its_end() {
    let trace = workload(Format::V2, 1, 5000, 9);
    let place = Place::new();
    let path = place.file("t.ctf", &trace);
    let table = |text: String| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let from_file = table(heaptap("top --once", &[&path]).text(0));
    let piped = heaptap_reading("top --once -", &[], &trace).text(0);
    assert!(piped.contains("standard input") && piped.contains("ended after"), "{piped}");
    // The file's writer is unknown, so that it may go on.
    let ended: Vec<String> =
        from_file.iter().map(|line| line.replace("live now", "live at the end")).collect();
    assert_eq!(table(piped), ended);
    let cut = heaptap_reading("top --once -", &[], &trace[..trace.len() - 5]);
    assert!(cut.text(0).contains("truncated") || cut.text(0).contains("packet"), "{}", cut.text(0));
}

#[test]
fn what_cannot_be_watched_is_explained() {
    let place = Place::new();
    let trace = place.file("t.ctf", &workload(Format::V2, 1, 100, 10));
    heaptap("top", &[&trace]).says(2, &["terminal", "--once"]);
    // There is no terminal here, but that is not what is wrong.
    heaptap("top nowhere.ctf", &[]).says(2, &["nowhere.ctf", "no such file"]);
    heaptap("top --once nowhere.ctf", &[]).says(2, &["nowhere.ctf", "no such file"]);
    heaptap("top --once", &[&place.file("x", b"no trace at all")])
        .says(2, &["not a memtrace file"]);
    heaptap("top --once 4294967294", &[]).says(2, &["no process 4294967294", "./4294967294"]);
    let idle = PretendedWriter::start();
    heaptap(&format!("top --once {}", idle.0.id()), &[])
        .says(2, &["writes no trace", "heaptap run"]);
    heaptap("top --once --filter (", &[&trace]).says(2, &["--filter ("]);
    let other = place.path("");
    heaptap("top --once", &[&other]).says(2, &["is a directory"]);
}

/// A terminal in which the program runs.
pub(crate) struct Tmux {
    socket: String,
}

impl Tmux {
    pub(crate) fn start(name: &str, columns: u32, lines: u32, file: &Path) -> Tmux {
        let socket = format!("heaptap-{name}-{}", std::process::id());
        let program = format!("{} top {}", env!("CARGO_BIN_EXE_heaptap"), file.display());
        let size = format!("-x {columns} -y {lines}");
        let tmux = Tmux { socket };
        let call = format!("-f /dev/null new-session -d {size}");
        let mut words: Vec<&str> = call.split(' ').collect();
        words.push(&program);
        tmux.run(&words);
        tmux
    }

    pub(crate) fn run(&self, words: &[&str]) -> String {
        let output = Command::new("tmux").args(["-L", &self.socket]).args(words).output();
        let output = output.expect("tmux runs; apt-get install tmux");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    pub(crate) fn press(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    /// Waits until the screen does not show this any more.
    #[track_caller]
    pub(crate) fn hides(&self, part: &str) {
        let deadline = Instant::now() + Duration::from_secs(60);
        while self.screen().contains(part) {
            assert!(Instant::now() < deadline, "still {part:?} in\n{}", self.screen());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until the screen shows all of these.
    #[track_caller]
    pub(crate) fn shows(&self, parts: &[&str]) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if parts.iter().all(|part| screen.contains(part)) {
                return screen;
            }
            assert!(Instant::now() < deadline, "no {parts:?} in\n{screen}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.run(&["kill-server"]);
    }
}

/// A process that writes nothing, but that the trace names as its writer.
pub(crate) struct PretendedWriter(pub(crate) Child);

impl PretendedWriter {
    pub(crate) fn start() -> PretendedWriter {
        PretendedWriter(Command::new("sleep").arg("600").spawn().unwrap())
    }

    /// A trace of some seconds that this process, on this machine, is said to write.
    pub(crate) fn trace(&self) -> Vec<u8> {
        let host = fs::read("/proc/sys/kernel/hostname").unwrap().trim_ascii_end().to_vec();
        let info = TraceInfo { pid: self.0.id().into(), host, ..trace_info() };
        let mut writer = Writer::of(Format::V3, &info);
        for turn in 0..4000_u64 {
            writer.time += 1500;
            let frames = [Sources::FIRST, Sources::FIRST + 1 + turn % 12];
            let id = writer.alloc((turn % 3) as u16, small_block(), &frames);
            if turn % 3 != 0 {
                writer.collect(0, id);
            }
            if turn % 50 == 0 {
                writer.encoder.flush(&mut Sources).unwrap();
            }
        }
        writer.finish()
    }
}

impl Drop for PretendedWriter {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn keys_in_a_terminal_while_the_trace_grows() {
    let place = Place::new();
    let mut writer = PretendedWriter::start();
    let trace = writer.trace();
    let path = place.path("grows.ctf");
    let mut file = File::create(&path).unwrap();
    let tmux = Tmux::start("grows", 80, 24, &path);
    tmux.shows(&["waiting for its first packet"]);
    // Half of the trace, and a part of a packet.
    file.write_all(&trace[..trace.len() / 2]).unwrap();
    let half = tmux.shows(&["live, ", "live now by function", "total of", "q quit"]);
    assert!(half.contains("secretive-program (process"), "{half}");
    tmux.press("Space");
    tmux.shows(&["PAUSED at"]);
    file.write_all(&trace[trace.len() / 2..trace.len() - 9]).unwrap();
    tmux.shows(&["PAUSED at", " of 6.0 s"]);
    tmux.press("End");
    tmux.shows(&["live, 6.0 s"]);
    tmux.press("Left");
    tmux.shows(&["PAUSED at 5.7 s of 6.0 s", "live at 5.7 s by function"]);
    tmux.press("d");
    tmux.press("End");
    tmux.shows(&["changes since the mark at 5.7 s", "sorted by change"]);
    tmux.press("d");
    tmux.press("b");
    tmux.shows(&["live now by location"]);
    tmux.press("m");
    tmux.shows(&["allocated by location"]);
    tmux.press("o");
    tmux.shows(&["survived a collection"]);
    tmux.press("/");
    tmux.press("function_7");
    tmux.shows(&["filter: function_7", "Enter apply"]);
    tmux.press("Enter");
    tmux.shows(&["matches /function_7/"]);
    tmux.press("Escape");
    tmux.hides("matches");
    tmux.press("Enter");
    tmux.shows(&["nothing is measured here"]);
    tmux.press("1");
    tmux.press("o");
    tmux.shows(&["allocated by location"]);
    tmux.press("Enter");
    tmux.shows(&["callers of"]);
    tmux.press("2");
    tmux.shows(&["live size over time"]);
    tmux.press("?");
    tmux.shows(&["quit; the program runs on"]);
    tmux.press("1");
    for columns in ["60", "200"] {
        tmux.run(&["resize-window", "-x", columns, "-y", "30"]);
        let screen = tmux.shows(&["total of", "? help"]);
        let longest = screen.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(longest <= columns.parse().unwrap(), "{longest} of {columns}\n{screen}");
    }
    tmux.shows(&["Tab screens", "o survived"]);
    // The writer is killed inside its last packet.
    writer.0.kill().unwrap();
    tmux.shows(&["ended after 6.0 s", "its program was killed"]);
    tmux.press("q");
    let deadline = Instant::now() + Duration::from_secs(30);
    while !tmux.screen().is_empty() {
        assert!(Instant::now() < deadline, "it did not end: {}", tmux.screen());
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn it_ends_with_its_terminal() {
    let place = Place::new();
    let writer = PretendedWriter::start();
    let trace = writer.trace();
    let path = place.file("t.ctf", &trace[..trace.len() / 3]);
    let tmux = Tmux::start("gone", 80, 24, &path);
    tmux.shows(&["live, "]);
    let id = tmux.run(&["list-panes", "-F", "#{pane_pid}"]).trim().to_owned();
    let process = Path::new("/proc").join(&id);
    assert!(process.exists(), "{id}");
    drop(tmux);
    let deadline = Instant::now() + Duration::from_secs(30);
    while process.exists() {
        assert!(Instant::now() < deadline, "{id} runs on");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn another_trace_of_the_same_name_is_followed() {
    let place = Place::new();
    let writer = PretendedWriter::start();
    let trace = writer.trace();
    let path = place.file("t.ctf", &trace[..trace.len() / 3]);
    let tmux = Tmux::start("rotated", 100, 24, &path);
    tmux.shows(&["live, ", "total of"]);
    fs::rename(&path, place.path("old.ctf")).unwrap();
    let mut file = OpenOptions::new().create_new(true).write(true).open(&path).unwrap();
    file.write_all(&trace).unwrap();
    tmux.shows(&["another trace has taken the place of the first", "live, 6.0 s"]);
}
