//! Sessions that end by themselves: `start FILE for=SECONDS`.
//!
//! Whoever has asked for the session may be gone by then. So a thread of this process waits for its
//! end, one for each such session. It goes away with the session.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use super::process::Process;
use super::sessions::{Sessions, Wait};
use crate::safe_point::Cancellation;
use crate::sys::thread;
use crate::tracer::Session;

/// How often it is looked whether the session has ended before its time.
const PACE: Duration = Duration::from_secs(1);

/// Ends a session when so much time has passed.
pub(super) fn begin(
    process: &'static Process,
    sessions: &'static dyn Sessions,
    session: &Arc<Session>,
    span: Duration,
) -> Result<(), String> {
    let end = Instant::now() + span;
    let session = Arc::downgrade(session);
    let work = move |_| {
        if wait_for(&session, end) {
            end_session(process, sessions, &session);
        }
    };
    let started = thread::start("heaptap-lease", work);
    started.map(drop).map_err(|error| format!("cannot start a thread: {error}"))
}

/// False if the session is gone before.
fn wait_for(session: &Weak<Session>, end: Instant) -> bool {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || session.strong_count() == 0 {
            return left.is_zero();
        }
        std::thread::sleep(left.min(PACE));
    }
}

/// Tries until it has ended: a program that computes without allocating reaches no safe point.
fn end_session(process: &'static Process, sessions: &dyn Sessions, session: &Weak<Session>) {
    while let Some(only) = session.upgrade() {
        let Some(_in_progress) = process.begin() else { return };
        let wait = Wait::new(None, Cancellation::default());
        if sessions.stop(Some(&only), &wait).is_ok() || !only.is_live() {
            return;
        }
        drop(only);
        std::thread::sleep(PACE);
    }
}
