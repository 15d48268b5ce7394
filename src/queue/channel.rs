//! What producers and the consumer share: the pool, the lanes, and the event
//! counts on which threads sleep.
#![allow(unsafe_code, reason = "declares that a zeroed lane is valid")]

use super::pool::Pool;
use super::sync::{
    AtomicBool, AtomicU64, AtomicUsize, EventCount, Ordering, Table, Zeroable, table,
};

/// The most lanes at a time.
pub(super) const MAX_LANES: usize = if cfg!(loom) { 3 } else { 65_535 };

/// One mutator's stream. Lanes are 64 bytes apart, so that mutators share no cache
/// line.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// A [`CurrentBuffer`](super::current_buffer::CurrentBuffer). Written by the
    /// producer; the consumer only sets the claim bit.
    pub(super) current: AtomicU64,
    /// The sequence number of the last buffer that was read and recycled. Written
    /// by the consumer. It only decides who may take a buffer, so relaxed accesses
    /// suffice.
    pub(super) finished: AtomicU64,
    /// Whether the lane has a producer.
    pub(super) taken: AtomicBool,
}

// SAFETY: the fields are atomic integers and an atomic bool. Zero is a valid value
// of each, and none needs a drop.
unsafe impl Zeroable for Lane {}

/// See the [module](super).
pub(crate) struct Channel {
    pub(super) pool: Pool,
    /// All lanes there can ever be. They never move, and only those in use occupy
    /// memory.
    pub(super) lanes: Table<Lane>,
    /// One more than the highest lane that was ever taken. No lane from here on has
    /// had a buffer.
    pub(super) used: AtomicUsize,
    /// Where the search for a free lane starts. All lanes below are taken, except
    /// for concurrent changes.
    first_free: AtomicUsize,
    /// The writer sleeps on this one.
    pub(super) writer_wakeup: EventCount,
    /// Mutators sleep on this one until a buffer is free.
    pub(super) buffer_freed: EventCount,
}

impl Channel {
    pub(super) fn with_pool(pool: Pool) -> Option<Self> {
        Some(Self {
            pool,
            lanes: table(MAX_LANES)?,
            used: AtomicUsize::new(0),
            first_free: AtomicUsize::new(0),
            writer_wakeup: EventCount::new(),
            buffer_freed: EventCount::new(),
        })
    }

    /// Takes a free lane: the lowest one, unless other threads take or free lanes at
    /// the same time. `None` if all are taken.
    ///
    /// Lock-free. Visits every lane when nearly all are taken.
    pub(super) fn take_lane(&self) -> Option<u16> {
        let start = self.first_free.load(Ordering::Relaxed);
        let lane = (start..self.lanes.len()).chain(0..start).find(|&lane| self.try_take(lane))?;
        self.first_free.store(lane + 1, Ordering::Relaxed);
        self.used.fetch_max(lane + 1, Ordering::AcqRel);
        u16::try_from(lane).ok()
    }

    fn try_take(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|lane| {
            let taken = &lane.taken;
            !taken.load(Ordering::Relaxed)
                && taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })
    }

    /// Frees a lane. Everything its producer did happens before the next producer
    /// takes it.
    pub(super) fn free_lane(&self, lane: u16) {
        if let Some(slot) = self.lanes.get(usize::from(lane)) {
            slot.taken.store(false, Ordering::Release);
            self.first_free.fetch_min(usize::from(lane), Ordering::Relaxed);
        }
    }

    /// How many buffers are free now.
    #[cfg(test)]
    pub(crate) fn free_buffers(&self) -> usize {
        self.pool.free.len()
    }

    /// Wakes the writer. A system call only if it sleeps.
    pub(crate) fn wake_writer(&self) {
        self.writer_wakeup.notify();
    }
}
