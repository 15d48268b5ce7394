//! The task that waits for a safe point.
//!
//! One thread offers it, and the first mutator that comes to a safe point carries it out.

use std::fmt;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::cancellation::Cancellation;
use super::points::{SafePoints, registered};
use super::turn::Turn;
use crate::sys::errno::KeepErrno;
use crate::sys::futex::EventCount;

/// What is done at a safe point.
pub(crate) trait Task: Sync {
    /// Does it, once. Inside hooks; may use 100 KiB of stack.
    fn carry_out(&self);

    /// What must be so meanwhile.
    fn needs(&self) -> Needs {
        Needs::Heap
    }
}

/// What must be so while a task is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    /// The heap can be walked.
    Heap,
    /// No thread runs the runtime's code but this one, which is outside of the profiler's
    /// functions. The heap may be in the middle of a change.
    Lock,
}

/// Nothing is wanted.
const IDLE: u32 = 0;
/// A task that needs the heap waits for a safe point.
const WANTED: u32 = 1;
/// One that needs the lock only.
const WANTED_WITH_LOCK: u32 = 2;
/// It is being carried out.
const TAKING: u32 = 3;
/// It was carried out.
const TAKEN: u32 = 4;

static STATE: AtomicU32 = AtomicU32::new(IDLE);
/// Notified when the state becomes `TAKEN`.
static CHANGED: EventCount = EventCount::new();
/// Points to an offer while the state is not `IDLE`.
static OFFER: AtomicPtr<Offer<'static>> = AtomicPtr::new(ptr::null_mut());

/// A task, and the process in which it is to be carried out: not a child that was forked since.
struct Offer<'a> {
    task: &'a dyn Task,
    process: u32,
}

/// Why a task was not carried out. It never will be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unreached {
    /// No runtime here has safe points.
    NoRuntime,
    /// The program has not reached one in time.
    Late(Duration),
    /// Nobody waits for it any more.
    Cancelled,
}

impl fmt::Display for Unreached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unreached::NoRuntime => f.write_str("heaptap knows no runtime in this program"),
            Unreached::Late(waited) => write!(
                f,
                "the program reached no point at which it can be interrupted within {} s: it \
                 computes without allocating or stays in C code, has threads that cannot be seen \
                 waiting, or hardly allocates and has code without -g (docs/control.md); try again, \
                 with a longer wait",
                waited.as_secs_f64()
            ),
            Unreached::Cancelled => f.write_str("nobody waits for it any more"),
        }
    }
}

/// The heap can be walked now, on this thread, until this returns. Inside hooks; needs less
/// than 100 KiB of stack if a task is carried out.
#[inline]
pub(crate) fn at_safe_point() {
    if is_wanted() {
        claim(&[WANTED, WANTED_WITH_LOCK]);
    }
}

/// This thread alone runs the runtime's code, until this returns; the heap cannot be walked. As
/// [`at_safe_point`] otherwise. Does nothing unless [`is_wanted`] says so.
#[cold]
pub(crate) fn with_lock_held() {
    claim(&[WANTED_WITH_LOCK]);
}

/// Whether a task waits for a safe point.
#[inline]
pub(crate) fn is_wanted() -> bool {
    matches!(STATE.load(Ordering::Relaxed), WANTED | WANTED_WITH_LOCK)
}

/// What the task needs that waits for a safe point.
pub(crate) fn wanted() -> Option<Needs> {
    match STATE.load(Ordering::Acquire) {
        WANTED => Some(Needs::Heap),
        WANTED_WITH_LOCK => Some(Needs::Lock),
        _ => None,
    }
}

/// Comes to a safe point if a task waits for one. On a thread of the program that has
/// called us or `exit`, outside of hooks.
pub(crate) fn come_to_safe_point() {
    if is_wanted()
        && let Some(points) = registered()
    {
        points.come_to_safe_point();
    }
}

#[cold]
fn claim(states: &[u32]) {
    let _keep = KeepErrno::new();
    let take = |state: &u32| {
        STATE.compare_exchange(*state, TAKING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    if !states.iter().any(take) {
        return;
    }
    let _taken = Taken;
    let offer = OFFER.load(Ordering::Acquire);
    // SAFETY: `Offered` borrows its offer until the state is `TAKEN` or `IDLE`, which only
    // this function changes now.
    if let Some(offer) = unsafe { offer.as_ref() }
        && offer.process == std::process::id()
    {
        offer.task.carry_out();
    }
}

/// Says that the task was carried out when it is dropped, also by a panic.
struct Taken;

impl Drop for Taken {
    fn drop(&mut self) {
        STATE.store(TAKEN, Ordering::Release);
        CHANGED.notify();
    }
}

/// Has a task carried out at the runtime's next safe point. Blocks until it was, so not on a
/// thread of the program; one that wants something of itself calls [`come_to_safe_point`]
/// meanwhile.
pub(crate) fn carry_out(
    _turn: &Turn,
    task: &dyn Task,
    patience: Duration,
    cancellation: &Cancellation,
) -> Result<(), Unreached> {
    let points = registered().ok_or(Unreached::NoRuntime)?;
    points.prepare();
    offer(points, task, patience, cancellation)
}

/// Offers a task, and pokes every few milliseconds until it has been carried out.
fn offer(
    points: &dyn SafePoints,
    task: &dyn Task,
    patience: Duration,
    cancellation: &Cancellation,
) -> Result<(), Unreached> {
    const PACE: Duration = Duration::from_millis(5);
    let start = Instant::now();
    let offer = Offer { task, process: std::process::id() };
    let offered = Offered::new(&offer);
    loop {
        let ticket = CHANGED.ticket();
        if STATE.load(Ordering::Acquire) == TAKEN {
            return Ok(());
        }
        let failure = if cancellation.is_cancelled() {
            Some(Unreached::Cancelled)
        } else if start.elapsed() > patience {
            Some(Unreached::Late(patience))
        } else {
            None
        };
        match failure {
            Some(failure) if offered.withdraw() => return Err(failure),
            _ => CHANGED.wait(ticket, PACE),
        }
        // The program may have come to a safe point by itself.
        if is_wanted() {
            points.poke();
            points.at_rest(&mut at_safe_point);
        }
    }
}

/// A task that is offered until this is dropped.
struct Offered<'a> {
    offer: &'a Offer<'a>,
}

impl Offered<'_> {
    fn new<'a>(offer: &'a Offer<'a>) -> Offered<'a> {
        let offered = Offered { offer };
        OFFER.store(ptr::from_ref(offer).cast_mut().cast(), Ordering::Release);
        STATE.store(offered.wanted(), Ordering::Release);
        offered
    }

    fn wanted(&self) -> u32 {
        match self.offer.task.needs() {
            Needs::Heap => WANTED,
            Needs::Lock => WANTED_WITH_LOCK,
        }
    }

    /// False if it is being carried out, or was.
    fn withdraw(&self) -> bool {
        let wanted = self.wanted();
        STATE.compare_exchange(wanted, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Drop for Offered<'_> {
    fn drop(&mut self) {
        const LONG: Duration = Duration::from_secs(1);
        self.withdraw();
        loop {
            let ticket = CHANGED.ticket();
            if STATE.load(Ordering::Acquire) != TAKING {
                break;
            }
            // Only if this thread unwinds: the task is in use.
            CHANGED.wait(ticket, LONG);
        }
        OFFER.store(ptr::null_mut(), Ordering::Relaxed);
        STATE.store(IDLE, Ordering::Release);
    }
}

#[cfg(test)]
#[path = "exchange_tests.rs"]
mod tests;
