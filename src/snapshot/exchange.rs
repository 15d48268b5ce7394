//! The order that waits for a safe point.
//!
//! One thread offers an [`Errand`], and the first mutator that comes to a safe point
//! carries it out. While no errand waits, a safe point costs one load.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::walk::Errand;
use crate::sys::errno::KeepErrno;
use crate::sys::futex::EventCount;

/// Nothing is wanted.
const IDLE: u32 = 0;
/// An errand waits for a safe point.
const WANTED: u32 = 1;
/// It is being carried out.
const TAKING: u32 = 2;
/// It was carried out.
const TAKEN: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(IDLE);
/// Notified when the state becomes `TAKEN`.
static CHANGED: EventCount = EventCount::new();
/// Points to an errand while the state is not `IDLE`.
static ERRAND: AtomicPtr<Errand> = AtomicPtr::new(ptr::null_mut());

/// The heap can be walked now, on this thread, until this returns. Inside hooks; needs less
/// than 100 KiB of stack if a snapshot is taken.
#[inline]
pub(crate) fn at_safe_point() {
    if is_wanted() {
        carry_out();
    }
}

/// Whether a snapshot waits for a safe point.
#[inline]
pub(crate) fn is_wanted() -> bool {
    STATE.load(Ordering::Relaxed) == WANTED
}

#[cold]
fn carry_out() {
    let _keep = KeepErrno::new();
    let claimed = STATE.compare_exchange(WANTED, TAKING, Ordering::AcqRel, Ordering::Relaxed);
    if claimed.is_err() {
        return;
    }
    let errand = ERRAND.load(Ordering::Acquire);
    // SAFETY: `offer` keeps its errand until the state is `TAKEN` or `IDLE`, which only this
    // function changes now.
    if let Some(errand) = unsafe { errand.as_ref() }
        && errand.is_of_this_process()
    {
        errand.carry_out();
    }
    STATE.store(TAKEN, Ordering::Release);
    CHANGED.notify();
}

/// Offers an errand and calls `wait` every few milliseconds until it has been carried out.
/// False if that does not happen within `patience`; then it never will.
///
/// One thread at a time.
pub(super) fn offer(errand: &Errand, patience: Duration, mut wait: impl FnMut()) -> bool {
    const PACE: Duration = Duration::from_millis(5);
    let start = Instant::now();
    ERRAND.store(ptr::from_ref(errand).cast_mut(), Ordering::Release);
    STATE.store(WANTED, Ordering::Release);
    loop {
        wait();
        let ticket = CHANGED.ticket();
        let state = STATE.load(Ordering::Acquire);
        if state == TAKEN {
            break;
        }
        let is_late = start.elapsed() > patience;
        let withdraw =
            || STATE.compare_exchange(WANTED, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        if is_late && withdraw() {
            return false;
        }
        CHANGED.wait(ticket, PACE);
    }
    ERRAND.store(ptr::null_mut(), Ordering::Relaxed);
    STATE.store(IDLE, Ordering::Release);
    true
}
