//! `heaptap top`: one screen as text, and the view in a real terminal.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use heaptap_trace::{Format, LiveSink as _, TraceInfo};
use serde_json::Value;

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
    let idle = PretendedWriter::start(&place.path("other"));
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
        let program = format!("{} top {}", env!("CARGO_BIN_EXE_heaptap"), file.display());
        Tmux::run_in(name, columns, lines, &program)
    }

    /// Runs a command of the shell.
    pub(crate) fn run_in(name: &str, columns: u32, lines: u32, program: &str) -> Tmux {
        let socket = format!("heaptap-{name}-{}", std::process::id());
        let size = format!("-x {columns} -y {lines}");
        let tmux = Tmux { socket };
        let call = format!("-f /dev/null new-session -d {size}");
        let mut words: Vec<&str> = call.split(' ').collect();
        words.push(program);
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

/// A process that has a file open for writing and writes nothing to it, but that the trace names
/// as its writer.
pub(crate) struct PretendedWriter(pub(crate) Child);

impl PretendedWriter {
    /// Makes the file if it is not there.
    pub(crate) fn start(path: &Path) -> PretendedWriter {
        let file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        PretendedWriter(Command::new("sleep").arg("600").stdout(file).spawn().unwrap())
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
    let path = place.path("grows.ctf");
    let mut file = File::create(&path).unwrap();
    let mut writer = PretendedWriter::start(&path);
    let trace = writer.trace();
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
    let path = place.path("t.ctf");
    let writer = PretendedWriter::start(&path);
    let trace = writer.trace();
    fs::write(&path, &trace[..trace.len() / 3]).unwrap();
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
    let path = place.path("t.ctf");
    let writer = PretendedWriter::start(&path);
    let trace = writer.trace();
    fs::write(&path, &trace[..trace.len() / 3]).unwrap();
    let tmux = Tmux::start("rotated", 100, 24, &path);
    tmux.shows(&["live, ", "total of"]);
    fs::rename(&path, place.path("old.ctf")).unwrap();
    // By a program that was started again.
    let writer = PretendedWriter::start(&path);
    fs::write(&path, writer.trace()).unwrap();
    tmux.shows(&["another trace has taken the place of the first", "live, 6.0 s"]);
}

/// A process of the same number, which a container has too, is not the writer.
#[test]
fn a_trace_is_live_only_if_its_writer_is_seen() {
    let place = Place::new();
    let [path, other] = ["t.ctf", "other"].map(|name| place.path(name));
    let stranger = PretendedWriter::start(&other);
    fs::write(&path, stranger.trace()).unwrap();
    // Its number is that of a process which does not have it open.
    let shown = heaptap("top --once", &[&path]).text(0);
    assert!(shown.contains("ended after 6.0 s"), "{shown}");
    // Its lock shows it, though its number is that of nobody here.
    let path = place.file("locked.ctf", &workload(Format::V2, 1, 300, 11));
    let locker = Locker::start(&path);
    let shown = heaptap("top --once", &[&path]).text(0);
    assert!(shown.lines().next().unwrap().contains(" live, "), "{shown}");
    drop(locker);
}

/// A process that holds a lock on a file, as one that writes a trace does.
pub(crate) struct Locker(Child);

impl Locker {
    pub(crate) fn start(path: &Path) -> Locker {
        const PROGRAM: &str = "import fcntl, sys, time
file = open(sys.argv[1], 'r+')
fcntl.lockf(file, fcntl.LOCK_EX)
print('locked', flush=True)
time.sleep(600)";
        let mut command = Command::new("python3");
        command.args(["-c", PROGRAM]).arg(path).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = [0; 6];
        child.stdout.as_mut().unwrap().read_exact(&mut line).unwrap();
        Locker(child)
    }
}

impl Drop for Locker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Makes a file look as if nobody had written it for an hour: then nobody will.
fn age(path: &Path) {
    let hour_ago = SystemTime::now() - Duration::from_secs(3600);
    File::options().append(true).open(path).unwrap().set_modified(hour_ago).unwrap();
}

#[test]
fn the_first_line_of_json_is_up_to_date() {
    let place = Place::new();
    let path = place.file("t.ctf", &workload(Format::V3, 1, 400_000, 12));
    age(&path);
    let lines = heaptap("top --json", &[&path]).text(0);
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 1, "{} lines", lines.len());
    assert_eq!(lines[0]["state"], "ended");
    assert_eq!(lines[0]["totals"], lines[0]["report"]["totals"]);
}

/// An idle program has a time line, too, and can be looked at when nothing was allocated.
#[test]
fn the_clock_runs_without_samples() {
    let place = Place::new();
    let path = place.path("idle.ctf");
    let writer = PretendedWriter::start(&path);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let start_time = u64::try_from(now.as_micros()).unwrap();
    let host = fs::read("/proc/sys/kernel/hostname").unwrap().trim_ascii_end().to_vec();
    let info = TraceInfo { pid: writer.0.id().into(), host, start_time, ..trace_info() };
    fs::write(&path, Writer::of(Format::V2, &info).finish()).unwrap();
    let tmux = Tmux::start("idle", 80, 24, &path);
    tmux.shows(&["live, 2."]);
    tmux.shows(&["live, 3."]);
    tmux.press("2");
    let screen = tmux.shows(&["live size over time"]);
    assert!(screen.lines().any(|line| line.trim_end().ends_with(" s")), "{screen}");
    tmux.press("Left");
    tmux.press("Left");
    tmux.shows(&["PAUSED at "]);
    tmux.press("End");
    tmux.shows(&["live, "]);
}

/// The largest rows are in view again when there is room for them, and what is not is named.
#[test]
fn rows_come_back_when_the_terminal_grows() {
    let place = Place::new();
    let path = place.file("t.ctf", &workload(Format::V3, 1, 20_000, 8));
    age(&path);
    let tmux = Tmux::start("rows", 80, 24, &path);
    // All of it: a selected row moves with what is read.
    let total = ["ended after", "live 41.0 MiB", "live at the end by function", "1 to "];
    let before = tmux.shows(&total);
    let first = before.lines().find(|line| line.contains("live at the end")).unwrap();
    let rows = |screen: &str| -> Vec<String> {
        let lines = screen.lines().skip_while(|line| *line != first).skip(1);
        lines.map(str::to_owned).collect()
    };
    for _ in 0..3 {
        tmux.press("Down");
    }
    tmux.run(&["resize-window", "-x", "80", "-y", "8"]);
    tmux.shows(&["to 4 shown"]);
    tmux.run(&["resize-window", "-x", "80", "-y", "24"]);
    tmux.shows(&["1 to "]);
    assert_eq!(rows(&tmux.screen())[0], rows(&before)[0]);
}

#[test]
fn a_terminal_that_cannot_draw_is_told_so_and_one_without_utf_8_gets_ascii() {
    let place = Place::new();
    let path = place.file("t.ctf", &workload(Format::V3, 1, 2_000, 8));
    let heaptap = env!("CARGO_BIN_EXE_heaptap");
    let command =
        |variable: &str| format!("env {variable} {heaptap} top {}; sleep 60", path.display());
    let tmux = Tmux::run_in("dumb", 200, 24, &command("TERM=dumb"));
    tmux.shows(&["TERM is `dumb`", "--once"]);
    let tmux = Tmux::run_in("ascii", 80, 24, &command("LC_ALL=C"));
    for (key, part) in [("1", "total of"), ("2", "live size over time"), ("?", "quit; the program")]
    {
        tmux.press(key);
        let screen = tmux.shows(&[part]);
        assert!(screen.is_ascii(), "{screen}");
    }
    let mut report = crate::program::command("report", &[&path]);
    let report = report.env("LC_ALL", "C").output().unwrap();
    let report = String::from_utf8(report.stdout).unwrap();
    let line = report.lines().find(|line| line.starts_with("live size")).unwrap();
    assert!(line.is_ascii() && line.contains('#'), "{line}");
}

/// Keys that wait ask for much; the one that ends the program is not among those that wait.
#[test]
fn quitting_does_not_wait_for_keys_before_it() {
    let place = Place::new();
    let path = place.file("t.ctf", &workload(Format::V3, 1, 300_000, 8));
    let tmux = Tmux::start("backlog", 80, 24, &path);
    tmux.shows(&["total of"]);
    tmux.press("d");
    for _ in 0..40 {
        tmux.run(&["send-keys", "b", "m", "o", "Left", "b", "Down", "d", "d", "s"]);
    }
    let pressed = Instant::now();
    tmux.press("q");
    while !tmux.screen().is_empty() {
        assert!(pressed.elapsed() < Duration::from_secs(30), "it did not end: {}", tmux.screen());
        std::thread::sleep(Duration::from_millis(20));
    }
}
