//! The free buffers, last in, first out: the buffer that was freed last is the most
//! likely to be in the cache.
//!
//! A lock-free stack of indices (R. K. Treiber, *Systems Programming: Coping with
//! Parallelism*, IBM, 1986). Its head is one word with the top index, the number of
//! entries, and a change count against the ABA problem: a compare-exchange fails if
//! the head has changed, even if the same index is on top again. The change count
//! wraps after 2^31 changes, which would all have to happen between a thread's load
//! and its compare-exchange.
//!
//! Any thread may push and pop. No malloc.

use super::sync::{AtomicU64, Ordering};

/// `changes:31 | count:17 | top:16`. The top is meaningless if the count is 0.
#[derive(Clone, Copy)]
struct Head(u64);

const COUNT_SHIFT: u32 = 16;
const CHANGES_SHIFT: u32 = 33;

impl Head {
    fn new(changes: u64, count: u64, top: u16) -> Self {
        Self(changes << CHANGES_SHIFT | count << COUNT_SHIFT | u64::from(top))
    }

    fn changes(self) -> u64 {
        self.0 >> CHANGES_SHIFT
    }

    fn count(self) -> u64 {
        (self.0 >> COUNT_SHIFT) & 0x1_FFFF
    }

    fn top(self) -> u16 {
        self.0 as u16
    }
}

pub(super) struct FreeList {
    head: AtomicU64,
    /// By buffer index: the index below it. Meaningful only while the buffer is in
    /// the list; written only by the thread that pushes the buffer.
    below: Box<[AtomicU64]>,
}

impl FreeList {
    /// The indices 0 to `count` − 1, with 0 on top. `count` is at most 65,536.
    pub(super) fn full(count: usize) -> Self {
        let below = (1..=count as u64).map(AtomicU64::new).collect();
        Self { head: AtomicU64::new(Head::new(0, count as u64, 0).0), below }
    }

    /// Removes the top index.
    pub(super) fn pop(&self) -> Option<u16> {
        let mut head = Head(self.head.load(Ordering::Acquire));
        loop {
            let left = head.count().checked_sub(1)?;
            // May be stale if the head has changed since; then the exchange fails.
            let below = self.below.get(usize::from(head.top()))?.load(Ordering::Relaxed);
            let next = Head::new(head.changes() + 1, left, below as u16);
            match self.change(head, next, Ordering::Acquire) {
                Ok(()) => return Some(head.top()),
                Err(now) => head = now,
            }
        }
    }

    /// Adds an index that is not in the list.
    pub(super) fn push(&self, index: u16) {
        let Some(below) = self.below.get(usize::from(index)) else { return };
        let mut head = Head(self.head.load(Ordering::Relaxed));
        loop {
            below.store(u64::from(head.top()), Ordering::Relaxed);
            let next = Head::new(head.changes() + 1, head.count() + 1, index);
            match self.change(head, next, Ordering::Release) {
                Ok(()) => return,
                Err(now) => head = now,
            }
        }
    }

    fn change(&self, from: Head, to: Head, order: Ordering) -> Result<(), Head> {
        let changed = self.head.compare_exchange(from.0, to.0, order, Ordering::Acquire);
        changed.map(drop).map_err(Head)
    }

    /// How many buffers are free. Always 0 under loom: the answer only decides who is
    /// woken and when buffers are reclaimed, and a load would multiply the
    /// interleavings.
    pub(super) fn len(&self) -> usize {
        if cfg!(loom) { 0 } else { Head(self.head.load(Ordering::Relaxed)).count() as usize }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn last_in_is_first_out() {
        let free = FreeList::full(3);
        assert_eq!(free.len(), 3);
        assert_eq!([(); 4].map(|()| free.pop()), [Some(0), Some(1), Some(2), None]);
        free.push(1);
        free.push(2);
        assert_eq!(free.pop(), Some(2));
        free.push(0);
        assert_eq!([(); 3].map(|()| free.pop()), [Some(0), Some(1), None]);
        assert_eq!(free.len(), 0);
    }

    #[test]
    fn it_holds_the_most_buffers_there_can_be() {
        let free = FreeList::full(1 << 16);
        assert_eq!(free.len(), 1 << 16);
        let taken: Vec<_> = std::iter::from_fn(|| free.pop()).collect();
        assert!(taken.iter().copied().eq(0..=u16::MAX));
        taken.iter().rev().for_each(|&index| free.push(index));
        assert_eq!((free.len(), free.pop()), (1 << 16, Some(0)));
    }

    #[test]
    fn the_change_count_wraps() {
        let free = FreeList::full(2);
        free.head.store(Head::new((1 << 31) - 1, 2, 0).0, Ordering::Relaxed);
        assert_eq!(free.pop(), Some(0));
        assert_eq!((free.len(), free.pop(), free.pop()), (1, Some(1), None));
    }
}

#[cfg(all(test, loom))]
mod interleavings {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn no_index_is_popped_twice() {
        loom::model(|| {
            let free = Arc::new(FreeList::full(3));
            let other = Arc::clone(&free);
            // The ABA case: pops two and pushes the first again, so that the top is
            // the same with another index below it.
            let worker = loom::thread::spawn(move || {
                let first = other.pop();
                let second = other.pop();
                first.into_iter().for_each(|index| other.push(index));
                second
            });
            let mine = free.pop();
            let mut all: Vec<_> = mine.into_iter().chain(worker.join().unwrap()).collect();
            all.extend(std::iter::from_fn(|| free.pop()));
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2]);
        });
    }
}
