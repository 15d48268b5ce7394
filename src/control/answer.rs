//! What each command does and answers.

use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::Duration;

use heaptap_control::{
    Budgeted, Command, Flushed, Marked, Recorded, RecorderRequest, Rotated, SnapshotRequest,
    StartRequest, Started, Status, Stopped, Taken,
};

use heaptap_settings::BUDGETS;

use super::jobs::{Answer, Queue, Work};
use super::lease;
use super::process::{self, Process};
use super::sessions::{Sessions, StartOrder, StoppedSession, Wait};
use crate::safe_point::Cancellation;
use crate::snapshot::{self, Method, Order, Reason};
use crate::sys::name_pattern::ProcessFacts;
use crate::tracer::{self, DumpOrder, DumpReason, Dumped, Failure, Rate, RecorderLimits};

/// The longest wait for the writer.
const LONGEST_FLUSH: Duration = Duration::from_secs(10);

/// How a command is carried out.
pub(super) enum Plan {
    /// At once.
    Now(Box<dyn FnOnce(&Process) -> Answer>),
    /// It takes time. Cancelled when the client goes away.
    Job(Queue, Cancellation, Work),
}

/// Whether a user may command a process of another.
pub(super) fn may_command(peer: u32, user: u32) -> bool {
    peer == user || peer == 0
}

