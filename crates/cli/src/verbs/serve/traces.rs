//! The traces that are served, and their reading in the background.
//!
//! They are read one after the other on one thread, so that memory is that of one
//! reading and of the compressed archives.

use std::collections::BTreeSet;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use heaptap_page::Filter;
use heaptap_report::Archive;
use serde::Serialize;

use crate::analysis::archive::{self, PackedTrace, Packing};
use crate::exit_status::Failure;
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
    watch: Arc<Watch>,
    state: Mutex<ReadingState>,
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

/// What a trace that was read leaves behind.
#[derive(Clone)]
pub(super) struct ReadyTrace {
    /// The compressed archive.
    pub(super) gzip: Arc<[u8]>,
    /// The names of its source files.
    pub(super) files: Arc<BTreeSet<String>>,
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
}

#[derive(Serialize)]
struct ExactProgress {
    /// Bytes.
    read: u64,
    /// Bytes; 0 if that is not known.
    size: u64,
}

impl ServedTrace {
    pub(super) fn state(&self) -> ReadingState {
        // No code that holds the lock can panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn status(&self, exact: Option<(u64, u64)>) -> TraceStatus<'_> {
        let (read, size) = self.watch.progress();
        let (state, read, error) = match self.state() {
            ReadingState::Reading => ("reading", read, None),
            ReadingState::Ready(_) => ("ready", read.max(size), None),
            ReadingState::Failed(message) => ("failed", read, Some(message)),
        };
        let exact = exact.map(|(read, size)| ExactProgress { read, size });
        TraceStatus { name: &self.name, state, read, size, error, exact }
    }

    /// Fails unless another reading gives the same trace.
    fn check_unchanged(&self) -> Result<(), String> {
        let name = &self.name;
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
        let read = || PackedTrace::read(&self.path, self.name.clone(), packing);
        let (state, result) = match self.watch.during(read) {
            Ok(packed) => {
                let (gzip, files) = (packed.gzip.into(), Arc::new(packed.files));
                (ReadingState::Ready(ReadyTrace { gzip, files }), Ok(()))
            }
            Err(failure) => {
                let message = failure.message().unwrap_or("it cannot be read").to_owned();
                (ReadingState::Failed(message), Err(failure))
            }
        };
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
        result
    }
}

impl Traces {
    /// Each with the name under which the page shows it.
    pub(super) fn new(traces: impl Iterator<Item = (PathBuf, String)>, packing: Packing) -> Self {
        let served = |(path, name)| ServedTrace {
            path,
            name,
            watch: Arc::default(),
            state: Mutex::new(ReadingState::Reading),
            versions: Mutex::new(None),
        };
        Traces { traces: traces.map(served).collect(), packing }
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

    /// Reads all of them, and reports those that cannot be read on standard error. Fails
    /// if that is none; the message of the last one is left to the caller.
    pub(super) fn read_all(&self) -> Result<(), Failure> {
        let mut failure = None;
        let mut read = 0;
        for trace in &self.traces {
            let result = trace.read(&self.packing);
            if let Some(message) = failure.take().as_ref().and_then(Failure::message) {
                say(message);
            }
            match result {
                Ok(()) => read += 1,
                Err(found) => failure = Some(found),
            }
        }
        match failure {
            Some(failure) if read == 0 => Err(failure),
            Some(failure) => {
                failure.message().into_iter().for_each(say);
                Ok(())
            }
            None => Ok(()),
        }
    }
}
