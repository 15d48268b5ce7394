//! The traces that are served, and their reading in the background.
//!
//! They are read one after the other on one thread, so that memory is that of one
//! reading and of the compressed archives. Those that are still being written are
//! [tailed](super::live), each on a thread of its own.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use heaptap_query::Filter;
use heaptap_report::Archive;
use serde::Serialize;

use super::available::{ReadyTrace, Unavailable};
use super::live::{LiveHandle, LiveStatus, Phase};
use super::provisional::Provisional;
use crate::analysis::archive::{self, PackedTrace, Packing};
use crate::exit_status::Failure;
use crate::io::live_target::LiveTarget;
use crate::io::notices::say;
use crate::io::trace_files::{TraceFile, expand};
use crate::io::watch::Watch;

/// All traces, by number.
pub(super) struct Traces {
    traces: Vec<ServedTrace>,
    packing: Packing,
}

/// One of them.
pub(super) struct ServedTrace {
    pub(super) path: PathBuf,
    pub(super) name: String,
    /// What to tail, if it is still being written.
    target: Option<LiveTarget>,
    /// Since the server listens.
    live: OnceLock<LiveHandle>,
    watch: Arc<Watch>,
    state: Mutex<ReadingState>,
    /// What is shown until it is read.
    provisional: Provisional,
    /// Of its files when its reading began; `None` before, or if it cannot be read again.
    versions: Mutex<Option<Vec<FileVersion>>>,
}

/// Differs if a file was written to.
#[derive(Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    length: u64,
    modified: Option<SystemTime>,
}

/// The versions of the files that a path stands for; `None` if one of them is no file.
fn versions(path: &Path) -> Option<Vec<FileVersion>> {
    let files = expand(&[path.to_owned()]).ok()?;
    let version = |file: TraceFile| {
        let metadata = file.path.metadata().ok().filter(Metadata::is_file)?;
        Some(FileVersion { length: metadata.len(), modified: metadata.modified().ok() })
    };
    files.into_iter().map(version).collect()
}

/// How far its reading is.
#[derive(Clone)]
pub(super) enum ReadingState {
    Reading,
    Ready(ReadyTrace),
    /// With the message.
    Failed(String),
}

/// The state of a trace. The field names are those of the JSON.
#[derive(Serialize)]
pub(super) struct TraceStatus<'a> {
    name: &'a str,
    state: &'static str,
    /// Bytes.
    read: u64,
    /// Bytes; 0 if that is not known.
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The reading for exact figures, while there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<ExactProgress>,
    /// If it is tailed.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<LiveStatus>,
}

#[derive(Serialize)]
struct ExactProgress {
    /// Bytes.
    read: u64,
    /// Bytes; 0 if that is not known.
    size: u64,
}

impl ServedTrace {
    fn new(
        path: PathBuf,
        name: String,
        target: Option<LiveTarget>,
        packing: &Packing,
    ) -> ServedTrace {
        let watch = Arc::<Watch>::default();
        ServedTrace {
            provisional: Provisional::new(&name, packing.effort, &watch),
            path,
            name,
            target,
            live: OnceLock::new(),
            watch,
            state: Mutex::new(ReadingState::Reading),
            versions: Mutex::new(None),
        }
    }

    fn state(&self) -> ReadingState {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The trace for the page, as it is now.
    pub(super) fn ready(&self) -> Result<ReadyTrace, Unavailable> {
        if let Some(live) = self.live.get() {
            return match live.phase() {
                Phase::Reading => Err(Unavailable::Reading),
                Phase::Failed(message) => Err(Unavailable::Failed(message)),
                Phase::Live | Phase::Ended(_) => live.packed(),
            };
        }
        match self.state() {
            ReadingState::Ready(ready) => Ok(ready),
            ReadingState::Reading => self.provisional.packed().ok_or(Unavailable::Reading),
            ReadingState::Failed(message) => Err(Unavailable::Failed(message)),
        }
    }

    fn has_failed(&self) -> bool {
        match self.live.get() {
            Some(live) => matches!(live.phase(), Phase::Failed(_)),
            None => matches!(self.state(), ReadingState::Failed(_)),
        }
    }

    fn status(&self, exact: Option<(u64, u64)>) -> TraceStatus<'_> {
        let name = &self.name;
        if let Some(live) = self.live.get() {
            let (read, size) = live.progress();
            let (state, error) = match live.phase() {
                Phase::Reading => ("reading", None),
                Phase::Live | Phase::Ended(_) => ("ready", None),
                Phase::Failed(message) => ("failed", Some(message)),
            };
            let live = Some(live.status());
            return TraceStatus { name, state, read, size, error, exact: None, live };
        }
        let (read, size) = self.watch.progress();
        let mut live = None;
        let (state, read, error) = match self.state() {
            ReadingState::Reading => match self.provisional.ask() {
                Some(version) => {
                    let percent = read.saturating_mul(100).checked_div(size).unwrap_or(0);
                    live = Some(LiveStatus::partial(version, percent));
                    ("ready", read, None)
                }
                None => ("reading", read, None),
            },
            ReadingState::Ready(_) => ("ready", read.max(size), None),
            ReadingState::Failed(message) => ("failed", read, Some(message)),
        };
        let exact = exact.map(|(read, size)| ExactProgress { read, size });
        TraceStatus { name, state, read, size, error, exact, live }
    }