pub(super) fn plan(process: &'static Process, command: Command) -> Plan {
    match command {
        Command::Status => Plan::Now(Box::new(|process| Ok(status(process).to_string()))),
        Command::Flush => Plan::Job(Queue::Flushes, Cancellation::default(), Box::new(flush)),
        Command::Mark(text) => Plan::Now(Box::new(move |_| mark(&text))),
        Command::Start(request) => {
            let cancellation = Cancellation::default();
            let wait = Wait::new(request.wait, cancellation.clone());
            let start = move || start(process, request, wait);
            Plan::Job(Queue::Sessions, cancellation, Box::new(start))
        }
        Command::Stop(request) => {
            let cancellation = Cancellation::default();
            let wait = Wait::new(request.wait, cancellation.clone());
            Plan::Job(Queue::Sessions, cancellation, Box::new(move || stop(process, &wait)))
        }
        Command::Rotate => Plan::Job(Queue::Flushes, Cancellation::default(), Box::new(next_part)),
        Command::Rate(rate) => {
            let work = Box::new(move || change_rate(rate));
            Plan::Job(Queue::Flushes, Cancellation::default(), work)
        }
        Command::Budget(percent) => {
            let work = Box::new(move || change_budget(percent));
            Plan::Job(Queue::Flushes, Cancellation::default(), work)
        }
        Command::Recorder(request) => {
            let work = Box::new(move || record(request));
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

/// Carries out a command on a thread of the program, which has called us and waits. An error says
/// what to do.
pub(crate) fn command_from_program(line: &[u8]) -> Answer {
    let process = process::of_program()?;
    let _in_progress = process.begin().ok_or("the program exits")?;
    match plan(process, Command::parse(line)?) {
        Plan::Now(answer) => answer(process),
        Plan::Job(_, _, work) => process::here("heaptap-command", work),
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
    let sessions = process.support.sessions.as_ref().err();
    let session = tracer::live_session();
    let stats = session.as_ref().map(|session| session.stats()).unwrap_or_default();
    let recorder = session.as_ref().and_then(|session| session.recorder());
    Status {
        pid: process.pid,
        program: ProcessFacts::gather().executable,
        version: crate::VERSION.to_owned(),
        runtime,
        trace: session.as_ref().map(|session| session.file()).unwrap_or_default(),
        snapshots,
        sessions: sessions.map_or_else(|| "yes".to_owned(), |why| format!("no: {why}")),
        state: match (&session, recorder) {
            (Some(_), Some(_)) => "recording",
            (Some(_), None) => "tracing",
            (None, _) => "idle",
        }
        .to_owned(),
        covered: recorder.map_or(0.0, |recorder| recorder.covered().as_secs_f64()),
        rate: session.as_ref().map_or(0.0, |session| session.rate().get()),
        budget: session.as_ref().and_then(|session| session.budget()).map_or(0.0, |it| it.share),
        cost: rounded(stats.cost.share()),
        bytes: stats.bytes,
        samples: stats.totals.samples,
        lost: stats.totals.dropped,
    }
}

/// To hundredths of a per cent of a whole, which is finer than hooks are measured.
fn rounded(share: f64) -> f64 {
    (share * 1e4).round() / 1e4
}

fn sessions(process: &Process) -> Result<&'static dyn Sessions, String> {
    process.support.sessions.clone()
}

fn start(process: &'static Process, request: StartRequest, wait: Wait) -> Answer {
    let StartRequest { file, rate, budget, rotate, keep, recorder, timeline, span, .. } = request;
    let rate = rate.map(checked_rate).transpose()?;
    let budget = budget.map(checked_share).transpose()?;
    let recorder = recorder.map(|text| recorder_limits(&text)).transpose()?;
    let file = file.into_os_string().into_vec();
    let time_line = timeline;
    let order = StartOrder { file, rate, budget, rotate, keep, recorder, time_line, wait };
    let sessions = sessions(process)?;
    let session = sessions.start(&order)?;
    if let Some(span) = span
        && let Err(why) = lease::begin(process, sessions, &session, span)
    {
        // Rather none than one without an end.
        let _ = sessions.stop(Some(&session), &order.wait);
        return Err(why);
    }
    Ok(Started { file: session.file(), rate: session.rate().get() }.to_string())
}

fn stop(process: &Process, wait: &Wait) -> Answer {
    let StoppedSession { session, words } = sessions(process)?.stop(None, wait)?;
    let file = session.file();
    if session.write_failed() {
        return Err(format!("the trace has ended, but {} lacks its end", file.display()));
    }
    let stats = session.stats();
    let (samples, lost) = (stats.totals.samples, stats.totals.dropped);
    let words = words.unwrap_or(0);
    // Of a recorder, what it has written to files.
    let bytes = session.recorder().map_or(stats.bytes, |recorder| recorder.written());
    Ok(Stopped { file, bytes, samples, lost, words }.to_string())
}

fn recorder_limits(text: &str) -> Result<RecorderLimits, String> {
    let parsed = heaptap_settings::Recorder::parse(text);
    let parsed =
        parsed.ok_or_else(|| format!("a recorder needs {}", heaptap_settings::RECORDER.syntax))?;
    let heaptap_settings::Recorder { time, bytes, at_exit } = parsed;
    Ok(RecorderLimits { time, bytes, at_exit })
}

/// Writes what a recorder has in memory.
fn record(request: RecorderRequest) -> Answer {
    let session =
        tracer::live_session().ok_or("the program is not traced, so nothing is recorded of it")?;
    if session.recorder().is_none() {
        return Err(format!(
            "the trace is written all the time, into {}: nothing has to be asked for",
            session.file().display()
        ));
    }
    let order = DumpOrder { reason: DumpReason::Asked, directory: request.directory };
    let dumped = session.dump(order).ok_or("the trace has ended")??;
    let Dumped { directory, bytes, covered, cut_short } = dumped;
    let (covered, cut_short) = (covered.as_secs_f64(), cut_short.unwrap_or_default());
    Ok(Recorded { directory, bytes, covered, cut_short }.to_string())
}

/// Adds a line to the log beside the trace.
fn mark(text: &OsStr) -> Answer {
    let session =
        tracer::live_session().ok_or("the program is not traced, so nothing is marked")?;
    session.log(text.as_bytes());
    Ok(Marked {}.to_string())
}

/// Writes everything recorded so far.
fn flush() -> Answer {
    match tracer::live_session() {
        None => Err("the program is not traced, so there is nothing to write".into()),
        Some(session) if session.flush_signal_safe(LONGEST_FLUSH) => Ok(Flushed {}.to_string()),
        Some(_) => Err(format!("the trace was not written within {} s", LONGEST_FLUSH.as_secs())),
    }
}

/// Begins the next file of a series.
fn next_part() -> Answer {
    let session = tracer::live_session()
        .ok_or("the program is not traced, so there is no file to go on from")?;
    if session.recorder().is_some() {
        return Err("the trace is kept in memory: `recorder` writes it to files".into());
    }
    match session.next_part(None) {
        Ok(file) => Ok(Rotated { file }.to_string()),
        Err(Failure::Order) => Err(format!(
            "the trace is one file: for a series, start the program with {} (heaptap run --rotate), or the \
             trace with rotate=WHEN (heaptap start --rotate)",
            heaptap_settings::ROTATE.name
        )),
        Err(_) => Err("the trace has ended".into()),
    }
}

/// Samples at this rate from now on.
fn change_rate(rate: f64) -> Answer {
    let session =
        tracer::live_session().ok_or("the program is not traced, so there is no rate to change")?;
    let file = session.change_rate(checked_rate(rate)?)?;
    Ok(Rotated { file }.to_string())
}

/// Keeps this budget, in per cent, from now on, or none.
fn change_budget(percent: Option<f64>) -> Answer {
    let session = tracer::live_session()
        .ok_or("the program is not traced, so there is nothing to spend a budget on")?;
    let share = percent.map(checked_share).transpose()?;
    let rate = session.change_budget(share)?.get();
    Ok(Budgeted { file: session.file(), rate, budget: share.unwrap_or(0.0) }.to_string())
}

fn checked_rate(rate: f64) -> Result<Rate, String> {
    Rate::new(rate).ok_or_else(|| format!("{rate} is no sampling rate: from {:e} to 1", Rate::MIN))
}

/// The share that so many per cent are.
fn checked_share(percent: f64) -> Result<f64, String> {
    let (low, high) = (BUDGETS.start(), BUDGETS.end());
    let refused = || format!("{percent}% is no budget: from {low}% to {high}%");
    heaptap_settings::budget(&format!("{percent}%")).ok_or_else(refused)
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
