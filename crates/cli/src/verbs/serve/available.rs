//! What a request gets of a reading: a trace as it is sent to the page, or why there is nothing.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::http::response::Response;
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

/// Why there is nothing.
pub(super) enum Unavailable {
    /// The trace is still being read.
    Reading,
    /// Too many requests wait.
    Busy,
    /// With a message for the page.
    Failed(String),
}

impl From<Unavailable> for Response {
    fn from(why: Unavailable) -> Response {
        match why {
            Unavailable::Reading => Response::text(503, "the trace is still being read"),
            Unavailable::Busy => Response::text(503, "too many requests wait; try again"),
            Unavailable::Failed(message) => Response::text(404, message),
        }
    }
}

/// Counts the requests that wait for something.
#[derive(Default)]
pub(super) struct WaitingRoom(AtomicUsize);

/// A request that waits, until it is dropped.
pub(super) struct Waiting<'a>(&'a AtomicUsize);

impl WaitingRoom {
    /// Fails if so many wait already.
    pub(super) fn enter(&self, most: usize) -> Result<Waiting<'_>, Unavailable> {
        let entered = Waiting(&self.0);
        let is_full = self.0.fetch_add(1, Ordering::Relaxed) >= most;
        if is_full { Err(Unavailable::Busy) } else { Ok(entered) }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
