//! What each command does and answers.

use std::time::Duration;

use heaptap_control::{Command, Flushed, Rotated, SnapshotRequest, Status, Taken};

use super::jobs::{Answer, Queue, Work};
use super::process::Process;
use crate::snapshot::{self, Cancellation, Method, Order, Reason};
use crate::sys::name_pattern::ProcessFacts;
use crate::tracer::{self, Failure, Rate};

/// The longest wait for the writer.
const LONGEST_FLUSH: Duration = Duration::from_secs(10);

/// How a command is carried out.
pub(super) enum Plan {
    /// At once.
    Now(fn(&Process) -> Answer),
    /// It takes time. Cancelled when the client goes away.
    Job(Queue, Cancellation, Work),
}

/// Whether a user may command a process of another.
pub(super) fn may_command(peer: u32, user: u32) -> bool {
    peer == user || peer == 0
}

pub(super) fn plan(process: &'static Process, command: Command) -> Plan {
    match command {
        Command::Status => Plan::Now(|process| Ok(status(process).to_string())),
        Command::Flush => Plan::Job(Queue::Flushes, Cancellation::default(), Box::new(flush)),
        Command::Rotate => {
            Plan::Job(Queue::Flushes, Cancellation::default(), Box::new(|| next_part(None)))
        }
        Command::Rate(rate) => {
            let work = Box::new(move || next_part(Some(rate)));
            Plan::Job(Queue::Flushes, Cancellation::default(), work)
        }
        Command::Snapshot(request) => {
            let order = order(request);
            let cancellation = order.cancellation.clone();
            let take = move || take(process, &order);
            Plan::Job(Queue::Snapshots, cancellation, Box::new(take))
        }
    }
}

fn order(request: SnapshotRequest) -> Order {
    let SnapshotRequest { file, sync, string_bytes, wait } = request;
    let method = if sync { Method::Synchronous } else { Method::CopyOnWrite };
    let patience = wait.unwrap_or(Order::PATIENCE);
    Order { method, string_bytes, patience, ..Order::new(file, Reason::Request) }
}

fn take(process: &Process, order: &Order) -> Answer {
    let snapshot::Taken { path, method, blocks, words, roots, bytes, pause } =
        process.take(order)?;
    let (pause_us, method) = (pause.as_micros() as u64, method.name().to_owned());
    Ok(Taken { file: path, blocks, words, roots, bytes, pause_us, method }.to_string())
}

fn status(process: &Process) -> Status {
    let walkable = match &process.support.refusal {
        None => snapshot::walkable_runtime().map_err(|error| error.to_string()),
        Some(refusal) => Err(refusal.clone()),
    };
    let (runtime, snapshots) = match walkable {
        Ok(runtime) => (runtime, "yes".to_owned()),
        Err(reason) => (process.support.runtime.to_owned(), format!("no: {reason}")),
    };
    Status {
        pid: process.pid,
        program: ProcessFacts::gather().executable,
        version: crate::VERSION.to_owned(),
        runtime,
        trace: tracer::live_session().map(|session| session.file()).unwrap_or_default(),
        snapshots,
    }
}

/// Writes everything recorded so far.
fn flush() -> Answer {
    match tracer::live_session() {
        None => Err("the program is not traced, so there is nothing to write".into()),
        Some(session) if session.flush_signal_safe(LONGEST_FLUSH) => Ok(Flushed {}.to_string()),
        Some(_) => Err(format!("the trace was not written within {} s", LONGEST_FLUSH.as_secs())),
    }
}

/// Begins the next file of a series, at this rate or the one before.
fn next_part(rate: Option<f64>) -> Answer {
    let session = tracer::live_session()
        .ok_or("the program is not traced, so there is no file to go on from")?;
    let rate = match rate {
        None => None,
        Some(rate) => Some(
            Rate::new(rate)
                .ok_or_else(|| format!("{rate} is no sampling rate: from {:e} to 1", Rate::MIN))?,
        ),
    };
    match session.next_part(rate) {
        Ok(file) => Ok(Rotated { file }.to_string()),
        Err(Failure::Order) => Err(format!(
            "the trace is one file, at one rate: start the program with {} (heaptap run --rotate)",
            heaptap_settings::ROTATE.name
        )),
        Err(_) => Err("the trace has ended".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn a_request_is_an_order() {
        let ordered =
            |sync, wait| order(SnapshotRequest { file: "/x".into(), sync, string_bytes: 7, wait });
        let plain = ordered(false, None);
        assert_eq!((&*plain.path, plain.string_bytes), (Path::new("/x"), 7));
        assert_eq!((plain.method, plain.patience), (Method::CopyOnWrite, Order::PATIENCE));
        assert_eq!(plain.reason, Reason::Request);
        let minute = Duration::from_secs(60);
        let all = ordered(true, Some(minute));
        assert_eq!((all.method, all.patience), (Method::Synchronous, minute));
    }
}
