//! A trace as it is sent to the page.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::analysis::archive::PackedTrace;

/// What a trace that was read leaves behind.
#[derive(Clone)]
pub(super) struct ReadyTrace {
    /// The compressed archive.
    pub(super) gzip: Arc<[u8]>,
    /// The names of its source files.
    pub(super) files: Arc<BTreeSet<String>>,
}

impl From<PackedTrace> for ReadyTrace {
    fn from(packed: PackedTrace) -> ReadyTrace {
        ReadyTrace { gzip: packed.gzip.into(), files: Arc::new(packed.files) }
    }
}
