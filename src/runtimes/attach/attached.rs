//! What this process traces: the runtime and its session.

use std::sync::{Arc, OnceLock};

use super::runtime::Runtime;
use crate::tracer::Session;

/// A runtime that is traced. There is at most one in a process, and it stays.
pub(crate) struct Attached {
    pub(crate) runtime: &'static dyn Runtime,
    pub(crate) session: Arc<Session>,
}

static ATTACHED: OnceLock<Attached> = OnceLock::new();

/// Records what is traced, once the session has started and the hooks are in place.
pub(super) fn record(attached: Attached) {
    let _ = ATTACHED.set(attached);
}

/// What is traced, if anything is. Any thread.
pub(crate) fn attached() -> Option<&'static Attached> {
    ATTACHED.get()
}
