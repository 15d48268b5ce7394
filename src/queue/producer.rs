//! The mutator's end of a lane.
//!
//! Runs inside hooks: no lock, no malloc, no panic, and no system call but the
//! ring of a bell.
//!
//! What a record costs here is part of what every sample costs. So where the free
//! words of the buffer are is known without asking the pool, and the buffers of
//! the lanes that keep theirs stay claimed.
#![allow(unsafe_code, reason = "takes words of a buffer it has claimed")]

use super::channel::{Channel, Lane};
use super::current::Current;
use super::pool::Handed;
use super::sync::Ordering;
use core::ptr::NonNull;
use core::slice;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Why there is no room for a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Longer than a buffer: it will never fit.
    TooLong,
    /// No buffer is empty now.
    NoBuffer,
}

/// How waiting for an empty buffer went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitOutcome {
    /// There was one at once.
    NotNeeded,
    /// There is one now, after sleeping.
    Waited,
    /// There is none after all that time.
    TimedOut,
}

/// What the producer has in its lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hold {
    /// Nothing: not yet, or it was handed over.
    Nothing,
    /// A buffer, unless the consumer has claimed it since.
    Idle,
    /// A buffer that nobody can take away.
    Claimed,
}

/// Writes records of one lane. Dropped, it hands over what it holds, and its
/// lane becomes free.
pub(crate) struct Producer {
    channel: Arc<Channel>,
    lane: u16,
    hold: Hold,
    /// The lane's word as this producer last stored or claimed it.
    current: Current,
    /// The words behind the committed ones of the buffer that it holds.
    free: Free,
    /// Words of the last reservation, while not committed.
    reserved: usize,
    /// The consumer never claims this lane's buffers.
    settled: bool,
}

/// Words of a buffer that nobody else may use while it is claimed.
struct Free {
    next: NonNull<u64>,
    count: usize,
}

impl Free {
    const NONE: Free = Free { next: NonNull::dangling(), count: 0 };
}

// SAFETY: they are words of the channel, which the producer owns a share of, and
// which are used by who has the producer.
unsafe impl Send for Free {}

impl Producer {
    pub(super) fn new(channel: Arc<Channel>, lane: u16) -> Self {
        // The lane was acquired from its last producer, whose numbers go on.
        let word = channel
            .lanes
            .get(usize::from(lane))
            .map_or(0, |lane| lane.current.load(Ordering::Acquire));
        let current = Current::from_word(word);
        let settled = usize::from(lane) < channel.pool.settled_lanes();
        let (hold, free) = (Hold::Nothing, Free::NONE);
        Self { channel, lane, hold, current, free, reserved: 0, settled }
    }

    /// Which lane this is.
    pub(crate) fn lane(&self) -> u16 {
        self.lane
    }

    /// Contiguous room for one record of `words` words, with arbitrary contents.
    ///
    /// It counts only once committed; a second reservation replaces the first.
    #[inline]
    pub(crate) fn reserve(&mut self, words: usize) -> Result<&mut [u64], Refusal> {
        if self.hold != Hold::Claimed || words > self.free.count {
            self.make_room(words)?;
        }
        self.reserved = words;
        self.channel.pool.writing(self.current.index(), self.current.committed(), words);
        // SAFETY: free words of a buffer claimed by us, no more than there are;
        // the slice borrows `self`, so there is one at a time.
        Ok(unsafe { slice::from_raw_parts_mut(self.free.next.as_ptr(), words) })
    }

    /// Room for some of `most` one-word records: at least two, or what is asked.
    #[inline]
    pub(crate) fn reserve_up_to(&mut self, most: usize) -> Result<&mut [u64], Refusal> {
        self.claim();
        let room = if self.hold == Hold::Claimed { self.free.count } else { 0 };
        let words = if room < 2 { self.channel.pool.buffer_words } else { room };
        self.reserve(most.min(words))
    }

