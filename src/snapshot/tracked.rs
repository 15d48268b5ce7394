//! The blocks that a trace tracks, as the walk finds them.
//!
//! Where the heap is walked, a block has a number. Only the trace's writer knows which id it
//! has in the trace, and it is not there in a copy of the process. So numbers are passed back
//! in shared memory.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::sys::shared_memory::SharedArray;

/// More blocks than this are left out. The snapshot says how many.
const MOST: usize = 4 << 20;

/// Addresses and numbers.
pub(super) struct TrackedList {
    /// How many pairs there are, then the pairs.
    words: SharedArray<AtomicU64>,
}

impl TrackedList {
    /// `None` if there is no memory.
    pub(super) fn new() -> Option<TrackedList> {
        TrackedList::with_room(MOST)
    }

    fn with_room(pairs: usize) -> Option<TrackedList> {
        Some(TrackedList { words: SharedArray::new(1 + 2 * pairs)? })
    }

    fn parts(&self) -> Option<(&AtomicU64, &[AtomicU64])> {
        self.words.split_first()
    }

    /// Adds a pair. False if there is no room. One thread at a time.
    pub(super) fn push(&self, address: u64, number: u64) -> bool {
        let Some((count, pairs)) = self.parts() else { return false };
        let at = count.load(Ordering::Relaxed) as usize;
        let Some([first, second]) = pairs.get(2 * at..2 * at + 2) else { return false };
        first.store(address, Ordering::Relaxed);
        second.store(number, Ordering::Relaxed);
        count.store(at as u64 + 1, Ordering::Release);
        true
    }

    /// All pairs. After the walk.
    pub(super) fn pairs(&self) -> Vec<(u64, u64)> {
        let Some((count, pairs)) = self.parts() else { return Vec::new() };
        let count = (count.load(Ordering::Acquire) as usize).min(MOST);
        let pair = |pair: &[AtomicU64]| match pair {
            [first, second] => (first.load(Ordering::Relaxed), second.load(Ordering::Relaxed)),
            _ => (0, 0),
        };
        pairs.chunks(2).take(count).map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_passed_on_in_order() {
        let list = TrackedList::new().unwrap();
        assert!(list.pairs().is_empty());
        assert!((0..3).all(|index| list.push(8 * index, index)));
        assert_eq!(list.pairs(), [(0, 0), (8, 1), (16, 2)]);
    }

    #[test]
    fn what_has_no_room_is_refused() {
        let list = TrackedList::with_room(2).unwrap();
        let taken: Vec<bool> = (0..4).map(|index| list.push(8 * index, index)).collect();
        assert_eq!(taken, [true, true, false, false]);
        assert_eq!(list.pairs(), [(0, 0), (8, 1)]);
    }
}
