//! Whether a session is live, and if not, why. Every hook reads it.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};

use crate::sampling::Rate;
use crate::sys::clock::Moment;
use crate::tracer::failure::Failure;

const LIVE: i32 = 0;
/// In a forked child: this session's thread and file belong to the parent.
const FORKED: i32 = -1;

/// What mutators, the writer thread and the session share.
pub(crate) struct State {
    /// [`LIVE`], [`FORKED`] or the number of a [`Failure`]. Leaves `LIVE` once
    /// and never changes again.
    state: AtomicI32,
    /// Whether an output could not be written to its end, even if the session had ended
    /// before.
    write_failed: AtomicBool,
    /// The bits of the rate at which mutators are to sample.
    rate: AtomicU64,
    /// Whether that can be another one than it was when the session began.
    has_many_rates: AtomicBool,
    /// Bytes written to all outputs.
    pub(crate) bytes: AtomicU64,
    /// The length of 2²⁰ ticks in nanoseconds; 0 until it is known.
    pub(crate) tick_ns: AtomicU64,
    /// When this process was forked, as ticks, clock and wall clock. Written once, before
    /// `state` says so.
    forked_at: [AtomicU64; 3],
}

impl State {
    pub(crate) fn new(rate: Rate) -> State {
        State {
            state: AtomicI32::new(LIVE),
            write_failed: AtomicBool::new(false),
            rate: AtomicU64::new(rate.bits()),
            has_many_rates: AtomicBool::new(false),
            bytes: AtomicU64::new(0),
            tick_ns: AtomicU64::new(0),
            forked_at: Default::default(),
        }
    }

    /// The bits of the rate at which mutators are to sample from their next chance on.
    #[inline]
    pub(crate) fn rate_bits(&self) -> u64 {
        self.rate.load(Ordering::Relaxed)
    }

    pub(crate) fn set_rate(&self, rate: Rate) {
        self.rate.store(rate.bits(), Ordering::Relaxed);
    }

    /// The length of so many ticks, in nanoseconds.
    pub(crate) fn ticks_ns(&self, ticks: u64) -> u64 {
        let tick_ns = self.tick_ns.load(Ordering::Relaxed);
        u64::try_from((u128::from(ticks) * u128::from(tick_ns)) >> 20).unwrap_or(u64::MAX)
    }

    /// The rate can change from now on: mutators that begin say at which one they sample.
    pub(crate) fn allow_many_rates(&self) {
        self.has_many_rates.store(true, Ordering::SeqCst);
    }

    pub(crate) fn has_many_rates(&self) -> bool {
        self.has_many_rates.load(Ordering::SeqCst)
    }

    #[inline]
    pub(crate) fn is_live(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LIVE
    }

    pub(crate) fn has_forked(&self) -> bool {
        self.state.load(Ordering::Acquire) == FORKED
    }

    /// Why the session is not live; `None` while it is.
    pub(crate) fn failure(&self) -> Option<Failure> {
        match self.state.load(Ordering::Relaxed) {
            LIVE => None,
            number => Some(Failure::from_number(number).unwrap_or(Failure::Off)),
        }
    }

    /// Ends the session. True for the one caller that did.
    pub(crate) fn end(&self, why: Failure) -> bool {
        self.leave_live(why.number())
    }

    /// Ends the session since an output cannot be written. True for the first caller.
    pub(crate) fn fail_to_write(&self) -> bool {
        self.end(Failure::File);
        !self.write_failed.swap(true, Ordering::AcqRel)
    }

    pub(crate) fn write_failed(&self) -> bool {
        self.write_failed.load(Ordering::Acquire)
    }

    /// Notes that this process is a child that was forked now. True for the one caller that
    /// did. Async-signal-safe.
    pub(crate) fn set_forked(&self, now: Moment) -> bool {
        if !self.is_live() {
            return false;
        }
        let values = [now.ticks, now.monotonic_ns, now.wall_us];
        for (place, value) in self.forked_at.iter().zip(values) {
            place.store(value, Ordering::Relaxed);
        }
        self.leave_live(FORKED)
    }

    /// When this process was forked; `None` if it was not.
    pub(crate) fn forked_at(&self) -> Option<Moment> {
        let [ticks, monotonic_ns, wall_us] =
            self.forked_at.each_ref().map(|value| value.load(Ordering::Relaxed));
        self.has_forked().then_some(Moment { ticks, monotonic_ns, wall_us })
    }

    fn leave_live(&self, to: i32) -> bool {
        self.state.compare_exchange(LIVE, to, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}
