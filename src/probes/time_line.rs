//! What a runtime reports of its collector while it works.
//!
//! Hooks of any thread add slices to a ring, from which the writer thread takes them. When the
//! ring is full, a slice is only in the totals.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use heaptap_probes::SliceKind;

use crate::sys::memory::{MappedArray, Zeroable};

/// Slices between two ticks: a minor collection each 100 µs, and 15 domains.
const RING: usize = if crate::SMALL_LIMITS { 8 } else { 1 << 14 };

/// A slice on its way to the writer thread.
struct Slot {
    /// The tick at which it began.
    begin: AtomicU64,
    /// How many ticks it took, in the lower 44 bits; domain and kind above. 0 while empty.
    rest: AtomicU64,
}

// SAFETY: numbers, which may be zero and need no drop.
unsafe impl Zeroable for Slot {}

/// Cycles between two ticks. A heap that is collected more often than that is tiny.
const CYCLES: usize = 64;

const TICK_BITS: u32 = 44;
const DOMAIN_BITS: u32 = 16;
const MAX_TICKS: u64 = (1 << TICK_BITS) - 1;

/// All slices of a kind.
#[derive(Default)]
struct Totals {
    count: AtomicU64,
    ticks: AtomicU64,
    longest: AtomicU64,
}

/// A slice, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimedSlice {
    pub(super) begin: u64,
    pub(super) ticks: u64,
    pub(super) kind: SliceKind,
    pub(super) domain: u16,
}

/// All slices of a kind so far, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SliceTotals {
    pub(super) count: u64,
    pub(super) ticks: u64,
    /// Since the last look.
    pub(super) longest: u64,
}

/// A major cycle, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimedCycle {
    /// How many there were, this one included.
    pub(super) number: u64,
    /// It had not begun yet.
    pub(super) began: u64,
    /// What is dead was known.
    pub(super) marked: u64,
}

/// A cycle on its way to the writer thread.
#[derive(Default)]
struct CycleSlot {
    began: AtomicU64,
    marked: AtomicU64,
}

/// The collector's major cycles. One thread at a time reports them: the one that holds the master
/// lock, or all domains stand still, and the first of them reports.
struct Cycles {
    slots: [CycleSlot; CYCLES],
    put: AtomicU64,
    taken: AtomicU64,
    /// The name of the last one that was reported, 0 before the first.
    last: AtomicU64,
    /// A tick at which the one that runs, or comes next, had not begun.
    before: AtomicU64,
}

/// The slices of the collector, and their totals. Shared by hooks and the writer thread.
pub(crate) struct TimeLine {
    /// `None` without memory: all slices are in the totals only.
    ring: Option<MappedArray<Slot>>,
    /// How many slices were ever put into the ring.
    put: AtomicU64,
    /// How many were taken out.
    taken: AtomicU64,
    lost: AtomicU64,
    totals: [Totals; SliceKind::ALL.len()],
    cycles: Cycles,
    /// Domains, or other mutators, that exist.
    pub(crate) domains: AtomicU32,
}

impl TimeLine {
    pub(crate) fn new() -> TimeLine {
        TimeLine {
            ring: MappedArray::new(RING),
            put: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            totals: Default::default(),
            cycles: Cycles {
                slots: [const { CycleSlot { began: AtomicU64::new(0), marked: AtomicU64::new(0) } };
                    CYCLES],
                put: AtomicU64::new(0),
                taken: AtomicU64::new(0),
                last: AtomicU64::new(0),
                before: AtomicU64::new(0),
            },
            domains: AtomicU32::new(0),
        }
    }

    /// The collector has worked from one tick of the session's clock to another. Callable from
    /// hooks: no lock, no memory.
    pub(crate) fn slice(&self, kind: SliceKind, domain: u16, begin: u64, end: u64) {
        let ticks = end.saturating_sub(begin);
        if let Some(totals) = self.totals.get(usize::from(kind.number())) {
            totals.count.fetch_add(1, Ordering::Relaxed);
            totals.ticks.fetch_add(ticks, Ordering::Relaxed);
            totals.longest.fetch_max(ticks, Ordering::Relaxed);
        }
        let Some(slot) = self.next_slot() else {
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        };
        slot.begin.store(begin, Ordering::Relaxed);
        // 1 more, so that it is never 0.
        let rest = (u64::from(kind.number()) << DOMAIN_BITS | u64::from(domain)) << TICK_BITS;
        slot.rest.store(rest + ticks.min(MAX_TICKS - 1) + 1, Ordering::Release);
    }

    /// The collector is not marking at this tick. Callable from hooks.
    pub(crate) fn is_not_marking(&self, now: u64) {
        self.cycles.before.store(now, Ordering::Relaxed);
    }

    /// The collector knows what is dead, at this tick. `name` is not that of the cycle before: of
    /// several domains that say so, one counts. Callable from hooks.
    pub(crate) fn cycle_marked(&self, name: u64, now: u64) {
        let cycles = &self.cycles;
        // 1 more, so that it is never 0.
        let name = name.wrapping_add(1);
        if cycles.last.swap(name, Ordering::AcqRel) == name {
            return;
        }
        let began = cycles.before.swap(now, Ordering::Relaxed);
        let put = cycles.put.load(Ordering::Relaxed);
        if put.wrapping_sub(cycles.taken.load(Ordering::Acquire)) >= CYCLES as u64 {
            // The writer thread is behind. The cycles that follow say the same of later moments.
            return;
        }
        let Some(slot) = cycles.slots.get(put as usize % CYCLES) else { return };
        slot.began.store(began, Ordering::Relaxed);
        slot.marked.store(now, Ordering::Relaxed);
        cycles.put.store(put + 1, Ordering::Release);
    }

