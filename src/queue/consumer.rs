//! The writer's end of all lanes.
#![allow(unsafe_code, reason = "reads committed words of shared buffers")]

use super::channel::{Channel, MAX_LANES};
use super::current_buffer::CurrentBuffer;
use super::pool::{BUFFER_WORDS, FullBuffer, Pool, WordRange};
use super::sync::{Ordering, Ticket};
use crate::sys::memory::{MappedArray, Zeroable};
use core::cmp::Ordering::{Equal, Greater, Less};
use core::time::Duration;
use std::sync::Arc;

/// The consumer's position in a lane. All zero is the beginning.
struct Cursor {
    /// The sequence number of the last buffer that was read and recycled. The next
    /// one is being read.
    finished: u64,
    /// How many words of that next buffer were consumed.
    offset: usize,
    /// The lane's full buffers that are not recycled yet, oldest first: a list through
    /// `Consumer::links`. An index plus one; 0 for none.
    first: u32,
    last: u32,
}

// SAFETY: all fields are integers, for which zero is valid and which need no drop.
unsafe impl Zeroable for Cursor {}

/// An entry of a cursor's list.
struct Link {
    /// The buffer's final length.
    committed: usize,
    /// The next buffer's index plus one; 0 for none.
    next: u32,
}

// SAFETY: all fields are integers, for which zero is valid and which need no drop.
unsafe impl Zeroable for Link {}

/// Reads all lanes. There is one per channel.
pub(crate) struct Consumer {
    channel: Arc<Channel>,
    /// By lane.
    cursors: MappedArray<Cursor>,
    /// By buffer index.
    links: MappedArray<Link>,
}

impl Channel {
    /// A channel with `buffers` buffers of [`BUFFER_WORDS`] words, and its only
    /// consumer. `None` without memory, or if `buffers` is 0 or above 65,536.
    pub(crate) fn new(buffers: usize) -> Option<(Arc<Self>, Consumer)> {
        Self::with_buffer_words(buffers, BUFFER_WORDS)
    }

    /// Like [`new`](Self::new), with buffers of another size: at most 16,383 words.
    pub(crate) fn with_buffer_words(
        buffers: usize,
        buffer_words: usize,
    ) -> Option<(Arc<Self>, Consumer)> {
        let channel = Arc::new(Self::with_pool(Pool::new(buffers, buffer_words)?)?);
        let cursors = MappedArray::new(MAX_LANES)?;
        let links = MappedArray::new(buffers)?;
        let consumer = Consumer { channel: Arc::clone(&channel), cursors, links };
        Some((channel, consumer))
    }
}

impl Consumer {
    /// Lanes below this number may have words.
    pub(crate) fn lanes(&self) -> usize {
        self.channel.used.load(Ordering::Acquire)
    }

    /// Committed words of `lane` that were not consumed, in order. There may be more
    /// after them; empty means that there are none now. If the caller consumes whole
    /// records, these are whole records.
    pub(crate) fn peek(&mut self, lane: usize) -> &[u64] {
        match self.next_unread(lane) {
            None => &[],
            // SAFETY: `next_unread` loaded the committed length with acquire order, from
            // the lane's word or through the queue of full buffers. Recycling the buffer
            // takes `&mut self`, which the slice borrows.
            Some(range) => unsafe { self.channel.pool.words(range) },
        }
    }

    /// Consumes the first `words` words of what [`peek`](Self::peek) returned. Recycles
    /// a full buffer that is read to its end.
    pub(crate) fn consume(&mut self, lane: usize, words: usize) {
        let Some(unread) = self.next_unread(lane) else {
            debug_assert!(words == 0, "{words} words consumed of none");
            return;
        };
        debug_assert!(words <= unread.count, "{words} words consumed of {}", unread.count);
        let count = words.min(unread.count);
        self.channel.pool.note_read(WordRange { count, ..unread });
        self.cursors[lane].offset += count;
        self.recycle_read(lane);
    }

    /// If the pool runs low, takes the buffers of idle lanes that are read to their
    /// end. Pinned lanes keep theirs. Returns how many it took. Call it once per round.
    pub(crate) fn reclaim(&mut self) -> usize {
        self.accept_full();
        if self.channel.pool.free.len() > self.channel.pool.low_mark() {
            return 0;
        }
        (self.channel.pool.pinned_lanes()..self.lanes())
            .filter(|&lane| self.reclaim_lane(lane))
            .count()
    }

