//! A trace that is tailed while it is written.
//!
//! Each has a thread, which owns its aggregate. Connections send it jobs and wait for what they
//! return, so nothing is packed unless somebody looks, and those who look at the same moment
//! share what was packed. When the trace has ended, it is read once more as every other trace:
//! in the order of time, with all that such a reading reports.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use heaptap_report::{Depth, Options};
use heaptap_trace::CutReason;
use serde::Serialize;

use super::available::{ReadyTrace, Unavailable};
use crate::analysis::archive::{PackedTrace, Packing, packed_so_far, source_files};
use crate::analysis::live::LiveAggregation;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::live_target::LiveTarget;
use crate::io::live_trace::{self, LiveState};
use crate::io::notices::say;

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
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<SharedState>,
}

#[derive(Clone, Default)]
struct SharedState {
    phase: Phase,
    /// Grows with everything that is read.
    version: u64,
    /// Bytes read, and those of the file; 0 if that is not known.
    read: u64,
    size: u64,
    /// The trace as it was at a version.
    packed: Option<(u64, ReadyTrace)>,
}

/// How far a tailed trace is.
#[derive(Clone, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// What was there at the beginning is being read, or there is nothing yet.
    #[default]
    Reading,
    /// All that is written so far was read.
    Live,
    Ended(Option<CutReason>),
    /// With the message.
    Failed(String),
}

/// What the page hears about a tailed trace. The field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct LiveStatus {
    /// Another text: there is something new.
    version: String,
    state: &'static str,
    /// Of a trace that is not read to its end: how much of it was, in hundredths.
    #[serde(skip_serializing_if = "Option::is_none")]
    percent: Option<u64>,
}

impl LiveStatus {
    fn new(version: u64, state: &'static str, percent: Option<u64>) -> LiveStatus {
        LiveStatus { version: format!("{:x}-{version}", server_number()), state, percent }
    }

    /// Of a complete trace of which a part was read.
    pub(super) fn partial(version: u64, percent: u64) -> LiveStatus {
        LiveStatus::new(version, "partial", Some(percent))
    }
}

/// Tells the versions of this server from those of another.
fn server_number() -> u64 {
    static NUMBER: OnceLock<u64> = OnceLock::new();
    // Keyed at random.
    *NUMBER.get_or_init(|| RandomState::new().hash_one(std::process::id()))
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, SharedState> {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LiveHandle {
    /// Follows a trace on a new thread, after [`LiveHandle::begin`]. `failed` hears if that ends
    /// with a failure.
    pub(super) fn start(
        target: LiveTarget,
        name: String,
        packing: Packing,
        failed: impl FnOnce(Failure) + Send + 'static,
    ) -> Result<LiveHandle, Failure> {
        let (jobs, received) = sync_channel(MOST_JOBS);
        let shared = Arc::<Shared>::default();
        let of_thread = Arc::clone(&shared);
        let tail = move || {
            // The first job is that it begins.
            if received.recv().is_err() {
                return;
            }
            let tailed = TailedTrace::new(&target, name, packing, Arc::clone(&of_thread))
                .and_then(|mut tailed| tailed.tail(&received));
            if let Err(failure) = tailed {
                let message = failure.message().unwrap_or("it cannot be read").to_owned();
                of_thread.state().phase = Phase::Failed(message);
                failed(failure);
            }
        };
        thread::Builder::new()
            .spawn(tail)
            .map_err(|error| Failure::Trouble(format!("no thread can be started: {error}")))?;
        Ok(LiveHandle { jobs, shared })
    }

    /// Begins, once whoever hears of a failure can find this handle.
    pub(super) fn begin(&self) {
        // There is room for the first job.
        let _ = self.jobs.try_send(Box::new(|_| {}));
    }

    pub(super) fn phase(&self) -> Phase {
        self.shared.state().phase.clone()
    }

    pub(super) fn progress(&self) -> (u64, u64) {
        let state = self.shared.state();
        (state.read, state.size)
    }

    pub(super) fn status(&self) -> LiveStatus {
        let state = self.shared.state();
        let text = match state.phase {
            Phase::Reading => "reading",
            Phase::Live => "live",
            Phase::Ended(None) => "ended",
            Phase::Ended(Some(CutReason::Unfinished)) => "killed",
            Phase::Ended(Some(CutReason::WriteFailed)) => "cut",
            Phase::Failed(_) => "failed",
        };
        LiveStatus::new(state.version, text, None)
    }

    /// The trace as it is now.
    pub(super) fn packed(&self) -> Result<ReadyTrace, Unavailable> {
        {
            let state = self.shared.state();
            if let Some((version, packed)) = &state.packed
                && *version == state.version
            {
                return Ok(packed.clone());
            }
        }
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
        Unavailable::Failed(match self.phase() {
            Phase::Failed(message) => message,
            _ => "the trace is not followed any more; please report this".to_owned(),
        })
    }
}

/// A tailed trace, on its thread.
pub(super) struct TailedTrace {
    pub(super) trace: LiveAggregation,
    name: String,
    packing: Packing,
    shared: Arc<Shared>,
}

impl TailedTrace {
    fn new(
        target: &LiveTarget,
        name: String,
        packing: Packing,
        shared: Arc<Shared>,
    ) -> Result<TailedTrace, Failure> {
        let (depth, most_blocks) = (Depth::Whole, packing.most_blocks);
        let options = Options { depth, most_blocks, ..Options::default() };
        let trace = LiveAggregation::new(target.open()?, options);
        Ok(TailedTrace { trace, name, packing, shared })
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
        let mut state = self.shared.state();
        state.version += u64::from(changed);
        state.read = self.trace.bytes_read();
        let length = self.trace.file().and_then(|file| file.metadata().ok());
        state.size = length.map_or(0, |metadata| metadata.len());
        if let Some(phase) = phase {
            state.phase = phase;
        }
    }

    /// The trace as it is now; `None` before its first packet.
    fn packed(&mut self) -> Option<ReadyTrace> {
        let version = {
            let state = self.shared.state();
            if let Some((version, packed)) = &state.packed
                && *version == state.version
            {
                return Some(packed.clone());
            }
            state.version
        };
        let (cut_short, notices) = (self.trace.cut_short(), self.trace.losses());
        let Some(figures) = self.trace.figures() else {
            // Another trace took the place of that one, and has no packet yet.
            return self.shared.state().packed.as_ref().map(|(_, packed)| packed.clone());
        };
        let notes = (cut_short.as_deref(), &notices[..]);
        let gzip = packed_so_far(&figures, &self.name, notes, self.packing.effort).into();
        let packed = ReadyTrace { gzip, files: Arc::new(source_files(figures.locations)) };
        self.shared.state().packed = Some((version, packed.clone()));
        Some(packed)
    }

    /// Reads a trace that has ended as every other trace. A pipe stays as it came.
    fn read_again(&mut self) -> Result<(), Failure> {
        let Some(file) = self.trace.file().filter(|_| self.trace.info().is_some()) else {
            return Ok(());
        };
        let input = Input::of_file(self.trace.name(), file)?.quietly();
        match PackedTrace::of_input(&input, self.name.clone(), &self.packing) {
            Ok(packed) => {
                let mut state = self.shared.state();
                state.version += 1;
                state.packed = Some((state.version, packed.into()));
            }
            // What was tailed is still there.
            Err(failure) => failure.message().into_iter().for_each(say),
        }
        Ok(())
    }
}
