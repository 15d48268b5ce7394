//! One session at a time in a process, its exit, and its forks.

use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::time::Duration;

use crate::stack::FrameTables;
use crate::tracer::failure::Failure;
use crate::tracer::labels::Labels;
use crate::tracer::message::say;
use crate::tracer::options::Options;
use crate::tracer::session::Session;

/// The session of this process, if it was ever traced.
static ACTIVE: Mutex<Option<Arc<Session>>> = Mutex::new(None);

fn active() -> MutexGuard<'static, Option<Arc<Session>>> {
    ACTIVE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a session, unless one is live.
pub(crate) fn start(options: Options) -> Result<Arc<Session>, Failure> {
    let mut active = active();
    if active.as_ref().is_some_and(|session| session.is_live()) {
        return Err(Failure::Already);
    }
    register_handlers();
    let (tables, labels) = (Arc::new(FrameTables::new()), Arc::new(Labels::default()));
    let session = Session::start(options, tables, labels)?;
    *active = Some(Arc::clone(&session));
    Ok(session)
}

/// In a forked child that traces on.
pub(crate) fn replace_active(session: &Arc<Session>) {
    if let Some(before) = active().replace(Arc::clone(session)) {
        // Its thread is the parent's: it must never be joined here.
        std::mem::forget(before);
    }
}

/// After a defect of ours. The session is not waited for: whatever went wrong
/// may have left it in any state.
pub(crate) fn turn_off_after_panic() {
    let Ok(active) = ACTIVE.try_lock() else { return };
    if let Some(session) = &*active
        && session.turn_off(Failure::Panic)
    {
        say(format_args!("a defect in heaptap; tracing ends here, the program goes on"));
    }
}

/// Has all that is recorded written, where neither locks nor memory may be
/// taken: false if it is not so, or need not be.
pub(crate) fn flush_signal_safe(longest: Duration) -> bool {
    // The lock is not waited for: who has it is starting or ending a session.
    let session = ACTIVE.try_lock().ok().and_then(|active| active.clone());
    session.is_some_and(|session| session.flush_signal_safe(longest))
}

fn register_handlers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function is ours, and stays: the library is never unloaded
        // once it has registered it.
        unsafe { libc::atexit(at_exit) };
        // SAFETY: as above.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    });
}

/// At the end of the process: everything recorded is in the file.
extern "C" fn at_exit() {
    let stopped = std::panic::catch_unwind(|| {
        let session = active().take();
        if let Some(session) = session
            && !session.has_forked()
        {
            // Stopped before, or turned off: nothing more to do.
            let _ = session.stop_at_exit();
        }
    });
    drop(stopped);
}

/// In a forked child: what the parent's thread does is not ours to touch. Runs
/// where hardly anything may be called, so it only notes the fact.
extern "C" fn in_child() {
    // Another thread may have held the lock when the process was forked; then
    // this one was just being started or replaced, and stays untouched.
    if let Ok(active) = ACTIVE.try_lock()
        && let Some(session) = &*active
    {
        session.forked();
    }
}
