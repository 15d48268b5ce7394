//! The mutator's end of a lane.
//!
//! Runs inside hooks: no lock, no malloc, no panic, and no system call except to
//! wake the writer.
//!
//! Every sample pays for [`Producer::reserve`] and [`Producer::commit`]. So the
//! producer keeps the address of the buffer's free words instead of asking the pool,
//! and pinned lanes keep their buffers claimed.
#![allow(unsafe_code, reason = "writes words of a buffer it has claimed")]

use super::channel::{Channel, Lane};
use super::current_buffer::CurrentBuffer;
use super::pool::{FullBuffer, WordRange};
use super::sync::Ordering;
use core::ptr::NonNull;
use core::slice;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Why no space for a record was reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The record is longer than a buffer.
    TooLong,
    /// No buffer is free now.
    NoBuffer,
}

/// The result of [`Producer::wait_for_buffer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// A buffer was there at once.
    NotNeeded,
    /// A buffer is there after sleeping.
    Waited,
    /// No buffer became free in time.
    TimedOut,
}

/// What the producer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// No buffer: it has not taken one yet, or handed it over.
    Nothing,
    /// An unclaimed buffer, which the consumer may have claimed since.
    Idle,
    /// A buffer that the producer has claimed.
    Claimed,
}

/// Writes the records of one lane. When dropped, it hands over its buffer and frees
/// the lane.
pub(crate) struct Producer {
    channel: Arc<Channel>,
    lane: u16,
    hold: Hold,
    /// The lane's word as this producer last stored or claimed it.
    current: CurrentBuffer,
    /// The words after the committed ones of the buffer that it holds.
    free: FreeWords,
    /// The length of the reservation that is not committed yet; 0 for none.
    reserved: usize,
    /// Whether the lane is pinned: the consumer never claims its buffers.
    pinned: bool,
}

/// Uncommitted words of a buffer. Only the thread that holds the buffer's claim may
/// access them.
struct FreeWords {
    next: NonNull<u64>,
    count: usize,
}

impl FreeWords {
    const NONE: FreeWords = FreeWords { next: NonNull::dangling(), count: 0 };
}

// SAFETY: the words are in the mapping of the channel, which the producer keeps alive
// with its `Arc`. They are accessed through `&mut Producer` only, by whichever thread
// owns the producer.
unsafe impl Send for FreeWords {}

impl Channel {
    /// A producer on a free lane: the lowest one, unless other threads take or free
    /// lanes at the same time. `None` if all lanes are taken.
    ///
    /// Any thread; lock-free. Visits every lane when nearly all are taken.
    pub(crate) fn producer(self: &Arc<Self>) -> Option<Producer> {
        self.take_lane().map(|lane| Producer::new(Arc::clone(self), lane))
    }
}

impl Producer {
    fn new(channel: Arc<Channel>, lane: u16) -> Self {
        // Continues the sequence of the lane's last producer.
        let word = channel
            .lanes
            .get(usize::from(lane))
            .map_or(0, |lane| lane.current.load(Ordering::Acquire));
        let current = CurrentBuffer::from_word(word);
        let pinned = usize::from(lane) < channel.pool.pinned_lanes();
        let (hold, free) = (Hold::Nothing, FreeWords::NONE);
        Self { channel, lane, hold, current, free, reserved: 0, pinned }
    }

    /// The lane's number.
    pub(crate) fn lane(&self) -> u16 {
        self.lane
    }

    /// Reserves `words` contiguous words, with arbitrary contents.
    ///
    /// The consumer sees nothing of them before they are committed. A second
    /// reservation replaces the first.
    #[inline]
    pub(crate) fn reserve(&mut self, words: usize) -> Result<&mut [u64], Refusal> {
        if self.hold != Hold::Claimed || words > self.free.count {
            self.claim_space(words)?;
        }
        self.reserved = words;
        self.channel.pool.note_write(self.uncommitted(words));
        // SAFETY: `hold` is `Claimed`, so the consumer does not touch the buffer beyond
        // its committed length, where `free` begins, and `words <= free.count`. The
        // slice borrows `self`, so there is one at a time.
        Ok(unsafe { slice::from_raw_parts_mut(self.free.next.as_ptr(), words) })
    }

    /// Reserves up to `most` words, for records of one word each: at least two, or
    /// `most` if that is less.
    #[inline]
    pub(crate) fn reserve_up_to(&mut self, most: usize) -> Result<&mut [u64], Refusal> {
        self.claim();
        let left = if self.hold == Hold::Claimed { self.free.count } else { 0 };
        let words = if left < 2 { self.channel.pool.buffer_words } else { left };
        self.reserve(most.min(words))
    }

    /// Publishes the first `words` words of the reservation.
    #[inline(always)]
    pub(crate) fn commit(&mut self, words: usize) {
        debug_assert!(
            words <= self.reserved,
            "commit of {words} words, {} reserved",
            self.reserved
        );
        if self.hold != Hold::Claimed {
            return;
        }
        let words = words.min(self.reserved);
        self.reserved = 0;
        self.channel.pool.note_write(self.uncommitted(words));
        // SAFETY: `words` is at most the reservation, which was at most `free.count`, so
        // the result is within the buffer or one past its end.
        self.free.next = unsafe { self.free.next.add(words) };
        self.free.count -= words;
        self.current = self.current.grown(words);
        if !self.pinned {
            self.current = self.current.unclaimed();
            self.hold = Hold::Idle;
        }
        self.store();
    }

