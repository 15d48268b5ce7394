//! A probe's memory.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use heaptap_probes::{ProbeKind, TagSize};

use super::observer::ObserverCell;
use super::text_cell::TextCell;
use super::timer::{TimerCell, TimerState};
use crate::sys::clock::TickSource;

/// How many callers can count without a locked instruction. Part of the C ABI.
const STRIPES: usize = 16;

/// A counter on a cache line of its own, for one caller at a time.
#[repr(C, align(64))]
#[derive(Default)]
pub(crate) struct Stripe {
    pub(crate) count: AtomicU64,
}

/// A probe. Never freed: its address is the program's handle.
#[repr(C, align(64))]
pub(crate) struct Cell {
    /// Passes that any thread adds, and marks of a tag. First, because the header's inline
    /// functions add to it.
    pub(crate) count: AtomicU64,
    magic: AtomicU64,
    /// Position 64 of the cell, and so part of the C ABI too.
    pub(crate) stripes: [Stripe; STRIPES],
    pub(crate) kind: ProbeKind,
    /// Its number in the registry.
    pub(crate) number: u32,
    clock: TickSource,
    pub(crate) value: ValueCell,
    timer: TimerCell,
    pub(crate) text: TextCell,
    pub(crate) observer: ObserverCell,
    pub(crate) size: SizeCell,
}

const MAGIC: u64 = u64::from_le_bytes(*b"heaptapP");

impl Cell {
    pub(crate) fn new(kind: ProbeKind, number: u32, clock: TickSource) -> Cell {
        Cell {
            count: AtomicU64::new(0),
            magic: AtomicU64::new(MAGIC),
            stripes: Default::default(),
            kind,
            number,
            clock,
            value: ValueCell::new(),
            timer: TimerCell::new(),
            text: TextCell::default(),
            observer: ObserverCell::default(),
            size: SizeCell::default(),
        }
    }

    /// Whether this is a probe, as far as its memory tells.
    pub(crate) fn is_probe(&self) -> bool {
        self.magic.load(Ordering::Relaxed) == MAGIC
    }

    /// Passes, or marks, so far.
    pub(super) fn total(&self) -> u64 {
        let stripes = self.stripes.iter().map(|stripe| stripe.count.load(Ordering::Relaxed));
        stripes.fold(self.count.load(Ordering::Relaxed), u64::wrapping_add)
    }

    /// One more value carries this tag.
    pub(crate) fn mark(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }

    /// Asks the function for the value, if there is one. Writer thread.
    pub(super) fn observe(&self) {
        if let Some(value) = self.observer.call() {
            self.value.set(value);
        }
    }

    /// An interval begins.
    pub(crate) fn start_timer(&self) {
        self.timer.start(self.clock.now());
    }

    /// An interval ends. False if none was running.
    pub(crate) fn stop_timer(&self) -> bool {
        self.timer.stop(self.clock.now())
    }

    /// What the timer has measured. `None` if it is being changed all the time.
    pub(super) fn timer(&self) -> Option<TimerState> {
        self.timer.read(self.clock.now())
    }
}

/// A number that the program sets.
pub(crate) struct ValueCell {
    last: AtomicU64,
    least: AtomicU64,
    greatest: AtomicU64,
    /// [`NEVER_SET`], or whether one was set since the last look.
    state: AtomicU32,
}

const NEVER_SET: u32 = 0;
const CHANGED: u32 = 1;
const SEEN: u32 = 2;

impl ValueCell {
    fn new() -> ValueCell {
        ValueCell {
            last: AtomicU64::new(0),
            least: AtomicU64::new(f64::INFINITY.to_bits()),
            greatest: AtomicU64::new(f64::NEG_INFINITY.to_bits()),
            state: AtomicU32::new(NEVER_SET),
        }
    }

    pub(crate) fn set(&self, value: f64) {
        move_to(&self.least, value, |value, least| value < least);
        move_to(&self.greatest, value, |value, greatest| value > greatest);
        self.last.store(value.to_bits(), Ordering::Relaxed);
        self.state.store(CHANGED, Ordering::Release);
    }

