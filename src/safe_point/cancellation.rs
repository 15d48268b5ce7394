//! Whether something that was asked for is withdrawn.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether an order is withdrawn, because nobody waits for its outcome any more. Its copies are
/// about the same order.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