    /// Publishes the first `words` words of what was reserved.
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
        self.channel.pool.writing(self.current.index(), self.current.committed(), words);
        // SAFETY: no more than were reserved, so still of the buffer, or behind it.
        self.free.next = unsafe { self.free.next.add(words) };
        self.free.count -= words;
        self.current = self.current.grown(words);
        if !self.settled {
            self.current = self.current.unclaimed();
            self.hold = Hold::Idle;
        }
        self.store();
    }

    /// Waits for an empty buffer and holds it, so that the next reservation of
    /// no more than a buffer succeeds. Sleeps at most `timeout`.
    #[cold]
    pub(crate) fn wait_for_buffer(&mut self, timeout: Duration) -> WaitOutcome {
        let start = Instant::now();
        let mut outcome = WaitOutcome::NotNeeded;
        loop {
            let ticket = self.channel.room.ticket();
            if self.hold != Hold::Nothing || self.take() {
                return outcome;
            }
            let Some(left) = timeout.checked_sub(start.elapsed()).filter(|left| !left.is_zero())
            else {
                return WaitOutcome::TimedOut;
            };
            self.channel.writer.notify();
            outcome = WaitOutcome::Waited;
            self.channel.room.wait(ticket, left);
        }
    }

    /// Hands over what it holds, however little, and frees the lane.
    pub(crate) fn end(self) {}

    /// Lets go without touching the queues or the lane: for a forked child.
    pub(crate) fn abandon(self) {
        let mut producer = core::mem::ManuallyDrop::new(self);
        // SAFETY: `producer` is not used again and its drop does not run, so the
        // channel is released once.
        unsafe { core::ptr::drop_in_place(&raw mut producer.channel) };
    }

    /// Claims a buffer that has room for so many words.
    #[inline(never)]
    fn make_room(&mut self, words: usize) -> Result<(), Refusal> {
        self.claim();
        if self.hold == Hold::Claimed && words <= self.free.count {
            return Ok(());
        }
        self.exchange(words)
    }

    /// Makes the buffer ours, if the consumer has not.
    fn claim(&mut self) {
        if self.hold != Hold::Idle {
            return;
        }
        let idle = self.current;
        self.current = idle.claimed();
        let got = self.exchange_word(idle);
        self.hold = if got { Hold::Claimed } else { Hold::Nothing };
    }

    /// Whether the lane's word is still this one, which it then is no more.
    fn exchange_word(&self, idle: Current) -> bool {
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

    /// A fresh buffer in place of one that has no room for `words`.
    #[cold]
    fn exchange(&mut self, words: usize) -> Result<(), Refusal> {
        if words > self.channel.pool.buffer_words {
            return Err(Refusal::TooLong);
        }
        self.hand_over();
        if self.take() {
            return Ok(());
        }
        self.channel.writer.notify();
        Err(Refusal::NoBuffer)
    }

    /// Pushes a claimed buffer to the consumer, and wakes the writer if by now
    /// that is worth it. The lane's word keeps naming it, claimed.
    fn hand_over(&mut self) {
        if self.hold != Hold::Claimed {
            return;
        }
        self.hold = Hold::Nothing;
        let pool = &self.channel.pool;
        let pushed = pool.fulls.push(Handed { lane: self.lane, current: self.current });
        debug_assert!(pushed.is_ok(), "`fulls` has room for all buffers");
        if pool.fulls.len() >= pool.batch() || pool.empties.len() <= pool.quarter() {
            self.channel.writer.notify();
        }
    }

    /// Takes an empty buffer, claimed; false if there is none for this lane.
    fn take(&mut self) -> bool {
        if self.must_leave_rest() {
            return false;
        }
        let Some(index) = self.channel.pool.empties.pop() else { return false };
        let Some(words) = self.channel.pool.words_of(index) else { return false };
        self.current = Current::fresh(self.current.number() + 1, index);
        self.free = Free { next: words, count: self.channel.pool.buffer_words };
        self.reserved = 0;
        self.store();
        self.hold = Hold::Claimed;
        true
    }

    /// Whether the last empty buffers are for others.
    ///
    /// The writer may have to hold up a lane until it sees an event of another
    /// one. If the lane held up could take the whole pool meanwhile, the other
    /// could not write that event.
    fn must_leave_rest(&self) -> bool {
        let pool = &self.channel.pool;
        let read = self.slot().map_or(0, |lane| lane.finished.load(Ordering::Relaxed));
        read < self.current.number()
            && self.channel.used.load(Ordering::Relaxed) > 1
            && pool.reserve() > 0
            && pool.empties.len() <= pool.reserve()
    }

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