    /// The next cycle. Writer thread.
    pub(super) fn take_cycle(&self) -> Option<TimedCycle> {
        let taken = self.cycles.taken.load(Ordering::Relaxed);
        if taken == self.cycles.put.load(Ordering::Acquire) {
            return None;
        }
        let slot = self.cycles.slots.get(taken as usize % CYCLES)?;
        let cycle = TimedCycle {
            number: taken + 1,
            began: slot.began.load(Ordering::Relaxed),
            marked: slot.marked.load(Ordering::Relaxed),
        };
        self.cycles.taken.store(taken + 1, Ordering::Release);
        Some(cycle)
    }

    /// The slot of the next slice. `None`: the ring is full.
    fn next_slot(&self) -> Option<&Slot> {
        let ring = self.ring.as_ref()?;
        // Any number of threads may pass this test at once: a quarter is left for them.
        let waiting = self.put.load(Ordering::Relaxed) - self.taken.load(Ordering::Acquire);
        if waiting >= (RING - RING / 4) as u64 {
            return None;
        }
        ring.get(self.put.fetch_add(1, Ordering::Relaxed) as usize % RING)
    }

    /// The next slice. `None`: there is none, or a thread is about to write it. Writer thread.
    pub(super) fn take(&self) -> Option<TimedSlice> {
        let taken = self.taken.load(Ordering::Relaxed);
        if taken == self.put.load(Ordering::Relaxed) {
            return None;
        }
        let slot = self.ring.as_ref()?.get(taken as usize % RING)?;
        let rest = slot.rest.swap(0, Ordering::Acquire);
        if rest == 0 {
            return None;
        }
        let begin = slot.begin.load(Ordering::Relaxed);
        self.taken.store(taken + 1, Ordering::Release);
        let above = rest >> TICK_BITS;
        let kind = SliceKind::from_number((above >> DOMAIN_BITS) as u8)?;
        Some(TimedSlice { begin, ticks: (rest & MAX_TICKS) - 1, kind, domain: above as u16 })
    }

    /// All slices of a kind. Writer thread.
    pub(super) fn totals(&self, kind: SliceKind) -> SliceTotals {
        let none = SliceTotals { count: 0, ticks: 0, longest: 0 };
        self.totals.get(usize::from(kind.number())).map_or(none, |totals| SliceTotals {
            count: totals.count.load(Ordering::Relaxed),
            ticks: totals.ticks.load(Ordering::Relaxed),
            longest: totals.longest.swap(0, Ordering::Relaxed),
        })
    }

    /// Whether there was any slice.
    pub(super) fn has_slices(&self) -> bool {
        self.totals.iter().any(|totals| totals.count.load(Ordering::Relaxed) != 0)
    }

    /// Slices that are only in the totals.
    pub(super) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_come_out_as_they_went_in() {
        let line = TimeLine::new();
        line.slice(SliceKind::Minor, 3, 100, 130);
        line.slice(SliceKind::Major, u16::MAX, 200, 200);
        let minor = TimedSlice { begin: 100, ticks: 30, kind: SliceKind::Minor, domain: 3 };
        assert_eq!(line.take(), Some(minor));
        let major = TimedSlice { begin: 200, ticks: 0, kind: SliceKind::Major, domain: u16::MAX };
        assert_eq!(line.take(), Some(major));
        assert_eq!(line.take(), None);
        let totals = line.totals(SliceKind::Minor);
        assert_eq!((totals.count, totals.ticks, totals.longest), (1, 30, 30));
        assert_eq!(line.totals(SliceKind::Minor).longest, 0);
    }

    #[test]
    fn a_cycle_begins_where_it_was_last_not_marking() {
        let line = TimeLine::new();
        line.is_not_marking(10);
        line.is_not_marking(20);
        line.cycle_marked(7, 50);
        // Another domain, of the same cycle.
        line.cycle_marked(7, 51);
        line.cycle_marked(8, 90);
        let cycle = |number, began, marked| TimedCycle { number, began, marked };
        assert_eq!(line.take_cycle(), Some(cycle(1, 20, 50)));
        assert_eq!(line.take_cycle(), Some(cycle(2, 50, 90)));
        assert_eq!(line.take_cycle(), None);
        // More than there is room for, then room again.
        (0..200).for_each(|at| line.cycle_marked(100 + at, 100 + at));
        let mut taken = 0;
        while line.take_cycle().is_some() {
            taken += 1;
        }
        assert_eq!(taken, CYCLES);
        line.cycle_marked(1_000, 1_000);
        assert_eq!(line.take_cycle().map(|cycle| (cycle.began, cycle.marked)), Some((299, 1_000)));
    }

    #[test]
    fn a_full_ring_loses_no_totals() {
        let line = TimeLine::new();
        (0..100).for_each(|at| line.slice(SliceKind::Minor, 0, at, at + 2));
        let mut out = 0;
        while line.take().is_some() {
            out += 1;
        }
        assert_eq!(line.totals(SliceKind::Minor).ticks, 200);
        assert_eq!(out + line.lost(), 100);
        assert!(out > 0);
    }
}
