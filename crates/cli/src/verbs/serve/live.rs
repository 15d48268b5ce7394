//! A trace that is tailed while it is written.
//!
//! Each has a thread, which owns its aggregate. Connections send it jobs and wait for what they
//! return, so nothing is packed unless somebody looks, and those who look at the same moment
//! share what was packed. When the trace has ended, it is read once more as every other trace:
//! in the order of time, with all that such a reading reports.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::Duration;

use heaptap_report::{Depth, Options};

use super::available::{ReadyTrace, Unavailable};
use super::reading::{Phase, Reading};
use crate::analysis::archive::{PackedTrace, TraceNotes};
use crate::analysis::live::LiveAggregation;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::live_target::LiveTarget;
use crate::io::live_trace::{self, LiveState};
use crate::io::notices::say;
use crate::io::watch::Watch;

/// How long a connection may have to wait while a trace is read.
const SLICE: Duration = Duration::from_millis(40);
/// How often a pipe is looked at: it holds little.
const PACE_OF_PIPE: Duration = Duration::from_millis(5);
/// How often a trace that has ended is looked at: another may take its name.
const PACE_AT_END: Duration = Duration::from_millis(100);
/// The most jobs that wait.
const MOST_JOBS: usize = 32;
/// How long a connection waits for the answer to a job.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a connection has done by the thread of a trace.
type Job = Box<dyn FnOnce(&mut TailedTrace) + Send>;

/// A tailed trace, as the connections see it.
pub(super) struct LiveHandle {
    jobs: SyncSender<Job>,
    pub(super) reading: Arc<Reading>,
}

impl LiveHandle {
    /// Follows a trace on a new thread, after [`LiveHandle::begin`]. `failed` hears if that ends
    /// with a failure.
    pub(super) fn start(
        target: LiveTarget,
        reading: &Arc<Reading>,
        failed: impl FnOnce(Failure) + Send + 'static,
    ) -> Result<LiveHandle, Failure> {
        let (jobs, received) = sync_channel(MOST_JOBS);
        let of_thread = Arc::clone(reading);
        let tail = move || {
            // The first job is that it begins.
            if received.recv().is_err() {
                return;
            }
            let tailed = TailedTrace::new(&target, Arc::clone(&of_thread))
                .and_then(|mut tailed| tailed.tail(&received));
            if let Err(failure) = tailed {
                of_thread.fail(&failure);
                failed(failure);
            }
        };
        thread::Builder::new()
            .spawn(tail)
            .map_err(|error| Failure::Trouble(format!("no thread can be started: {error}")))?;
        Ok(LiveHandle { jobs, reading: Arc::clone(reading) })
    }

    /// Begins, once whoever hears of a failure can find this handle.
    pub(super) fn begin(&self) {
        // There is room for the first job.
        let _ = self.jobs.try_send(Box::new(|_| {}));
    }

    /// The trace as it is now, packed by its thread.
    pub(super) fn pack(&self) -> Result<ReadyTrace, Unavailable> {
        let packed = self.ask(TailedTrace::packed)?;
        packed
            .ok_or_else(|| Unavailable::Failed("the trace has no packet yet; try again".to_owned()))
    }

    /// Has a job done by the thread of the trace, and waits for the result.
    pub(super) fn ask<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut TailedTrace) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let (sender, receiver) = sync_channel(1);
        let job = move |tailed: &mut TailedTrace| {
            // A connection that waits no longer has no use for it.
            let _ = sender.send(job(tailed));
        };
        self.jobs.try_send(Box::new(job)).map_err(|error| match error {
            TrySendError::Full(_) => Unavailable::Busy,
            TrySendError::Disconnected(_) => self.gone(),
        })?;
        receiver.recv_timeout(PATIENCE).map_err(|error| match error {
            RecvTimeoutError::Timeout => Unavailable::Busy,
            RecvTimeoutError::Disconnected => self.gone(),
        })
    }

    fn gone(&self) -> Unavailable {
        Unavailable::Failed(match self.reading.phase() {
            Phase::Failed(message) => message,
            _ => "the trace is not followed any more; please report this".to_owned(),
        })
    }
}

