//! What each command does and answers.

use std::time::Duration;

use heaptap_settings::control;

pub(super) use super::command::{Command, parse as command};
use super::process::Process;
use crate::snapshot::{self, Order, Taken};
use crate::sys::name::ProcessFacts;
use crate::tracer;

/// The longest wait for the writer.
const LONGEST_FLUSH: Duration = Duration::from_secs(10);

/// Whether a user may command a process of another.
pub(super) fn may_command(peer: u32, user: u32) -> bool {
    peer == user || peer == 0
}

/// Takes a snapshot. On a thread of its own.
pub(super) fn take(process: &Process, order: &Order) -> Result<String, String> {
    process.take(order).map(|taken| figures(&taken))
}

fn figures(taken: &Taken) -> String {
    format!(
        "file={} blocks={} words={} roots={} bytes={} pause_us={} method={}",
        control::encode_os(&taken.path),
        taken.blocks,
        taken.words,
        taken.roots,
        taken.bytes,
        taken.pause.as_micros(),
        taken.method.name(),
    )
}

/// The words of `status`.
pub(super) fn status(process: &Process) -> String {
    let walkable = match &process.support.refusal {
        None => snapshot::walkable_runtime().map_err(|error| error.to_string()),
        Some(refusal) => Err(refusal.clone()),
    };
    let (runtime, snapshots) = match walkable {
        Ok(runtime) => (runtime, "yes".to_owned()),
        Err(reason) => (process.support.runtime.to_owned(), format!("no: {reason}")),
    };
    let trace = tracer::traced_file().unwrap_or_default();
    format!(
        "pid={} program={} version={} runtime={} trace={} snapshots={}",
        process.pid,
        control::encode_os(ProcessFacts::gather().executable),
        crate::VERSION,
        control::encode(runtime.as_bytes()),
        control::encode_os(trace),
        control::encode(snapshots.as_bytes()),
    )
}

/// Writes everything recorded so far. On a thread of its own.
pub(super) fn flush() -> Result<String, String> {
    if tracer::traced_file().is_none() {
        Err("the program is not traced, so there is nothing to write".into())
    } else if tracer::flush_signal_safe(LONGEST_FLUSH) {
        Ok(String::new())
    } else {
        Err(format!("the trace was not written within {} s", LONGEST_FLUSH.as_secs()))
    }
}
