//! Watching a reading from another thread.
//!
//! `heaptap serve` reads traces on threads of their own. Everything that such a thread
//! opens inside [`Watch::during`] counts into its [`Watch`]: there is no bar on the
//! terminal. A reading that nobody wants any more is cancelled through it.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The progress of a reading.
#[derive(Default)]
pub(crate) struct Watch {
    /// Bytes. Never goes back, though a reading may begin again.
    read: AtomicU64,
    /// Bytes; 0 if that is not known.
    size: AtomicU64,
    is_cancelled: AtomicBool,
}

thread_local! {
    /// The watch of the reading that this thread is in.
    static CURRENT: RefCell<Option<Arc<Watch>>> = const { RefCell::new(None) };
}

impl Watch {
    /// Runs a reading that is watched.
    pub(crate) fn during<R>(self: &Arc<Self>, reading: impl FnOnce() -> R) -> R {
        let before = CURRENT.replace(Some(Arc::clone(self)));
        let result = reading();
        CURRENT.set(before);
        result
    }

    /// The watch of this thread, if it is inside [`Watch::during`].
    pub(super) fn current() -> Option<Arc<Watch>> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(super) fn add_size(&self, bytes: u64) {
        self.size.fetch_add(bytes, Ordering::Relaxed);
    }

    pub(super) fn reached(&self, offset: u64) {
        self.read.fetch_max(offset, Ordering::Relaxed);
    }

    /// Makes the reading fail soon.
    pub(crate) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// The bytes read so far, and those of the whole input; 0 if that is not known.
    pub(crate) fn progress(&self) -> (u64, u64) {
        let (read, size) = (self.read.load(Ordering::Relaxed), self.size.load(Ordering::Relaxed));
        (if size > 0 { read.min(size) } else { read }, size)
    }
}
