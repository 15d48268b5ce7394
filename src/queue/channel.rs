//! What producers and the consumer share: the pool, the lanes, the bells.
#![allow(unsafe_code, reason = "vouches that a zeroed lane is a lane")]

use super::consumer::Consumer;
use super::pool::{BUFFER_WORDS, Pool};
use super::producer::Producer;
use super::sync::{
    AtomicBool, AtomicU64, AtomicUsize, EventCount, Ordering, Table, Zeroable, table,
};
use std::sync::Arc;

/// The most lanes there can be at a time.
pub(crate) const MAX_LANES: usize = if cfg!(loom) { 3 } else { 65_535 };

/// One per mutator; 64 bytes apart, so that mutators do not share cache lines.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(super) struct Lane {
    /// A [`Current`](super::current::Current). Written by the producer, and by
    /// the consumer only to claim.
    pub(super) current: AtomicU64,
    /// The number of the last buffer that is read and recycled. Written by the
    /// consumer; decides about room only, so its order does not matter.
    pub(super) finished: AtomicU64,
    /// Whether a producer exists.
    pub(super) taken: AtomicBool,
}

// SAFETY: atomic zeros and an atomic false, none of which needs a drop.
unsafe impl Zeroable for Lane {}

/// See the [module](super).
pub(crate) struct Channel {
    pub(super) pool: Pool,
    /// All there can ever be: they never move, and only those in use cost memory.
    pub(super) lanes: Table<Lane>,
    /// Lanes that were ever taken: no lane beyond has had a buffer.
    pub(super) used: AtomicUsize,
    /// Where to look for a free lane first: all below have a producer, but for
    /// what threads change at the same time.
    pub(super) first_free: AtomicUsize,
    /// The writer sleeps here.
    pub(super) writer: EventCount,
    /// Mutators wait here for empty buffers.
    pub(super) room: EventCount,
}

impl Channel {
    /// A channel with `buffers` buffers of [`BUFFER_WORDS`], and its only
    /// consumer; `None` when there is no memory, or for 0 or over 65,536.
    pub(crate) fn new(buffers: usize) -> Option<(Arc<Self>, Consumer)> {
        Self::with_buffer_words(buffers, BUFFER_WORDS)
    }

    /// The same with buffers of another size, at most 16,383 words.
    pub(crate) fn with_buffer_words(
        buffers: usize,
        buffer_words: usize,
    ) -> Option<(Arc<Self>, Consumer)> {
        let channel = Arc::new(Self {
            pool: Pool::new(buffers, buffer_words)?,
            lanes: table(MAX_LANES)?,
            used: AtomicUsize::new(0),
            first_free: AtomicUsize::new(0),
            writer: EventCount::new(),
            room: EventCount::new(),
        });
        let consumer = Consumer::new(Arc::clone(&channel))?;
        Some((channel, consumer))
    }

    /// A producer on a lane without one, the first if nobody else asks at the
    /// same time; `None` when all have one.
    ///
    /// Any thread; lock-free. Looks at every lane when nearly all are taken.
    pub(crate) fn producer(self: &Arc<Self>) -> Option<Producer> {
        let start = self.first_free.load(Ordering::Relaxed);
        let lane = (start..self.lanes.len()).chain(0..start).find(|&lane| self.take_lane(lane))?;
        self.first_free.store(lane + 1, Ordering::Relaxed);
        self.used.fetch_max(lane + 1, Ordering::AcqRel);
        Some(Producer::new(Arc::clone(self), u16::try_from(lane).ok()?))
    }

    fn take_lane(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|lane| {
            let taken = &lane.taken;
            !taken.load(Ordering::Relaxed)
                && taken.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_ok()
        })
    }

    /// Gives a lane back, with all its producer did.
    pub(super) fn free_lane(&self, lane: u16) {
        if let Some(slot) = self.lanes.get(usize::from(lane)) {
            slot.taken.store(false, Ordering::Release);
            self.first_free.fetch_min(usize::from(lane), Ordering::Relaxed);
        }
    }

    /// How many buffers are empty now.
    #[cfg(test)]
    pub(crate) fn free_buffers(&self) -> usize {
        self.pool.empties.len()
    }

    /// Wakes the writer if it sleeps: one system call then.
    pub(crate) fn wake_writer(&self) {
        self.writer.notify();
    }
}
