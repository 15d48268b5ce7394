//! Carries out a client's command and answers it. On the thread `heaptap-control`.

use std::time::{Duration, Instant};

use heaptap_settings::control::{self, CLIENT_SECONDS, MAX_LINE, PROGRESS_SECONDS};

use super::command::{Command, parse};
use super::process::{Process, defect};
use crate::snapshot::{self, Order, Taken};
use crate::sys::listener::Client;
use crate::sys::name::ProcessFacts;
use crate::sys::thread::{self, JoinOutcome};
use crate::tracer;

/// The longest wait for the writer.
const LONGEST_FLUSH: Duration = Duration::from_secs(10);

/// Reads one command, carries it out and answers. `user`: this process's.
pub(super) fn serve(process: &'static Process, client: &mut Client, user: u32) {
    let Ok(peer) = client.user() else { return };
    if !may_command(peer, user) {
        answer(
            client,
            Err(format!("the process belongs to the user {user}; only that user and root may ask")),
        );
        return;
    }
    let Some(line) = client.read_line(MAX_LINE, deadline()) else {
        answer(client, Err("expected one line".into()));
        return;
    };
    let Some(_in_progress) = process.begin() else {
        answer(client, Err("the program exits".into()));
        return;
    };
    let result = match parse(&line) {
        Ok(Command::Snapshot(order)) => take(process, &order, client),
        Ok(Command::Status) => Ok(status(process)),
        Ok(Command::Flush) => flush(),
        Err(reason) => Err(reason),
    };
    answer(client, result);
}

/// Whether a user may command a process of another.
pub(super) fn may_command(peer: u32, user: u32) -> bool {
    peer == user || peer == 0
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(CLIENT_SECONDS)
}

/// Writes the last line. A client that has gone is of no interest.
fn answer(client: &mut Client, result: Result<String, String>) {
    let line = match result {
        Ok(words) if words.is_empty() => "ok\n".to_owned(),
        Ok(words) => format!("ok {words}\n"),
        Err(reason) => format!("error {}\n", reason.replace('\n', " ")),
    };
    client.write(line.as_bytes(), deadline());
}

/// Takes the snapshot on another thread, and tells the client every second that it is on its
/// way.
fn take(process: &'static Process, order: &Order, client: &mut Client) -> Result<String, String> {
    let asked = order.clone();
    let worker = thread::start("heaptap-snap", move |_| process.take(&asked));
    let Ok(mut worker) = worker else {
        return process.take(order).map(|taken| figures(&taken));
    };
    let mut seconds = 0;
    loop {
        match worker.join(Duration::from_secs(PROGRESS_SECONDS)) {
            JoinOutcome::Done(taken) => return taken.map(|taken| figures(&taken)),
            JoinOutcome::Panicked(message) => return Err(defect(&message)),
            JoinOutcome::Running(running) => {
                worker = running;
                seconds += PROGRESS_SECONDS;
                client.write(format!("wait {seconds}\n").as_bytes(), deadline());
            }
        }
    }
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

fn status(process: &Process) -> String {
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

fn flush() -> Result<String, String> {
    if tracer::traced_file().is_none() {
        Err("the program is not traced, so there is nothing to write".into())
    } else if tracer::flush_signal_safe(LONGEST_FLUSH) {
        Ok(String::new())
    } else {
        Err(format!("the trace was not written within {} s", LONGEST_FLUSH.as_secs()))
    }
}
