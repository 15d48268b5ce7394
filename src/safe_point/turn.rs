//! The right to offer tasks, which one thread of a process has at a time.
//!
//! It is kept as long as the order takes, not only until its task was carried out: a snapshot
//! asks the session for the blocks that it has met, so no session may end or begin meanwhile.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::cancellation::Cancellation;

/// The process that has it; 0 if none does. Not a lock: a child that is forked meanwhile would
/// find it taken for ever.
static TAKER: AtomicU32 = AtomicU32::new(0);

/// The right to offer tasks, until it is dropped.
pub(crate) struct Turn(u32);

impl Turn {
    /// `None` while another thread has it.
    pub(crate) fn take() -> Option<Turn> {
        let own = std::process::id();
        let claim = |taker: u32| (taker != own).then_some(own);
        TAKER.fetch_update(Ordering::AcqRel, Ordering::Acquire, claim).ok().map(|_| Turn(own))
    }

    /// Waits for it. `None` if another thread has it for so long, or the order is cancelled.
    pub(crate) fn wait(patience: Duration, cancellation: &Cancellation) -> Option<Turn> {
        const PACE: Duration = Duration::from_millis(2);
        let start = Instant::now();
        loop {
            let turn = Turn::take();
            if turn.is_some() || start.elapsed() > patience || cancellation.is_cancelled() {
                return turn;
            }
            std::thread::sleep(PACE);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let _ = TAKER.compare_exchange(self.0, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}
