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

use super::available::{ReadyTrace, Unavailable};
use super::live::LiveHandle;
use super::reading::{Phase, Reading, TraceStatus, message_of};
use crate::analysis::archive::{self, PackedTrace, Packing};
use crate::exit_status::Failure;
use crate::io::live_target::LiveTarget;
use crate::io::notices::say;
use crate::io::trace_files::{InputFile, expand};

/// All traces, by number.
pub(super) struct Traces(Vec<ServedTrace>);

/// One of them.
pub(super) struct ServedTrace {
    path: PathBuf,
    reading: Arc<Reading>,
    /// What to tail, if it is still being written.
    target: Option<LiveTarget>,
    /// Since the server listens.
    live: OnceLock<LiveHandle>,
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
    let version = |file: InputFile| {
        let metadata = file.path.metadata().ok().filter(Metadata::is_file)?;
        Some(FileVersion { length: metadata.len(), modified: metadata.modified().ok() })
    };
    files.into_iter().map(version).collect()
}

impl ServedTrace {
    /// The trace for the page, as it is now.
    pub(super) fn ready(&self) -> Result<ReadyTrace, Unavailable> {
        match (self.reading.packed()?, self.live.get()) {
            (Some(packed), _) => Ok(packed),
            (None, Some(live)) => live.pack(),
            (None, None) => Err(Unavailable::Reading),
        }
    }

    pub(super) fn is_tailed(&self) -> bool {
        self.target.is_some()
    }

    /// Whether the program runs whose trace is tailed. `None` until what was there first is read, and of other traces.
    pub(super) fn program_runs(&self) -> Option<bool> {
        match self.reading.phase() {
            Phase::Live => Some(true),
            Phase::Ended(_) => Some(false),
            Phase::Reading | Phase::Complete | Phase::Failed(_) => None,
        }
    }

    fn has_failed(&self) -> bool {
        matches!(self.reading.phase(), Phase::Failed(_))
    }

    /// Fails unless another reading gives the same trace.
    fn check_unchanged(&self) -> Result<(), String> {
        let name = &self.reading.name;
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
    fn read(&self) -> Result<(), Failure> {
        *self.versions.lock().unwrap_or_else(PoisonError::into_inner) = versions(&self.path);
        let reading = &*self.reading;
        reading.begin();
        let name = reading.name.clone();
        let read = || PackedTrace::read_with_onlooker(&self.path, name, &reading.packing, reading);
        let packed = reading.watch.during(read).inspect_err(|failure| reading.fail(failure))?;
        reading.complete(packed.into());
        Ok(())
    }
}

impl Traces {
    /// Each with the name under which the page shows it, and what to tail if it is still
    /// being written.
    pub(super) fn new(
        traces: impl Iterator<Item = (PathBuf, String, Option<LiveTarget>)>,
        packing: &Packing,
    ) -> Self {
        let served = |(path, name, target): (_, _, Option<LiveTarget>)| {
            let reading = Arc::new(Reading::new(name, packing.clone(), target.is_some()));
            let (live, versions) = (OnceLock::new(), Mutex::default());
            ServedTrace { path, reading, target, live, versions }
        };
        Traces(traces.map(served).collect())
    }

    /// Begins to tail those that are being written. `failed` hears of each that cannot be.
    pub(super) fn tail(
        self: &Arc<Self>,
        failed: impl Fn(&Traces, Failure) + Clone + Send + 'static,
    ) -> Result<(), Failure> {
        for trace in &self.0 {
            let Some(target) = &trace.target else { continue };
            let (all, failed) = (Arc::clone(self), failed.clone());
            let live = LiveHandle::start(target.clone(), &trace.reading, move |failure| {
                failed(&all, failure);
            })?;
            trace.live.get_or_init(|| live).begin();
        }
        Ok(())
    }

    /// Whether there is nothing to show.
    pub(super) fn all_failed(&self) -> bool {
        self.0.iter().all(ServedTrace::has_failed)
    }

    /// The trace of this number that is tailed, or the first one that is.
    pub(super) fn live(&self, number: Option<usize>) -> Option<&LiveHandle> {
        match number {
            Some(number) => self.get(number)?.live.get(),
            None => self.0.iter().find_map(|trace| trace.live.get()),
        }
    }

    pub(super) fn get(&self, number: usize) -> Option<&ServedTrace> {
        self.0.get(number)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|trace| trace.reading.name.clone())
    }

    /// The state of each; `exact` is the progress of the reading for exact figures.
    pub(super) fn status(
        &self,
        exact: impl Fn(usize) -> Option<(u64, u64)>,
    ) -> Vec<TraceStatus<'_>> {
        let numbered = self.0.iter().enumerate();
        numbered.map(|(number, trace)| trace.reading.status(exact(number))).collect()
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
        let packing =
            Packing { selection: filter.selection()?, at, ..trace.reading.packing.clone() };
        archive::read_again(&trace.path, trace.reading.name.clone(), &packing)
            .map_err(|failure| message_of(&failure))
    }

    /// Reads all that are not tailed, and reports those that cannot be read on standard
    /// error. Fails if nothing is left to show; the message of the last one is left to the
    /// caller.
    pub(super) fn read_all(&self) -> Result<(), Failure> {
        let mut failure = None;
        for trace in self.0.iter().filter(|trace| trace.target.is_none()) {
            let result = trace.read();
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
