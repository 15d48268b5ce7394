//! Whether a session goes on, and if not, why. Read by every hook.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use crate::tracer::failure::Failure;

const LIVE: i32 = 0;
/// In a forked child: this session's thread and file are the parent's.
const FORKED: i32 = -1;

/// What mutators, the writer thread and the session share.
pub(crate) struct State {
    /// [`LIVE`], [`FORKED`] or a [`Failure`]'s number.
    state: AtomicI32,
    /// Bytes written to files.
    pub(crate) bytes: AtomicU64,
    /// How long 2²⁰ ticks are, in nanoseconds; 0 before that is known.
    pub(crate) tick_ns: AtomicU64,
}

impl State {
    pub(crate) fn new() -> State {
        State { state: AtomicI32::new(LIVE), bytes: AtomicU64::new(0), tick_ns: AtomicU64::new(0) }
    }

    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LIVE
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == FORKED
    }

    /// Why it does not go on.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self.state.load(Ordering::Relaxed) {
            LIVE => None,
            number => Some(Failure::from_number(number).unwrap_or(Failure::Off)),
        }
    }

    /// Ends it. True for the one who did.
    pub(crate) fn end(&self, why: Failure) -> bool {
        self.leave_live(why as i32)
    }

    /// This process is a forked child now.
    pub(crate) fn forked(&self) -> bool {
        self.leave_live(FORKED)
    }

    fn leave_live(&self, to: i32) -> bool {
        self.state.compare_exchange(LIVE, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