    /// Fails unless another reading gives the same trace.
    fn check_unchanged(&self) -> Result<(), String> {
        let name = &self.name;
        if self.target.is_some() {
            return Err(format!(
                "{name} is followed while it is written, from its table of blocks; for exact \
                 figures, start `heaptap serve` again when its program has ended"
            ));
        }
        let read = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        match (&*read, versions(&self.path)) {
            (Some(read), Some(now)) if *read == now => Ok(()),
            (Some(_), Some(_)) => {
                Err(format!("{name} has changed since it was read; start `heaptap serve` again"))
            }
            (Some(_), None) => Err(format!(
                "{name} is not there any more; bring it back, or start `heaptap serve` again"
            )),
            (None, _) => Err(format!(
                "{name} is a pipe, which cannot be read again; save it to a file, and serve that"
            )),
        }
    }

    /// Reads the trace to its end.
    fn read(&self, packing: &Packing) -> Result<(), Failure> {
        *self.versions.lock().unwrap_or_else(PoisonError::into_inner) = versions(&self.path);
        self.provisional.begin();
        let read = || {
            PackedTrace::read_with_onlooker(
                &self.path,
                self.name.clone(),
                packing,
                &self.provisional,
            )
        };
        let (state, result) = match self.watch.during(read) {
            Ok(packed) => (ReadingState::Ready(packed.into()), Ok(())),
            Err(failure) => {
                let message = failure.message().unwrap_or("it cannot be read").to_owned();
                (ReadingState::Failed(message), Err(failure))
            }
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        self.provisional.end();
        result
    }
}

impl Traces {
    /// Each with the name under which the page shows it, and what to tail if it is still
    /// being written.
    pub(super) fn new(
        traces: impl Iterator<Item = (PathBuf, String, Option<LiveTarget>)>,
        packing: Packing,
    ) -> Self {
        let served = |(path, name, target)| ServedTrace::new(path, name, target, &packing);
        Traces { traces: traces.map(served).collect(), packing }
    }

    /// Begins to tail those that are being written. `failed` hears of each that cannot be.
    pub(super) fn tail(
        self: &Arc<Self>,
        failed: impl Fn(&Traces, Failure) + Clone + Send + 'static,
    ) -> Result<(), Failure> {
        for trace in &self.traces {
            let Some(target) = &trace.target else { continue };
            let (all, failed) = (Arc::clone(self), failed.clone());
            let live = LiveHandle::start(
                target.clone(),
                trace.name.clone(),
                self.packing.clone(),
                move |failure| failed(&all, failure),
            )?;
            trace.live.get_or_init(|| live).begin();
        }
        Ok(())
    }

    /// Whether there is nothing to show.
    pub(super) fn all_failed(&self) -> bool {
        self.traces.iter().all(ServedTrace::has_failed)
    }

    /// The trace of this number that is tailed, or the first one that is.
    pub(super) fn live(&self, number: Option<usize>) -> Option<&LiveHandle> {
        match number {
            Some(number) => self.get(number)?.live.get(),
            None => self.traces.iter().find_map(|trace| trace.live.get()),
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&ServedTrace> {
        self.traces.get(number)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.traces.iter().map(|trace| trace.name.clone())
    }

    /// The state of each; `exact` is the progress of the reading for exact figures.
    pub(super) fn status(
        &self,
        exact: impl Fn(usize) -> Option<(u64, u64)>,
    ) -> Vec<TraceStatus<'_>> {
        let numbered = self.traces.iter().enumerate();
        numbered.map(|(number, trace)| trace.status(exact(number))).collect()
    }

    /// Reads a trace again, with a filter. Fails with a message for the page.
    pub(super) fn read_again(
        &self,
        trace: usize,
        filter: &Filter,
        at: Option<u64>,
    ) -> Result<Archive, String> {
        let trace = self.get(trace).ok_or_else(|| format!("there is no trace {trace}"))?;
        trace.check_unchanged()?;
        let packing = Packing { selection: filter.selection()?, at, ..self.packing.clone() };
        archive::read_again(&trace.path, trace.name.clone(), &packing)
            .map_err(|failure| failure.message().unwrap_or("it cannot be read").to_owned())
    }

    /// Reads all that are not tailed, and reports those that cannot be read on standard
    /// error. Fails if nothing is left to show; the message of the last one is left to the
    /// caller.
    pub(super) fn read_all(&self) -> Result<(), Failure> {
        let mut failure = None;
        for trace in self.traces.iter().filter(|trace| trace.target.is_none()) {
            let result = trace.read(&self.packing);
            if let Some(message) = failure.take().as_ref().and_then(Failure::message) {
                say(message);
            }
            failure = result.err();
        }
        match failure {
            Some(failure) if self.all_failed() => Err(failure),
            Some(failure) => {
                failure.message().into_iter().for_each(say);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
