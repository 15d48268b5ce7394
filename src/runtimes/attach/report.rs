//! The report to the program that started this one.
//!
//! The variable [`heaptap_settings::REPORT`] names a file to which each traced
//! process appends lines of a word and its values, a few bytes in one write: `pid`
//! and `file` at the start, `end` with the statistics at the end, or `flushed` if it ends
//! without exit handlers. A forked child that is traced does the same. A process appends
//! only `refused` if there is no trace, for which standard error has the reason, and
//! `passed` or `wrapper` with its name if the request is for another. In names, a
//! backslash stands before a backslash, and `\n` for the end of a line.
//!
//! If `file` or `refused` cannot be written, the file is removed: a report that lacks them
//! would be wrong.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::sys::append_file::AppendFile;
use crate::tracer::{self, Session, say};

/// What is reported when the program exits.
struct EndReport {
    /// The session that the program began with.
    session: Arc<Session>,
    path: PathBuf,
    file: AppendFile,
}

static REPORT: OnceLock<EndReport> = OnceLock::new();

/// Reports that the trace has begun, and registers the report of its end.
pub(super) fn begin(session: &Arc<Session>, report: Option<PathBuf>) {
    let Some(path) = report else { return };
    let file = match AppendFile::open(&path) {
        Ok(file) => file,
        Err(error) => {
            if is_awaited(&path) {
                let trace = session.output_name.display();
                say(format_args!(
                    "tracing into {trace}; `heaptap run` cannot be told of it, since {} cannot be \
                     opened here: {error}",
                    path.display()
                ));
            }
            return;
        }
    };
    let session = Arc::clone(session);
    if REPORT.set(EndReport { session: Arc::clone(&session), path, file }).is_ok() {
        report_start(&session);
        tracer::on_start_in_child(report_start);
        // Runs before the session's own handler, which was registered earlier.
        // SAFETY: `at_exit` takes nothing, never unwinds, and is never unloaded: a
        // library that has attached stays.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Reports that a trace has begun, of the program or of a forked child.
fn report_start(session: &Arc<Session>) {
    let Some(EndReport { path, file, .. }) = REPORT.get() else { return };
    let mut lines = format!("pid {}\nfile ", std::process::id()).into_bytes();
    add_name(&session.output_name, &mut lines);
    if !file.append(&lines) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether the process that made the report still runs: its number is in the name, as
/// `heaptap-run-PID-…`. A report whose file is gone with its process is of no interest to
/// anybody.
fn is_awaited(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().as_bytes();
    let pid = name.split(|&byte| byte == b'-').nth(2);
    let pid = pid.and_then(|pid| std::str::from_utf8(pid).ok()?.parse::<i32>().ok());
    // SAFETY: signal 0 only asks whether there is such a process.
    pid.is_some_and(|pid| pid > 0 && unsafe { libc::kill(pid, 0) } == 0)
}

/// Reports that there is no trace.
pub(super) fn refused(report: Option<PathBuf>) {
    if let Some(report) = report
        && !append(&report, b"refused\n")
    {
        let _ = std::fs::remove_file(report);
    }
}

/// Reports that this program is not the one that is to be traced.
pub(super) fn passed(report: Option<PathBuf>, name: &OsStr) {
    name_process(report, b"passed ", name);
}

/// Reports that this program starts the one that is to be traced.
pub(super) fn wrapped(report: Option<PathBuf>, name: &OsStr) {
    name_process(report, b"wrapper ", name);
}

/// These processes leave no files: a line that is missing is no loss.
fn name_process(report: Option<PathBuf>, word: &[u8], name: &OsStr) {
    let Some(report) = report else { return };
    let mut line = word.to_vec();
    add_name(name, &mut line);
    append(&report, &line);
}

/// Adds a name and the end of its line.
fn add_name(name: &OsStr, lines: &mut Vec<u8>) {
    for &byte in name.as_bytes() {
        match byte {
            b'\n' => lines.extend_from_slice(b"\\n"),
            b'\\' => lines.extend_from_slice(b"\\\\"),
            _ => lines.push(byte),
        }
    }
    lines.push(b'\n');
}

extern "C" fn at_exit() {
    tracer::guard(|| {
        let Some(EndReport { session, file, .. }) = REPORT.get() else { return };
        let Some(session) = tracer::session_in_this_process(session) else { return };
        // Fails if the session has ended before, for which there was a message.
        let _ = session.stop_at_exit();
        let stats = session.stats();
        // The file could not be written to its end.
        let failed = if session.write_failed() { " failed" } else { "" };
        let line = format!(
            "end {} samples {} blocks {} dropped {} bytes {}{failed}\n",
            std::process::id(),
            stats.totals.samples,
            stats.totals.sampled_blocks(),
            stats.totals.dropped,
            stats.bytes,
        );
        file.append(line.as_bytes());
    });
}

/// Reports that everything that this process recorded is written. Async-signal-safe.
pub(super) fn flushed() {
    let Some(EndReport { file, .. }) = REPORT.get() else { return };
    let mut line = [0; 32];
    let length = flushed_line(std::process::id(), &mut line);
    file.append(line.get(..length).unwrap_or_default());
}

/// Writes `flushed PID` and the end of the line, without memory; returns the length.
fn flushed_line(pid: u32, line: &mut [u8; 32]) -> usize {
    let mut digits = [0; 10];
    let mut first = digits.len();
    let mut rest = pid;
    loop {
        first -= 1;
        digits[first] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    let bytes = b"flushed ".iter().chain(&digits[first..]).chain(b"\n");
    line.iter_mut().zip(bytes).map(|(to, from)| *to = *from).count()
}

fn append(report: &Path, lines: &[u8]) -> bool {
    AppendFile::open(report).is_ok_and(|file| file.append(lines))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_an_end_of_line_are_one_line() {
        let mut lines = Vec::new();
        add_name(OsStr::new("a\nb\\c"), &mut lines);
        assert_eq!(lines, b"a\\nb\\\\c\n");
    }

    #[test]
    fn a_flush_is_reported_by_process() {
        for pid in [1, 4_194_304, u32::MAX] {
            let mut line = [0; 32];
            let length = flushed_line(pid, &mut line);
            assert_eq!(line[..length], *format!("flushed {pid}\n").as_bytes());
        }
    }

    #[test]
    fn a_report_is_awaited_while_its_process_runs() {
        let own = format!("/tmp/heaptap-run-{}-x1y2z3", std::process::id());
        assert!(is_awaited(Path::new(&own)));
        for other in ["/tmp/heaptap-run-x1y2z3", "/tmp/heaptap-run-0-x", "/tmp/x", "/"] {
            assert!(!is_awaited(Path::new(other)), "{other}");
        }
    }
}
