//! The journal of the run that this process belongs to: what becomes of its trace, for the
//! program that started it.
//!
//! The variable [`heaptap_settings::JOURNAL`] names the file; `heaptap_control::journal` describes its
//! lines. If `began` or `refused` cannot be written, the file is removed: a journal that lacks
//! them would be wrong.

use std::ffi::OsStr;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use heaptap_control::journal::{Entry, Statistics, reader_of};

use crate::sys::append_file::AppendFile;
use crate::tracer::{self, Session, say};

/// What is written when the program exits.
struct OpenJournal {
    /// The session that the program began with.
    session: Arc<Session>,
    path: PathBuf,
    file: AppendFile,
}

static JOURNAL: OnceLock<OpenJournal> = OnceLock::new();

/// Says that the trace has begun, and will say that it has ended.
pub(super) fn begin(session: &Arc<Session>, journal: Option<PathBuf>) {
    let Some(path) = journal else { return };
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
    tracer::leave_end_to_others();
    if JOURNAL.set(OpenJournal { session: Arc::clone(&session), path, file }).is_ok() {
        began(&session);
        tracer::on_start_in_child(began);
        // Runs before the session's own handler, which was registered earlier.
        // SAFETY: `at_exit` takes nothing, never unwinds, and is never unloaded: a
        // library that has attached stays.
        unsafe { libc::atexit(at_exit) };
    }
}

/// Says that a trace has begun, of the program or of a forked child.
fn began(session: &Arc<Session>) {
    let Some(OpenJournal { path, file, .. }) = JOURNAL.get() else { return };
    let entry = Entry::Began { pid: std::process::id(), file: session.output_name.clone().into() };
    if !file.append(&line(&entry)) {
        let _ = std::fs::remove_file(path);
    }
}

/// Whether the process that reads the journal still runs. A journal whose file is gone with its
/// process is of no interest to anybody.
fn is_awaited(path: &Path) -> bool {
    let pid = reader_of(path).and_then(|pid| i32::try_from(pid).ok());
    // SAFETY: signal 0 only asks whether there is such a process.
    pid.is_some_and(|pid| pid > 0 && unsafe { libc::kill(pid, 0) } == 0)
}

/// Says that there is no trace.
pub(super) fn refused(journal: Option<PathBuf>) {
    if let Some(journal) = journal
        && !append(&journal, &Entry::Refused)
    {
        let _ = std::fs::remove_file(journal);
    }
}

/// Says that this program is not the one that is to be traced. Such a process leaves no files: a
/// line that is missing is no loss.
pub(super) fn passed(journal: Option<PathBuf>, name: &OsStr) {
    journal.map(|journal| append(&journal, &Entry::Passed(name.to_owned())));
}

/// Says that this program starts the one that is to be traced. See [`passed`].
pub(super) fn wrapped(journal: Option<PathBuf>, name: &OsStr) {
    journal.map(|journal| append(&journal, &Entry::Wrapper(name.to_owned())));
}

extern "C" fn at_exit() {
    tracer::guard(|| {
        let Some(OpenJournal { session, file, .. }) = JOURNAL.get() else { return };
        let Some(session) = tracer::session_in_this_process(session) else { return };
        // Fails if the session has ended before, for which there was a message.
        let _ = session.stop_at_exit();
        let stats = session.stats();
        // Of a recorder, what it has written to files.
        let bytes = session.recorder().map_or(stats.bytes, |recorder| recorder.written());
        let (samples, dropped) = (stats.totals.samples, stats.totals.dropped);
        let entry = Entry::Ended {
            pid: std::process::id(),
            statistics: Statistics {
                samples,
                dropped,
                bytes,
                cost_ns: stats.cost.ours_ns(),
                program_ns: stats.cost.program_ns,
            },
            failed: session.write_failed(),
        };
        file.append(&line(&entry));
    });
}

/// Says that everything that this process recorded is written. Async-signal-safe.
pub(super) fn flushed() {
    let Some(OpenJournal { file, .. }) = JOURNAL.get() else { return };
    let mut line = [0; 32];
    file.append(line_in(&mut line, &Entry::Flushed { pid: std::process::id() }));
}

fn line(entry: &Entry) -> Vec<u8> {
    format!("{entry}\n").into_bytes()
}

/// The line of an entry that is short enough, without memory.
fn line_in<'a>(room: &'a mut [u8; 32], entry: &Entry) -> &'a [u8] {
    let mut rest = &mut room[..];
    let left = writeln!(rest, "{entry}").map_or(32, |()| rest.len());
    room.get(..32 - left).unwrap_or_default()
}

fn append(journal: &Path, entry: &Entry) -> bool {
    AppendFile::open(journal).is_ok_and(|file| file.append(&line(entry)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flush_is_a_line_without_memory() {
        for pid in [1, 4_194_304, u32::MAX] {
            let entry = Entry::Flushed { pid };
            assert_eq!(line_in(&mut [0; 32], &entry), line(&entry));
        }
    }

    #[test]
    fn a_journal_is_awaited_while_its_process_runs() {
        let own = format!("/tmp/heaptap-run-{}-x1y2z3", std::process::id());
        assert!(is_awaited(Path::new(&own)));
        for other in ["/tmp/heaptap-run-x1y2z3", "/tmp/heaptap-run-0-x", "/tmp/x", "/"] {
            assert!(!is_awaited(Path::new(other)), "{other}");
        }
    }
}
