//! The counters of a session.
//!
//! Each mutator has its own [`Counters`], which only its hooks write: a plain
//! load and store each, no locked instruction. Any thread may read them;
//! [`Totals`] adds them up.

use std::sync::atomic::{AtomicU64, Ordering};

/// One counter.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds to it. By one thread at a time.
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// Replaces its value. By one thread at a time.
    #[inline]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one mutator. Those that every sample changes come first, so
/// that they share a cache line.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Counters {
    /// Sampled words.
    pub(crate) samples: Counter,
    /// Blocks that were recorded.
    pub(crate) allocations: Counter,
    /// Blocks that are currently tracked by sweeps.
    pub(crate) live_blocks: Counter,
    pub(crate) promotions: Counter,
    pub(crate) collections: Counter,
    /// Sampled blocks that were not recorded.
    pub(crate) dropped: Counter,
    /// Times that a hook waited for the writer thread.
    pub(crate) waits: Counter,
    /// Clock ticks spent in hooks, an estimate.
    pub(crate) hook_ticks: Counter,
}

/// The sum of all mutators' counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) samples: u64,
    pub(crate) allocations: u64,
    pub(crate) promotions: u64,
    pub(crate) collections: u64,
    pub(crate) dropped: u64,
    pub(crate) waits: u64,
    pub(crate) hook_ticks: u64,
    pub(crate) live_blocks: u64,
}

impl Totals {
    /// Blocks in which words were sampled.
    pub(crate) fn sampled_blocks(&self) -> u64 {
        self.allocations + self.dropped
    }

    pub(crate) fn add(&mut self, counters: &Counters) {
        self.samples += counters.samples.get();
        self.allocations += counters.allocations.get();
        self.promotions += counters.promotions.get();
        self.collections += counters.collections.get();
        self.dropped += counters.dropped.get();
        self.waits += counters.waits.get();
        self.hook_ticks += counters.hook_ticks.get();
        self.live_blocks += counters.live_blocks.get();
    }
}
