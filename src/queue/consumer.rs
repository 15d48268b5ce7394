//! The writer's end of all lanes.
#![allow(unsafe_code, reason = "reads committed words of shared buffers")]

use super::channel::{Channel, MAX_LANES};
use super::current::Current;
use super::pool::Handed;
use super::sync::{Ordering, Ticket};
use crate::sys::memory::{MappedArray, Zeroable};
use core::cmp::Ordering::{Equal, Greater, Less};
use core::time::Duration;
use std::sync::Arc;

/// Where the consumer is in a lane. All zero is the beginning.
struct Cursor {
    /// The number of the last buffer that is read and recycled; the next one is
    /// being read.
    finished: u64,
    /// Words of the next buffer that were consumed.
    offset: usize,
    /// Buffers that were handed over and not finished, oldest first: a list
    /// through `Consumer::handed`, of indices plus one; 0 ends it.
    first: u32,
    last: u32,
}

// SAFETY: numbers only.
unsafe impl Zeroable for Cursor {}

/// A buffer in a cursor's list.
struct Link {
    committed: usize,
    /// Index plus one of the next; 0 for none.
    next: u32,
}

// SAFETY: numbers only.
unsafe impl Zeroable for Link {}

/// A run of committed words.
#[derive(Clone, Copy)]
struct Unread {
    index: u16,
    from: usize,
    count: usize,
}

/// Reads all lanes; there is one per channel.
pub(crate) struct Consumer {
    channel: Arc<Channel>,
    /// By lane.
    cursors: MappedArray<Cursor>,
    /// By buffer.
    handed: MappedArray<Link>,
}

impl Consumer {
    pub(super) fn new(channel: Arc<Channel>) -> Option<Self> {
        let handed = MappedArray::new(channel.pool.buffers)?;
        Some(Self { channel, cursors: MappedArray::new(MAX_LANES)?, handed })
    }

    /// Lanes that may have words: those from 0 to this, exclusive.
    pub(crate) fn lanes(&self) -> usize {
        self.channel.used.load(Ordering::Acquire)
    }

    /// Committed words of `lane` that were not consumed, in order. Not
    /// necessarily all: empty means none now. Whole records only, as long as
    /// whole records are consumed.
    pub(crate) fn peek(&mut self, lane: usize) -> &[u64] {
        match self.find(lane) {
            None => &[],
            // SAFETY: `find` acquired the committed length that covers these
            // words; they are not written again before the buffer is recycled,
            // which takes `&mut self`.
            Some(Unread { index, from, count }) => unsafe {
                self.channel.pool.to_read(index, from, count)
            },
        }
    }

    /// Marks the first `words` of what [`peek`](Self::peek) gave as done. A
    /// handed-over buffer that is done goes back to the pool.
    pub(crate) fn consume(&mut self, lane: usize, words: usize) {
        let Some(Unread { index, from, count }) = self.find(lane) else {
            debug_assert!(words == 0, "{words} words consumed of none");
            return;
        };
        debug_assert!(words <= count, "{words} words consumed of {count}");
        self.channel.pool.have_read(index, from, words.min(count));
        self.cursors[lane].offset += words.min(count);
        self.finish_read(lane);
    }

    /// When the pool runs low, takes the buffers of idle lanes that are read to
    /// their end, but for those that keep theirs. Returns how many. Call it once
    /// per round.
    pub(crate) fn reclaim(&mut self) -> usize {
        self.collect();
        if self.channel.pool.empties.len() > self.channel.pool.quarter() {
            return 0;
        }
        (self.channel.pool.settled_lanes()..self.lanes())
            .filter(|&lane| self.reclaim_lane(lane))
            .count()
    }

    /// Take it before looking at the lanes, and [`wait`](Self::wait) with it.
    pub(crate) fn ticket(&self) -> Ticket {
        self.channel.writer.ticket()
    }

    /// Sleeps until the writer is woken, was since `ticket`, or `timeout` is over.
    pub(crate) fn wait(&self, ticket: Ticket, timeout: Duration) {
        self.channel.writer.wait(ticket, timeout);
    }

    /// The words to read next in `lane`, never an empty run.
    fn find(&mut self, lane: usize) -> Option<Unread> {
        if lane >= self.cursors.len() {
            return None;
        }
        loop {
            if let Some(handed) = self.find_handed(lane) {
                return Some(handed);
            }
            if self.collect() {
                continue;
            }
            let cursor = &self.cursors[lane];
            let current = self.current(lane);
            match current.number().cmp(&(cursor.finished + 1)) {
                // It was handed over after we collected, and before this word.
                Greater => {}
                Equal => {
                    let (from, to) = (cursor.offset, current.committed());
                    return (from < to).then(|| Unread {
                        index: current.index(),
                        from,
                        count: to - from,
                    });
                }
                // Nothing since the last one, which is recycled.
                Less => return None,
            }
        }
    }

    fn find_handed(&mut self, lane: usize) -> Option<Unread> {
        self.finish_read(lane);
        let cursor = &self.cursors[lane];
        let index = cursor.first.checked_sub(1)?;
        let (from, to) = (cursor.offset, self.handed[index as usize].committed);
        Some(Unread { index: index as u16, from, count: to - from })
    }

    /// Distributes what was handed over to the lanes; whether there was any.
    fn collect(&mut self) -> bool {
        let mut any = false;
        while let Some(handed) = self.channel.pool.fulls.pop() {
            self.append(handed);
            any = true;
        }
        any
    }

    /// A lane's buffers are pushed by one thread at a time, so they come in order.
    fn append(&mut self, Handed { lane, current }: Handed) {
        let index = usize::from(current.index());
        self.handed[index] = Link { committed: current.committed(), next: 0 };
        let link = u32::from(current.index()) + 1;
        let cursor = &mut self.cursors[usize::from(lane)];
        if cursor.first == 0 {
            debug_assert_eq!(current.number(), cursor.finished + 1, "a buffer is missing");
            cursor.first = link;
        } else {
            self.handed[cursor.last as usize - 1].next = link;
        }
        cursor.last = link;
    }

    /// Recycles the handed-over buffers of `lane` that are read to their end.
    fn finish_read(&mut self, lane: usize) {
        let cursor = &mut self.cursors[lane];
        while let Some(index) = cursor.first.checked_sub(1) {
            let link = &self.handed[index as usize];
            if cursor.offset < link.committed {
                return;
            }
            cursor.first = link.next;
            cursor.finished += 1;
            cursor.offset = 0;
            self.channel.lanes[lane].finished.store(cursor.finished, Ordering::Relaxed);
            self.channel.pool.empties.push(index as u16);
            self.channel.room.notify();
        }
    }

    /// Claims the lane's buffer if its producer has not, and it is the next to
    /// read and read to its end. From then on it is as if handed over.
    fn reclaim_lane(&mut self, lane: usize) -> bool {
        let cursor = &self.cursors[lane];
        let current = self.current(lane);
        if cursor.first != 0
            || current.is_claimed()
            || current.number() != cursor.finished + 1
            || current.committed() != cursor.offset
        {
            return false;
        }
        let claimed = self.channel.lanes[lane]
            .current
            .compare_exchange(
                current.word(),
                current.claimed().word(),
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok();
        if claimed {
            self.append(Handed { lane: lane as u16, current });
            self.finish_read(lane);
        }
        claimed
    }

    fn current(&self, lane: usize) -> Current {
        Current::from_word(self.channel.lanes[lane].current.load(Ordering::Acquire))
    }
}
