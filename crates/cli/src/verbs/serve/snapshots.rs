//! The heap snapshots that are served, and their reading in the background.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::analysis::archive::Compression;
use crate::analysis::heap::page_snapshots;
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::notices::say;
use crate::io::trace_files::page_names;

/// All snapshots.
pub(super) struct Snapshots {
    files: Vec<PathBuf>,
    /// The traces of the page, which they may belong to.
    traces: Vec<PathBuf>,
    types: TypeOptions,
    /// The compressed document, once all are read.
    packed: OnceLock<Arc<[u8]>>,
}

/// How far their reading is.
pub(super) enum SnapshotsState {
    None,
    Reading,
    Ready(Arc<[u8]>),
}

impl Snapshots {
    pub(super) fn new(files: Vec<PathBuf>, traces: Vec<PathBuf>, types: TypeOptions) -> Self {
        Snapshots { files, traces, types, packed: OnceLock::new() }
    }

    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    pub(super) fn names(&self) -> impl Iterator<Item = String> + use<> {
        page_names(&self.files).into_iter()
    }

    pub(super) fn state(&self) -> SnapshotsState {
        match self.packed.get() {
            _ if self.files.is_empty() => SnapshotsState::None,
            Some(packed) => SnapshotsState::Ready(Arc::clone(packed)),
            None => SnapshotsState::Reading,
        }
    }

    /// Reads all of them, and reports those that cannot be read on standard error. `None` if there
    /// are none; fails if no one can be read.
    pub(super) fn read_all(&self) -> Option<Result<(), Failure>> {
        if self.files.is_empty() {
            return None;
        }
        let page = page_snapshots::read(&self.files, &self.traces, &self.types);
        // The page says what failed.
        let _ = self.packed.set(page_snapshots::packed(&page, Compression::fast()).into());
        if let Some(failure) = page_snapshots::failure(&page) {
            return Some(Err(failure));
        }
        page.failed.iter().for_each(|failed| say(&failed.error));
        Some(Ok(()))
    }
}
