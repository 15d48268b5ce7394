//! What the programs say of themselves, in the files beside the traces. Read when the page asks, each
//! time only what is new.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use crate::analysis::archive::{Compression, compressed};
use crate::io::live_sidecar::LiveSidecar;
use crate::text::json;

/// The sidecars of all traces, by number.
pub(super) struct Sidecars(Vec<Mutex<Option<LiveSidecar>>>);

impl Sidecars {
    /// Of the traces at these paths.
    pub(super) fn new(traces: &[PathBuf]) -> Sidecars {
        Sidecars(traces.iter().map(|trace| Mutex::new(LiveSidecar::beside(trace))).collect())
    }

    /// The document about the sidecar of a trace, compressed: `null` if there is none. `None` if there
    /// is no such trace.
    pub(super) fn packed(&self, trace: usize) -> Option<Vec<u8>> {
        // Whatever a panic left behind is only what was read so far.
        let mut sidecar = self.0.get(trace)?.lock().unwrap_or_else(PoisonError::into_inner);
        let document = sidecar.as_mut().and_then(LiveSidecar::page);
        let mut text = Vec::new();
        json::put(&mut text, &document);
        Some(compressed(&text, Compression::fast()))
    }
}
