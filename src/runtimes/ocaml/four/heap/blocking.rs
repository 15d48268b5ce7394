//! Programs whose threads are all blocked in the kernel.
//!
//! Around a system call that may block, a thread calls `caml_enter_blocking_section` and
//! `caml_leave_blocking_section`, which call hooks (`runtime/signals.c`). Ours count the
//! threads that may touch the heap. While there is none, the counter can be taken: then no
//! thread leaves its blocking section until it is given back.
//!
//! The systhreads library overwrites the hooks when it starts. At each minor collection they
//! are set again, in front of the library's. A thread that is waiting inside the library's
//! own hook at that moment is not counted when it goes on. So if there is more than one
//! thread then, the counter is not trusted any more, and a snapshot has to wait for a minor
//! collection.
//!
//! Roots are found through the thread that ran last: its stack is in the runtime's state, and the
//! library begins with it. If that thread has ended, its structure is freed
//! (`caml_thread_stop`, `otherlibs/systhreads/st_stubs.c`) and its stack unmapped until another one
//! runs. So after the end of a thread the heap is at rest only once another thread has entered a
//! blocking section, which it does under the master lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use super::Heap;
use crate::runtimes::ocaml::hook_variable::{Hook, HookBefore};
use crate::sys::futex::EventCount;
use crate::sys::thread_flag::ThreadFlag;
use crate::{control, safe_point};

/// Threads that may touch the heap, or `WATCHED`.
static ACTIVE: AtomicUsize = AtomicUsize::new(0);
/// No thread may become active.
const WATCHED: usize = 1 << 32;
/// Notified when `ACTIVE` is no longer `WATCHED`.
static RELEASED: EventCount = EventCount::new();
/// False once a thread may be active without being counted.
static TRUSTED: AtomicBool = AtomicBool::new(true);
/// The hooks that ours call: enter and leave.
static BEFORE: [HookBefore; 2] = [const { HookBefore::none() }; 2];
/// Set on threads that are counted. Cleared when a thread ends, and the thread is not counted
/// any more.
static COUNTED: OnceLock<ThreadFlag> = OnceLock::new();

/// Counted threads that have ended.
static ENDED: AtomicUsize = AtomicUsize::new(0);
/// How many had ended when a thread last entered a blocking section.
static ENDED_AT_LAST_ENTRY: AtomicUsize = AtomicUsize::new(0);

const OURS: [Hook; 2] = [enter, leave];

/// Sets the hooks. Before `main`, or when the runtime starts, on the thread that runs it; or under the
/// lock of a runtime that runs. `is_alone`: the program has one thread only. Others may be in blocking
/// sections, and are not counted when they leave them.
pub(super) fn install(heap: &'static Heap, is_alone: bool) {
    if !is_alone {
        TRUSTED.store(false, Ordering::Release);
    }
    let Some(flag) = ThreadFlag::new(ended) else {
        TRUSTED.store(false, Ordering::Relaxed);
        return;
    };
    if COUNTED.set(flag).is_ok() {
        count_this_thread();
        set_hooks(heap);
        // SAFETY: `in_child` is a function of this library, which stays loaded since it has attached.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    }
}

/// A forked child has no other thread. Async-signal-safe.
extern "C" fn in_child() {
    let is_counted = COUNTED.get().is_some_and(ThreadFlag::is_set);
    ACTIVE.store(usize::from(is_counted), Ordering::Release);
}

/// Sets the hooks again if the systhreads library has overwritten them. Under the master
/// lock. `is_alone` is called then: whether the program has only one thread.
pub(super) fn renew(heap: &Heap, is_alone: impl FnOnce() -> bool) {
    let [enter, _] = heap.variables.blocking_hooks;
    // SAFETY: `caml_enter_blocking_section_hook`, a variable of the runtime that holds a pointer
    // (`runtime/signals.c`) and changes under the master lock.
    let is_ours = unsafe { (enter as *const usize).read() } == OURS[0] as usize;
    if is_ours || COUNTED.get().is_none() {
        return;
    }
    if !is_alone() {
        TRUSTED.store(false, Ordering::Release);
    }
    set_hooks(heap);
    count_this_thread();
}

fn set_hooks(heap: &Heap) {
    for ((hook, before), ours) in heap.variables.blocking_hooks.into_iter().zip(&BEFORE).zip(OURS) {
        // SAFETY: `caml_enter_blocking_section_hook` and `caml_leave_blocking_section_hook` are
        // variables of the runtime (`runtime/signals.c`), which is never unloaded.
        unsafe { before.set(hook, ours) };
    }
}

/// Calls `work` while no thread can touch the heap. False if one may be doing so.
pub(super) fn at_rest(work: &mut dyn FnMut()) -> bool {
    let is_free = TRUSTED.load(Ordering::Acquire)
        && ACTIVE.compare_exchange(0, WATCHED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    if !is_free {
        return false;
    }
    // Otherwise the thread that ran last may be one that has ended.
    let is_last_alive =
        ENDED_AT_LAST_ENTRY.load(Ordering::Acquire) == ENDED.load(Ordering::Acquire);
    if is_last_alive {
        work();
    }
    ACTIVE.store(0, Ordering::Release);
    RELEASED.notify();
    is_last_alive
}

/// In place of the hook of `caml_enter_blocking_section`. Once the library's hook has
/// released the master lock, this thread does not touch the heap.
extern "C" fn enter() {
    control::may_start_in_child();
    if safe_point::is_wanted()
        && let Some(heap) = super::heap()
    {
        // Not where the heap can be walked: this thread may be anywhere in C code.
        heap.on_own_stack(safe_point::with_lock_held);
    }
    ENDED_AT_LAST_ENTRY.store(ENDED.load(Ordering::Acquire), Ordering::Release);
    BEFORE[0].call();
    if COUNTED.get().is_some_and(ThreadFlag::clear) {
        ACTIVE.fetch_sub(1, Ordering::AcqRel);
    }
}

/// In place of the hook of `caml_leave_blocking_section`.
extern "C" fn leave() {
    count_this_thread();
    BEFORE[1].call();
}

/// Waits while the heap is watched.
fn count_this_thread() {
    const LONG: Duration = Duration::from_secs(1);
    if !COUNTED.get().is_some_and(ThreadFlag::set) {
        return;
    }
    loop {
        let ticket = RELEASED.ticket();
        let active = ACTIVE.load(Ordering::Acquire);
        if active == WATCHED {
            RELEASED.wait(ticket, LONG);
            continue;
        }
        let counted =
            ACTIVE.compare_exchange(active, active + 1, Ordering::AcqRel, Ordering::Relaxed);
        if counted.is_ok() {
            return;
        }
    }
}

/// A counted thread has ended.
fn ended() {
    ENDED.fetch_add(1, Ordering::AcqRel);
    ACTIVE.fetch_sub(1, Ordering::AcqRel);
}
