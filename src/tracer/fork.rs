//! A fork of the host: what the child shares with its parent must not be locked by
//! a thread that the child does not have.
//!
//! A traced child continues with the tables and labels of its parent. The parent's
//! writer thread looks into both, and any thread may add to them; a lock that is
//! held at the fork would stay locked in the child, and its writer thread would wait
//! for it until the process ends. So the forking thread takes the locks before the
//! fork and releases them after it, in the parent and in the child.
//!
//! It waits for them no longer than [`LONGEST`]: a signal handler that forks may have
//! interrupted the very code that holds one. That code continues in the child too,
//! and releases the lock there.
#![allow(unsafe_code, reason = "registers handlers, and keeps guards between them")]

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::sys::lock::lock_until;
use crate::tracer::session::{Session, SharedLocks};

/// The longest that a fork waits for a lock.
const LONGEST: Duration = Duration::from_secs(1);

/// The process's session.
pub(crate) type Active = Mutex<Option<Arc<Session>>>;

/// What the forking thread holds. The locks of the session are released first.
struct HeldLocks {
    locks: Option<SharedLocks<'static>>,
    active: MutexGuard<'static, Option<Arc<Session>>>,
}

/// Where it is kept during the fork.
struct Handlers {
    active: UnsafeCell<Option<&'static Active>>,
    held: UnsafeCell<Option<HeldLocks>>,
    /// The thread that `held` belongs to; 0 if there is none. A child has the same
    /// value for its only thread.
    owner: AtomicUsize,
}

// SAFETY: `active` is written once, before the handlers are registered; `held` is
// used by the thread that is `owner` only, and one thread is, the one that holds the
// lock of the active session.
unsafe impl Sync for Handlers {}

static HANDLERS: Handlers = Handlers {
    active: UnsafeCell::new(None),
    held: UnsafeCell::new(None),
    owner: AtomicUsize::new(0),
};

/// Registers the handlers, once in a process.
pub(crate) fn register(active: &'static Active) {
    // SAFETY: no handler runs yet, and the caller calls this function once.
    unsafe { *HANDLERS.active.get() = Some(active) };
    // SAFETY: functions of this library, which is never unloaded once it has
    // registered a handler.
    unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) };
}

fn this_thread() -> usize {
    // SAFETY: takes no arguments.
    unsafe { libc::pthread_self() as usize }
}

extern "C" fn before() {
    let deadline = Instant::now() + LONGEST;
    // SAFETY: written before the handlers were registered, never after.
    let Some(mutex) = (unsafe { *HANDLERS.active.get() }) else { return };
    let Some(active) = lock_until(mutex, deadline) else { return };
    let locks = active.as_ref().map(|session| session.lock_shared(deadline));
    // SAFETY: changes the lifetime only. The session stays in `active`, which is locked
    // until after the locks were released, and keeps its tables and labels.
    let locks = unsafe {
        core::mem::transmute::<Option<SharedLocks<'_>>, Option<SharedLocks<'static>>>(locks)
    };
    HANDLERS.owner.store(this_thread(), Ordering::Relaxed);
    // SAFETY: this thread holds the lock of the active session, and is the owner.
    unsafe { *HANDLERS.held.get() = Some(HeldLocks { locks, active }) };
}

/// What [`before`] locked on this thread.
fn release() -> Option<HeldLocks> {
    if HANDLERS.owner.load(Ordering::Relaxed) != this_thread() {
        return None;
    }
    HANDLERS.owner.store(0, Ordering::Relaxed);
    // SAFETY: this thread is the owner; others become it after `active` is unlocked.
    unsafe { (*HANDLERS.held.get()).take() }
}

extern "C" fn in_parent() {
    drop(release());
}

/// In the child, the writer thread and the output are the parent's. Only
/// async-signal-safe functions may be called here, so it just notes the fact; the
/// next hook does the rest, see `Mutator::resume_after_fork`.
extern "C" fn in_child() {
    // If another thread held the lock at the fork, the session was being started or
    // replaced, and no mutator has it yet.
    if let Some(HeldLocks { locks, active }) = release() {
        drop(locks);
        if let Some(session) = &*active {
            session.set_forked();
        }
    }
}
