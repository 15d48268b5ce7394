//! The buffers that nobody uses. The one that came back last goes out first: it
//! was touched before, and may still be in the cache.
//!
//! A stack of numbers after Treiber (*Systems Programming: Coping with
//! Parallelism*, 1986). Its head is one word: how many there are, which is on top,
//! and how often it was changed, by which a compare-exchange tells a head from an
//! earlier one with the same top. That count begins anew after 2^31 changes, which
//! a thread would have to sleep through between two instructions.
//!
//! Any thread: lock-free, no malloc.

use super::sync::{AtomicU64, Ordering};

/// `changes:31 | count:17 | top:16`; the top means nothing when the count is 0.
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

pub(super) struct Empties {
    head: AtomicU64,
    /// By buffer: which one lies below it. Read only while it is on top, and
    /// written only by who puts it there.
    below: Box<[AtomicU64]>,
}

impl Empties {
    /// All numbers below `count`, at most 65,536, the first on top.
    pub(super) fn all(count: usize) -> Self {
        let below = (1..=count as u64).map(AtomicU64::new).collect();
        Self { head: AtomicU64::new(Head::new(0, count as u64, 0).0), below }
    }

    /// Takes the one on top.
    pub(super) fn pop(&self) -> Option<u16> {
        let mut head = Head(self.head.load(Ordering::Acquire));
        loop {
            let left = head.count().checked_sub(1)?;
            // Of a head that is no longer, this may be wrong; then it is not used.
            let below = self.below.get(usize::from(head.top()))?.load(Ordering::Relaxed);
            let next = Head::new(head.changes() + 1, left, below as u16);
            match self.change(head, next, Ordering::Acquire) {
                Ok(()) => return Some(head.top()),
                Err(now) => head = now,
            }
        }
    }

    /// Puts one on top, which is not there.
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

    /// How many there are. Loom does not look: what is decided by it changes only
    /// who is woken.
    pub(super) fn len(&self) -> usize {
        if cfg!(loom) { 0 } else { Head(self.head.load(Ordering::Relaxed)).count() as usize }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn the_last_to_come_is_the_first_to_go() {
        let empties = Empties::all(3);
        assert_eq!(empties.len(), 3);
        assert_eq!([(); 4].map(|()| empties.pop()), [Some(0), Some(1), Some(2), None]);
        empties.push(1);
        empties.push(2);
        assert_eq!(empties.pop(), Some(2));
        empties.push(0);
        assert_eq!([(); 3].map(|()| empties.pop()), [Some(0), Some(1), None]);
        assert_eq!(empties.len(), 0);
    }

    #[test]
    fn it_holds_as_many_as_there_can_be() {
        let empties = Empties::all(1 << 16);
        assert_eq!(empties.len(), 1 << 16);
        let taken: Vec<_> = std::iter::from_fn(|| empties.pop()).collect();
        assert!(taken.iter().copied().eq(0..=u16::MAX));
        taken.iter().rev().for_each(|&index| empties.push(index));
        assert_eq!((empties.len(), empties.pop()), (1 << 16, Some(0)));
    }

    #[test]
    fn the_count_of_changes_begins_anew() {
        let empties = Empties::all(2);
        empties.head.store(Head::new((1 << 31) - 1, 2, 0).0, Ordering::Relaxed);
        assert_eq!(empties.pop(), Some(0));
        assert_eq!((empties.len(), empties.pop(), empties.pop()), (1, Some(1), None));
    }
}

/// Whatever threads do, each number is in one place.
#[cfg(all(test, loom))]
mod interleavings {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn no_number_is_given_out_twice() {
        loom::model(|| {
            let empties = Arc::new(Empties::all(3));
            let other = Arc::clone(&empties);
            // Takes two and puts back the first: what another saw on top is on top
            // again, with something else below.
            let worker = loom::thread::spawn(move || {
                let first = other.pop();
                let second = other.pop();
                first.into_iter().for_each(|index| other.push(index));
                second
            });
            let mine = empties.pop();
            let mut all: Vec<_> = mine.into_iter().chain(worker.join().unwrap()).collect();
            all.extend(std::iter::from_fn(|| empties.pop()));
            all.sort_unstable();
            assert_eq!(all, [0, 1, 2]);
        });
    }
}