    /// Waits for a free buffer and takes it, so that the next reservation of at most a
    /// buffer succeeds. Sleeps at most `timeout`.
    #[cold]
    pub(crate) fn wait_for_buffer(&mut self, timeout: Duration) -> WaitOutcome {
        let start = Instant::now();
        let mut outcome = WaitOutcome::NotNeeded;
        loop {
            let ticket = self.channel.buffer_freed.ticket();
            if self.hold != Hold::Nothing || self.take_free() {
                return outcome;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
            else {
                return WaitOutcome::TimedOut;
            };
            self.channel.writer_wakeup.notify();
            outcome = WaitOutcome::Waited;
            self.channel.buffer_freed.wait(ticket, left);
        }
    }

    /// Hands over its buffer, however little is in it, and frees the lane.
    pub(crate) fn end(self) {}

    /// Drops the producer without touching the queues or the lane: for a forked child.
    pub(crate) fn abandon(self) {
        let mut producer = core::mem::ManuallyDrop::new(self);
        // SAFETY: `producer` is not used again, and `ManuallyDrop` keeps its drop from
        // running, so this is the only drop of the `Arc`.
        unsafe { core::ptr::drop_in_place(&raw mut producer.channel) };
    }

    /// Claims a buffer with at least `words` free words.
    #[inline(never)]
    fn claim_space(&mut self, words: usize) -> Result<(), Refusal> {
        self.claim();
        if self.hold == Hold::Claimed && words <= self.free.count {
            return Ok(());
        }
        self.replace_buffer(words)
    }

    /// Claims the buffer unless the consumer has.
    fn claim(&mut self) {
        if self.hold != Hold::Idle {
            return;
        }
        let idle = self.current;
        self.current = idle.claimed();
        let claimed = self.exchange_word(idle);
        self.hold = if claimed { Hold::Claimed } else { Hold::Nothing };
    }

    /// Replaces the lane's word by `self.current` if it is still `idle`. Returns whether
    /// it was.
    fn exchange_word(&self, idle: CurrentBuffer) -> bool {
        self.slot().is_some_and(|lane| {
            lane.current
                .compare_exchange(
                    idle.word(),
                    self.current.word(),
                    Ordering::Acquire,
                    Ordering::Relaxed,
                )
                .is_ok()
        })
    }

    /// Replaces the buffer, which has fewer than `words` free words, by a fresh one.
    #[cold]
    fn replace_buffer(&mut self, words: usize) -> Result<(), Refusal> {
        if words > self.channel.pool.buffer_words {
            return Err(Refusal::TooLong);
        }
        self.hand_over();
        if self.take_free() {
            return Ok(());
        }
        self.channel.writer_wakeup.notify();
        Err(Refusal::NoBuffer)
    }

    /// Pushes a claimed buffer to the queue of full buffers, and wakes the writer if
    /// enough are there or few are free. The lane's word keeps naming it, claimed.
    fn hand_over(&mut self) {
        if self.hold != Hold::Claimed {
            return;
        }
        self.hold = Hold::Nothing;
        let pool = &self.channel.pool;
        let pushed = pool.full.push(FullBuffer { lane: self.lane, current: self.current });
        debug_assert!(pushed.is_ok(), "the queue has capacity for all buffers");
        if pool.full.len() >= pool.batch() || pool.free.len() <= pool.low_mark() {
            self.channel.writer_wakeup.notify();
        }
    }

    /// Takes a free buffer and claims it. False if there is none for this lane.
    fn take_free(&mut self) -> bool {
        if self.must_leave_reserve() {
            return false;
        }
        let Some(index) = self.channel.pool.free.pop() else { return false };
        let Some(next) = self.channel.pool.first_word(index) else { return false };
        self.current = CurrentBuffer::fresh(self.current.sequence() + 1, index);
        self.free = FreeWords { next, count: self.channel.pool.buffer_words };
        self.reserved = 0;
        self.store();
        self.hold = Hold::Claimed;
        true
    }

    /// Whether only the reserve is left and this lane has buffers waiting to be read.
    ///
    /// The writer may have to hold up a lane until it sees an event of another. If the
    /// lane that is held up could take the whole pool, the other one could not write
    /// that event.
    fn must_leave_reserve(&self) -> bool {
        let pool = &self.channel.pool;
        let finished = self.slot().map_or(0, |lane| lane.finished.load(Ordering::Relaxed));
        finished < self.current.sequence()
            && self.channel.used.load(Ordering::Relaxed) > 1
            && pool.reserve() > 0
            && pool.free.len() <= pool.reserve()
    }

    /// The first `count` words after the committed ones.
    #[inline]
    fn uncommitted(&self, count: usize) -> WordRange {
        WordRange { index: self.current.index(), from: self.current.committed(), count }
    }

    /// Publishes `self.current` and all words written before.
    #[inline]
    fn store(&self) {
        if let Some(lane) = self.slot() {
            lane.current.store(self.current.word(), Ordering::Release);
        }
    }

    #[inline]
    fn slot(&self) -> Option<&Lane> {
        self.channel.lanes.get(usize::from(self.lane))
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        self.claim();
        self.hand_over();
        self.channel.free_lane(self.lane);
    }
}
