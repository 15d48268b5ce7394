//! How it went, for the program that started this one.
//!
//! `HEAPTAP_REPORT=FILE` asks for lines of a word and a value in that file: at
//! the start `pid` and `file`, at the end what was counted; or only `refused`,
//! when there is no trace for a reason that was said. Each process of a
//! family appends its own, a few bytes in one write.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use crate::tracer::Session;

static REPORT: OnceLock<(Arc<Session>, PathBuf)> = OnceLock::new();

/// Says that the trace has begun, and promises to say how it ended.
pub(super) fn begin(session: &Arc<Session>, report: Option<PathBuf>) {
    let Some(report) = report else { return };
    let mut lines = format!("pid {}\nfile ", std::process::id()).into_bytes();
    lines.extend_from_slice(session.output_name.as_bytes());
    lines.push(b'\n');
    append(&report, &lines);
    if REPORT.set((Arc::clone(session), report)).is_ok() {
        // Runs before the session's own handler, which was registered earlier.
        // SAFETY: the function is ours and stays.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Says that there is no trace: why, a person was told.
pub(super) fn refused(report: Option<PathBuf>) {
    if let Some(report) = report {
        append(&report, b"refused\n");
    }
}

extern "C" fn at_exit() {
    let ended = std::panic::catch_unwind(|| {
        let Some((session, report)) = REPORT.get() else { return };
        if session.has_forked() {
            return;
        }
        // Already over if something went wrong, which was said.
        let _ = session.stop();
        let stats = session.stats();
        let mut lines = String::new();
        let _ = writeln!(
            lines,
            "end {} samples {} blocks {} dropped {} bytes {}",
            std::process::id(),
            stats.totals.samples,
            stats.totals.sampled_blocks(),
            stats.totals.dropped,
            stats.bytes,
        );
        append(report, lines.as_bytes());
    });
    drop(ended);
}

fn append(report: &Path, lines: &[u8]) {
    // Who asked is gone, perhaps: then nobody is to be told.
    if let Ok(mut file) = OpenOptions::new().append(true).open(report) {
        let _ = file.write_all(lines);
    }
}
