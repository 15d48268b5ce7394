//! The session of this process: at most one at a time. Its exit and its forks.

use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::Duration;

use crate::probes::ProbeRegistry;
use crate::tracer::failure::Failure;
use crate::tracer::fork::{self, Active};
use crate::tracer::labels::Labels;
use crate::tracer::message::say;
use crate::tracer::mutator::Mutator;
use crate::tracer::options::Options;
use crate::tracer::session::{Session, Shared};
use crate::tracer::start_error::StartError;

/// The last session that was started; `None` before the first and after exit.
static ACTIVE: Active = Mutex::new(None);

fn active() -> MutexGuard<'static, Option<Arc<Session>>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a session, unless one is live. Failures are reported to the user.
pub(crate) fn start(options: Options) -> Result<Arc<Session>, Failure> {
    start_with(options, Shared::new()).map_err(StartError::report)
}

/// Starts a session that shares the labels and probes of others before and after it, unless one is
/// live.
pub(crate) fn start_sharing(
    options: Options,
    labels: Arc<Labels>,
    probes: Arc<ProbeRegistry>,
) -> Result<Arc<Session>, StartError> {
    start_with(options, Shared::with(labels, probes))
}

fn start_with(options: Options, shared: Shared) -> Result<Arc<Session>, StartError> {
    let mut active = active();
    if active.as_ref().is_some_and(|session| session.is_live() && !session.has_forked()) {
        return Err(Failure::Already.into());
    }
    register_handlers();
    let session = Session::start(options, shared)?;
    if let Some(before) = active.replace(Arc::clone(&session))
        && !before.is_of_this_process()
    {
        // Its writer thread is the parent's: its handle must not be dropped here.
        std::mem::forget(before);
    }
    Ok(session)
}

/// Registers what runs at exit and around forks. Handlers for exit run in reverse order: whoever
/// registers one of his own after this has it run before the session ends.
pub(crate) fn prepare() {
    register_handlers();
}

/// Lets go of a session that was stopped.
pub(crate) fn forget(session: &Arc<Session>) {
    let mut active = active();
    if active.as_ref().is_some_and(|active| Arc::ptr_eq(active, session)) {
        *active = None;
    }
}

/// After a panic in heaptap. Does not wait for the session: the panic may have
/// left it in any state.
#[cold]
#[inline(never)]
pub(crate) fn turn_off_after_panic() {
    let Ok(active) = ACTIVE.try_lock() else { return };
    if let Some(session) = &*active
        && session.turn_off(Failure::Panic)
    {
        say(format_args!("a defect in heaptap; tracing ends here, the program goes on"));
    }
}

/// Has everything recorded so far written, without blocking on locks or taking
/// memory. False: there is no session, or it was not written in time.
pub(crate) fn flush_signal_safe(longest: Duration) -> bool {
    // A lock that is held belongs to a thread that starts or ends a session.
    let session = ACTIVE.try_lock().ok().and_then(|active| active.clone());
    session.is_some_and(|session| session.flush_signal_safe(longest))
}

/// The session of this process, while it traces. Not inside hooks.
pub(crate) fn live_session() -> Option<Arc<Session>> {
    active().clone().filter(|session| session.is_live() && !session.has_forked())
}

/// The last session of this process, or of the parent that has forked. Not inside hooks.
pub(crate) fn last_session() -> Option<Arc<Session>> {
    active().as_ref().map(Session::current)
}

/// Called with the session of a forked child, when that starts.
static STARTED_IN_CHILD: OnceLock<fn(&Arc<Session>)> = OnceLock::new();

/// Has `started` called with the session of each forked child of this process when it
/// starts, in the child.
pub(crate) fn on_start_in_child(started: fn(&Arc<Session>)) {
    let _ = STARTED_IN_CHILD.set(started);
}

/// The session that continues `first`, the one that the program began with, in this process:
/// in a forked child its own, which starts now if nothing was recorded yet. `None`: the child
/// is not traced.
pub(crate) fn session_in_this_process(first: &Arc<Session>) -> Option<Arc<Session>> {
    let session = first.current();
    if session.has_forked() {
        return session.successor(start_in_child);
    }
    // One that was being stopped when its process forked is over in the child.
    session.is_of_this_process().then_some(session)
}

fn register_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `at_exit` is a function of this library, which is never
        // unloaded once it has registered a handler.
        unsafe { libc::atexit(at_exit) };
        fork::register(&ACTIVE);
    });
}

/// At the end of the process: has everything recorded written.
extern "C" fn at_exit() {
    let stopped = std::panic::catch_unwind(|| {
        // Not locked any more below: the session of a forked child takes its place.
        let last = active().clone();
        if let Some(session) = last.as_ref().and_then(session_in_this_process) {
            // An error means that it was stopped or turned off before.
            let _ = session.stop_at_exit();
        }
        // A parent's writer thread has no handle here that could be dropped.
        std::mem::forget((last, active().take()));
    });
    drop(stopped);
}

impl Mutator {
    /// In a forked child: continues in the child's session, and draws `left` anew,
    /// the words until the next sample outside the young heap. Every hook begins
    /// with it, since nothing can be done at the fork itself.
    #[inline]
    pub(crate) fn resume_after_fork(&mut self, left: &mut isize) {
        if self.has_forked() {
            self.continue_in_child(left);
        }
    }

    /// Continues in the child's own session, if it has one, without the blocks that
    /// were sampled in the parent. At the start of the first hook in the child, the
    /// only one that takes memory and locks: it starts a thread and opens a file.
    #[cold]
    fn continue_in_child(&mut self, left: &mut isize) {
        if let Some(session) = self.session().successor(start_in_child)
            && let Ok(fresh) = self.restart_in(&session)
        {
            std::mem::replace(self, fresh).end();
        }
        *left = self.countdown();
    }
}

/// Makes the session of a forked child the active one.
fn start_in_child(session: &Arc<Session>) {
    if let Some(before) = active().replace(Arc::clone(session)) {
        // Its writer thread is the parent's: its handle must not be dropped here.
        std::mem::forget(before);
    }
    if let Some(started) = STARTED_IN_CHILD.get() {
        started(session);
    }
}
