//! The order that waits for a safe point.
//!
//! One thread offers a [`WalkTask`], and the first mutator that comes to a safe point
//! carries it out. While no task waits, a safe point costs one load.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::order::{Order, SnapshotError};
use super::walk::WalkTask;
use crate::sys::errno::KeepErrno;
use crate::sys::futex::EventCount;

/// Nothing is wanted.
const IDLE: u32 = 0;
/// A task waits for a safe point.
const WANTED: u32 = 1;
/// It is being carried out.
const TAKING: u32 = 2;
/// It was carried out.
const TAKEN: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(IDLE);
/// Notified when the state becomes `TAKEN`.
static CHANGED: EventCount = EventCount::new();
/// Points to a task while the state is not `IDLE`.
static TASK: AtomicPtr<WalkTask> = AtomicPtr::new(ptr::null_mut());

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
    let task = TASK.load(Ordering::Acquire);
    // SAFETY: `Offered` borrows its task until the state is `TAKEN` or `IDLE`, which only
    // this function changes now.
    if let Some(task) = unsafe { task.as_ref() }
        && task.is_of_this_process()
    {
        task.carry_out();
    }
    STATE.store(TAKEN, Ordering::Release);
    CHANGED.notify();
}

/// Offers a task and calls `wait` every few milliseconds until it has been carried out. Fails if
/// that does not happen within the order's patience, or the order is cancelled; then it never will.
///
/// One thread at a time.
pub(super) fn offer(
    task: &WalkTask,
    order: &Order,
    mut wait: impl FnMut(),
) -> Result<(), SnapshotError> {
    const PACE: Duration = Duration::from_millis(5);
    let start = Instant::now();
    let offered = Offered::new(task);
    loop {
        wait();
        let ticket = CHANGED.ticket();
        if STATE.load(Ordering::Acquire) == TAKEN {
            return Ok(());
        }
        let failure = if order.cancellation.is_cancelled() {
            Some(SnapshotError::Cancelled)
        } else if start.elapsed() > order.patience {
            Some(SnapshotError::NoSafePoint(order.patience))
        } else {
            None
        };
        match failure {
            Some(failure) if offered.withdraw() => return Err(failure),
            _ => CHANGED.wait(ticket, PACE),
        }
    }
}

/// A task that is offered until this is dropped.
struct Offered<'a> {
    _task: &'a WalkTask,
}

impl Offered<'_> {
    fn new(task: &WalkTask) -> Offered<'_> {
        TASK.store(ptr::from_ref(task).cast_mut(), Ordering::Release);
        STATE.store(WANTED, Ordering::Release);
        Offered { _task: task }
    }

    /// False if it is being carried out, or was.
    fn withdraw(&self) -> bool {
        STATE.compare_exchange(WANTED, IDLE, Ordering::AcqRel, Ordering::Relaxed).is_ok()
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
        TASK.store(ptr::null_mut(), Ordering::Relaxed);
        STATE.store(IDLE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;

    use super::super::order::Reason;
    use super::super::output::TemporaryFile;
    use super::super::walker::{HeapEncoder, HeapWalker, WalkError};
    use super::*;

    /// A heap that must not be walked.
    struct Untouched;

    impl HeapWalker for Untouched {
        fn runtime(&self) -> String {
            String::new()
        }
        fn header_words(&self) -> u32 {
            1
        }
        fn poke(&self) {}
        fn come_to_safe_point(&self) {}
        fn walk(&self, _: &mut HeapEncoder<'_>, _: u32) -> Result<(), WalkError> {
            panic!("it is walked")
        }
    }

    #[test]
    fn a_task_is_not_offered_any_more_once_its_thread_unwinds() {
        let name = format!("heaptap-exchange-{}.heap", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let order = Order::new(path.clone(), Reason::Request);
        let file = TemporaryFile::create(&path).expect("a file");
        let task = WalkTask::new(&Untouched, &order, &file).expect("a task");
        let wait = || {
            assert!(is_wanted());
            panic!("while it waits");
        };
        let offered = catch_unwind(AssertUnwindSafe(|| offer(&task, &order, wait).is_ok()));
        assert!(offered.is_err());
        assert!(!is_wanted() && TASK.load(Ordering::Acquire).is_null());
        at_safe_point();
    }
}
