//! The report to the program that started this one.
//!
//! The variable [`heaptap_settings::REPORT`] names a file to which each traced
//! process appends lines of a word and its values, a few bytes in one write: `pid`
//! and `file` at the start, `end` with the statistics at the end, or only `refused`
//! if there is no trace, for which standard error has the reason
//! (if `file` or `refused` cannot be written, the file is removed). `endings` appends
//! `flushed`.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::sys::write_signals::without_write_signals;
use crate::tracer::{self, Session};

/// What is reported when the program exits.
struct EndReport {
    session: Arc<Session>,
    /// The file to append to.
    path: PathBuf,
}

static REPORT: OnceLock<EndReport> = OnceLock::new();

/// Reports that the trace has begun, and registers the report of its end.
pub(super) fn begin(session: &Arc<Session>, report: Option<PathBuf>) {
    let Some(path) = report else { return };
    let mut lines = format!("pid {}\nfile ", std::process::id()).into_bytes();
    lines.extend_from_slice(session.output_name.as_bytes());
    lines.push(b'\n');
    append_or_remove(&path, &lines);
    if REPORT.set(EndReport { session: Arc::clone(session), path }).is_ok() {
        // Runs before the session's own handler, which was registered earlier.
        // SAFETY: `at_exit` takes nothing, never unwinds, and is never unloaded: a
        // library that has attached stays.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Reports that there is no trace.
pub(super) fn refused(report: Option<PathBuf>) {
    if let Some(report) = report {
        append_or_remove(&report, b"refused\n");
    }
}

/// Reports that the file of the trace could not be made.
pub(super) fn not_made(report: Option<PathBuf>) {
    if let Some(report) = report {
        append_or_remove(&report, b"refused file\n");
    }
}

/// If the lines cannot be written, for instance under `ulimit -f 0`, the file is removed: a
/// report that lacks them would be wrong.
fn append_or_remove(report: &Path, lines: &[u8]) {
    if !append(report, lines) {
        let _ = std::fs::remove_file(report);
    }
}

extern "C" fn at_exit() {
    tracer::guard(|| {
        let Some(EndReport { session, path }) = REPORT.get() else { return };
        if session.has_forked() {
            return;
        }
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
        append(path, line.as_bytes());
    });
}

/// Whether the lines were written. A report whose file is gone is of no interest to
/// anybody.
fn append(report: &Path, lines: &[u8]) -> bool {
    let file = OpenOptions::new().append(true).open(report);
    file.is_ok_and(|mut file| without_write_signals(|| file.write_all(lines)).is_ok())
}
