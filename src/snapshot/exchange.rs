//! The order that waits for a safe point.
//!
//! One thread offers an [`Errand`], and the first mutator that comes to a safe point
//! carries it out. While no errand waits, a safe point costs one load.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::order::{Order, SnapshotError};
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
    // SAFETY: `Offered` borrows its errand until the state is `TAKEN` or `IDLE`, which only
    // this function changes now.
    if let Some(errand) = unsafe { errand.as_ref() }
        && errand.is_of_this_process()
    {
        errand.carry_out();
    }
    STATE.store(TAKEN, Ordering::Release);
    CHANGED.notify();
}

/// Offers an errand and calls `wait` every few milliseconds until it has been carried out. Fails if
/// that does not happen within the order's patience, or the order is cancelled; then it never will.
///
/// One thread at a time.
pub(super) fn offer(
    errand: &Errand,
    order: &Order,
    mut wait: impl FnMut(),
) -> Result<(), SnapshotError> {
    const PACE: Duration = Duration::from_millis(5);
    let start = Instant::now();
    let offered = Offered::new(errand);
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

/// An errand that is offered until this is dropped.
struct Offered<'a> {
    _errand: &'a Errand,
}

impl Offered<'_> {
    fn new(errand: &Errand) -> Offered<'_> {
        ERRAND.store(ptr::from_ref(errand).cast_mut(), Ordering::Release);
        STATE.store(WANTED, Ordering::Release);
        Offered { _errand: errand }
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
            // Only if this thread unwinds: the errand is in use.
            CHANGED.wait(ticket, LONG);
        }
        ERRAND.store(ptr::null_mut(), Ordering::Relaxed);
        STATE.store(IDLE, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::path::PathBuf;

    use heaptap_heap::{Name, Suspended};

    use super::super::order::Reason;
    use super::super::output::TemporaryFile;
    use super::super::walker::{HeapEncoder, HeapWalker, TraceFile, TracedBlocks, WalkError};
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
        fn prepare(&self) {}
        fn poke(&self) {}
        fn at_rest(&self, _: &mut dyn FnMut()) -> bool {
            false
        }
        fn come_to_safe_point(&self) {}
        fn walk(&self, _: &mut HeapEncoder<'_>, _: u32) -> Result<(), WalkError> {
            panic!("it is walked")
        }
        fn tracked(&self, _: &mut dyn FnMut(usize, u64) -> bool) {}
        fn trace(&self) -> Option<TraceFile> {
            None
        }
        fn identify(&self, _: &[u64]) -> Option<TracedBlocks> {
            None
        }
        fn name_code(&self, _: &Suspended, _: &mut dyn FnMut(Name<'_>)) {}
        fn collect(&self) -> Option<(u64, u64)> {
            None
        }
    }

    #[test]
    fn an_errand_is_not_offered_any_more_once_its_thread_unwinds() {
        let name = format!("heaptap-exchange-{}.heap", std::process::id());
        let path: PathBuf = std::env::temp_dir().join(name);
        let order = Order::new(path.clone(), Reason::Request);
        let file = TemporaryFile::create(&path).expect("a file");
        let errand = Errand::new(&Untouched, &order, &file).expect("an errand");
        let wait = || {
            assert!(is_wanted());
            panic!("while it waits");
        };
        let offered = catch_unwind(AssertUnwindSafe(|| offer(&errand, &order, wait).is_ok()));
        assert!(offered.is_err());
        assert!(!is_wanted() && ERRAND.load(Ordering::Acquire).is_null());
        at_safe_point();
    }
}