/// A tailed trace, on its thread.
pub(super) struct TailedTrace {
    pub(super) trace: LiveAggregation,
    reading: Arc<Reading>,
}

impl TailedTrace {
    fn new(target: &LiveTarget, reading: Arc<Reading>) -> Result<TailedTrace, Failure> {
        let (depth, most_blocks) = (Depth::Whole, reading.packing.most_blocks);
        let options = Options { depth, most_blocks, ..Options::default() };
        let trace = LiveAggregation::new(target.open()?, options);
        Ok(TailedTrace { trace, reading })
    }

    /// Reads and does jobs for as long as the program runs.
    fn tail(&mut self, jobs: &Receiver<Job>) -> Result<(), Failure> {
        loop {
            let was_ended = self.trace.state() == LiveState::Ended;
            let changed = self.trace.advance(SLICE)?;
            self.note(changed);
            let state = self.trace.state();
            if state == LiveState::Ended && !was_ended {
                self.read_again()?;
            }
            let pace = match state {
                LiveState::More | LiveState::Replaced | LiveState::Resumed => Duration::ZERO,
                LiveState::Waiting if self.trace.file().is_none() => PACE_OF_PIPE,
                LiveState::Waiting => live_trace::PACE,
                LiveState::Ended => PACE_AT_END,
            };
            let mut job = jobs.recv_timeout(pace);
            while let Ok(next) = job {
                next(self);
                job = jobs.recv_timeout(Duration::ZERO);
            }
        }
    }

    /// Tells the connections how far it is.
    fn note(&self, changed: bool) {
        let phase = match self.trace.state() {
            LiveState::Ended => Some(Phase::Ended(self.trace.cut_reason())),
            LiveState::Waiting if self.trace.info().is_some() => Some(Phase::Live),
            // Until its first packet is there, another trace in the same place is like the first.
            LiveState::Waiting | LiveState::More | LiveState::Replaced | LiveState::Resumed => None,
        };
        let length = self.trace.file().and_then(|file| file.metadata().ok());
        let size = length.map_or(0, |metadata| self.trace.bytes_before() + metadata.len());
        self.reading.note((self.trace.bytes_read(), size), phase, changed);
    }

    /// The trace as it is now; `None` before its first packet.
    fn packed(&mut self) -> Option<ReadyTrace> {
        // Who looks at the same moment shares what was packed.
        if let Ok(Some(packed)) = self.reading.packed() {
            return Some(packed);
        }
        let (cut_short, incomplete) = (self.trace.cut_short(), self.trace.incomplete());
        let notices = self.trace.losses();
        let notes = TraceNotes {
            cut_short: cut_short.as_deref(),
            incomplete: incomplete.as_deref(),
            notices: &notices,
        };
        self.reading.pack(self.trace.figures().as_ref(), notes)
    }

    /// Reads a trace that has ended as every other trace. A pipe stays as it came.
    fn read_again(&mut self) -> Result<(), Failure> {
        let Some(file) = self.trace.file().filter(|_| self.trace.info().is_some()) else {
            return Ok(());
        };
        let Reading { name, packing, .. } = &*self.reading;
        let parts = self.trace.parts();
        let packed = if parts.is_empty() {
            let input = Input::of_file(self.trace.name(), file)?.quietly();
            PackedTrace::of_input(&input, name.clone(), packing)
        } else if parts.iter().all(|part| part.is_file()) {
            let quiet = Arc::new(Watch::default());
            quiet.during(|| PackedTrace::of_parts(parts, name.clone(), packing))
        } else {
            // What was read of parts that are gone stays as it came.
            return Ok(());
        };
        match packed {
            Ok(packed) => self.reading.replace(packed.into()),
            // What was tailed is still there.
            Err(failure) => failure.message().into_iter().for_each(say),
        }
        Ok(())
    }
}