    /// Take a ticket before reading the lanes, and [`wait`](Self::wait) with it.
    pub(crate) fn ticket(&self) -> Ticket {
        self.channel.writer_wakeup.ticket()
    }

    /// Sleeps until the writer is woken or `timeout` has passed. Returns at once if the
    /// writer was woken since `ticket`.
    pub(crate) fn wait(&self, ticket: Ticket, timeout: Duration) {
        self.channel.writer_wakeup.wait(ticket, timeout);
    }

    /// The words to read next in `lane`. Never an empty range.
    fn next_unread(&mut self, lane: usize) -> Option<WordRange> {
        if lane >= self.cursors.len() {
            return None;
        }
        loop {
            if let Some(range) = self.unread_in_full(lane) {
                return Some(range);
            }
            if self.accept_full() {
                continue;
            }
            let cursor = &self.cursors[lane];
            let current = self.current(lane);
            match current.sequence().cmp(&(cursor.finished + 1)) {
                // The expected buffer was pushed after `accept_full` and before this
                // word was stored.
                Greater => {}
                Equal => {
                    let (from, to) = (cursor.offset, current.committed());
                    let range = || WordRange { index: current.index(), from, count: to - from };
                    return (from < to).then(range);
                }
                // The word still names the buffer that was recycled last.
                Less => return None,
            }
        }
    }

    /// The unread words of the lane's oldest full buffer.
    fn unread_in_full(&mut self, lane: usize) -> Option<WordRange> {
        self.recycle_read(lane);
        let cursor = &self.cursors[lane];
        let index = cursor.first.checked_sub(1)?;
        let (from, to) = (cursor.offset, self.links[index as usize].committed);
        Some(WordRange { index: index as u16, from, count: to - from })
    }

    /// Empties the queue of full buffers into the lanes' lists. Returns whether there
    /// were any.
    fn accept_full(&mut self) -> bool {
        let mut any = false;
        while let Some(full) = self.channel.pool.full.pop() {
            self.append(full);
            any = true;
        }
        any
    }

    /// Appends a buffer to its lane's list. One thread at a time pushes the buffers of a
    /// lane, so they arrive in order.
    fn append(&mut self, FullBuffer { lane, current }: FullBuffer) {
        let index = usize::from(current.index());
        self.links[index] = Link { committed: current.committed(), next: 0 };
        let link = u32::from(current.index()) + 1;
        let cursor = &mut self.cursors[usize::from(lane)];
        if cursor.first == 0 {
            debug_assert_eq!(current.sequence(), cursor.finished + 1, "a buffer is missing");
            cursor.first = link;
        } else {
            self.links[cursor.last as usize - 1].next = link;
        }
        cursor.last = link;
    }

    /// Recycles the full buffers of `lane` that are read to their end.
    fn recycle_read(&mut self, lane: usize) {
        let cursor = &mut self.cursors[lane];
        while let Some(index) = cursor.first.checked_sub(1) {
            let link = &self.links[index as usize];
            if cursor.offset < link.committed {
                return;
            }
            cursor.first = link.next;
            cursor.finished += 1;
            cursor.offset = 0;
            self.channel.lanes[lane].finished.store(cursor.finished, Ordering::Relaxed);
            self.channel.pool.free.push(index as u16);
            self.channel.buffer_freed.notify();
        }
    }

    /// Claims the lane's current buffer if it is unclaimed, the next to read, and read
    /// to its end. From then on it counts as handed over, and is recycled.
    fn reclaim_lane(&mut self, lane: usize) -> bool {
        let cursor = &self.cursors[lane];
        let current = self.current(lane);
        if cursor.first != 0
            || current.is_claimed()
            || current.sequence() != cursor.finished + 1
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
            self.append(FullBuffer { lane: lane as u16, current });
            self.recycle_read(lane);
        }
        claimed
    }

    fn current(&self, lane: usize) -> CurrentBuffer {
        CurrentBuffer::from_word(self.channel.lanes[lane].current.load(Ordering::Acquire))
    }
}