    /// The last, least and greatest value since the last call. `None` if none was set.
    pub(super) fn take(&self) -> Option<[f64; 3]> {
        let order = Ordering::Acquire;
        self.state.compare_exchange(CHANGED, SEEN, order, Ordering::Relaxed).ok()?;
        let least = f64::from_bits(self.least.swap(f64::INFINITY.to_bits(), Ordering::Relaxed));
        let greatest = self.greatest.swap(f64::NEG_INFINITY.to_bits(), Ordering::Relaxed);
        let last = f64::from_bits(self.last.load(Ordering::Relaxed));
        // A value that is set meanwhile may have moved a bound that was taken already. NaN
        // moves none.
        Some([last, least.min(last), f64::from_bits(greatest).max(last)])
    }

    /// The last value. `None` if none was ever set.
    pub(super) fn last(&self) -> Option<f64> {
        let is_set = self.state.load(Ordering::Acquire) != NEVER_SET;
        is_set.then(|| f64::from_bits(self.last.load(Ordering::Relaxed)))
    }
}

/// Stores `value` where `is_beyond` says that it lies beyond what is there.
fn move_to(bound: &AtomicU64, value: f64, is_beyond: impl Fn(f64, f64) -> bool) {
    let mut seen = bound.load(Ordering::Relaxed);
    while is_beyond(value, f64::from_bits(seen)) {
        let order = Ordering::Relaxed;
        match bound.compare_exchange_weak(seen, value.to_bits(), order, order) {
            Ok(_) => return,
            Err(other) => seen = other,
        }
    }
}

/// What the tagged values of one mutator reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SizeShare {
    pub(crate) words: u64,
    /// Not all was visited.
    pub(crate) cut: bool,
}

/// A tag's size: the sum over mutators.
#[derive(Default)]
pub(crate) struct SizeCell {
    words: AtomicU64,
    /// How many mutators have measured, and how many of those were cut short.
    shares: AtomicI64,
    cut: AtomicI64,
}

impl SizeCell {
    /// A mutator has measured what its tagged values reach, or has ended.
    pub(crate) fn change(&self, before: Option<SizeShare>, now: Option<SizeShare>) {
        let count = |share: Option<SizeShare>| i64::from(share.is_some());
        let cut = |share: Option<SizeShare>| i64::from(share.is_some_and(|share| share.cut));
        let words = |share: Option<SizeShare>| share.map_or(0, |share| share.words);
        self.words.fetch_add(words(now).wrapping_sub(words(before)), Ordering::Relaxed);
        self.cut.fetch_add(cut(now) - cut(before), Ordering::Relaxed);
        self.shares.fetch_add(count(now) - count(before), Ordering::Relaxed);
    }

    pub(super) fn get(&self) -> TagSize {
        let words = self.words.load(Ordering::Relaxed);
        let cut = self.cut.load(Ordering::Relaxed);
        match (self.shares.load(Ordering::Relaxed), cut) {
            (..=0, _) => TagSize::Unknown,
            (_, ..=0) => TagSize::Exactly(words),
            _ => TagSize::AtLeast(words),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_has_a_last_a_least_and_a_greatest() {
        let cell = Cell::new(ProbeKind::Value, 0, TickSource::detect());
        assert_eq!((cell.value.take(), cell.value.last()), (None, None));
        [3.0, -1.0, 2.0].into_iter().for_each(|value| cell.value.set(value));
        assert_eq!(cell.value.take(), Some([2.0, -1.0, 3.0]));
        assert_eq!((cell.value.take(), cell.value.last()), (None, Some(2.0)));
        cell.value.set(5.0);
        assert_eq!(cell.value.take(), Some([5.0, 5.0, 5.0]));
    }

    #[test]
    fn the_size_of_a_tag_is_known_exactly_at_least_or_not() {
        let cell = Cell::new(ProbeKind::Tag, 0, TickSource::detect());
        assert_eq!(cell.size.get(), TagSize::Unknown);
        let [first, second] =
            [(7, false), (9, true)].map(|(words, cut)| Some(SizeShare { words, cut }));
        cell.size.change(None, first);
        assert_eq!(cell.size.get(), TagSize::Exactly(7));
        cell.size.change(None, second);
        assert_eq!(cell.size.get(), TagSize::AtLeast(16));
        cell.size.change(first, None);
        assert_eq!(cell.size.get(), TagSize::AtLeast(9));
        cell.size.change(second, None);
        assert_eq!(cell.size.get(), TagSize::Unknown);
    }

    #[test]
    fn stripes_lie_where_the_header_has_them() {
        assert_eq!(std::mem::offset_of!(Cell, count), 0);
        assert_eq!(std::mem::offset_of!(Cell, stripes), 64);
        assert_eq!(size_of::<Stripe>(), 64);
    }
}
