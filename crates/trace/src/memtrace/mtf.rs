//! A move-to-front table of 31 entries: recently used names have small codes.
//!
//! The encoder and the decoder apply the same moves and so agree on every
//! code. Source: the format's location event, see `docs/format.md`.

use crate::memtrace::rules::MTF_LEN;

/// Entries in order of last use.
pub(crate) struct MoveToFront<T> {
    /// At most [`MTF_LEN`]. The first `live` are the table; the entries of a
    /// cleared table stay after them so that their memory is reused.
    entries: Vec<T>,
    live: usize,
}

impl<T> Default for MoveToFront<T> {
    fn default() -> Self {
        MoveToFront::new()
    }
}

impl<T> MoveToFront<T> {
    pub(crate) const fn new() -> Self {
        MoveToFront { entries: Vec::new(), live: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.live
    }

    /// Moves entry `code` to the front; `None` where there is no such entry.
    pub(crate) fn touch(&mut self, code: usize) -> Option<&mut T> {
        let moved = self.entries.get_mut(..self.live)?.get_mut(..=code)?;
        if code > 0 {
            moved.rotate_right(1);
        }
        self.entries.first_mut()
    }

    pub(crate) fn position(&self, same: impl FnMut(&T) -> bool) -> Option<usize> {
        self.entries.get(..self.live)?.iter().position(same)
    }

    /// Inserts a new entry at the front. `make` gets an entry to reuse if there is
    /// one: the evicted one of a full table, or one from before the table was
    /// cleared.
    pub(crate) fn push(&mut self, make: impl FnOnce(Option<T>) -> T) -> Option<&mut T> {
        let full = self.live == MTF_LEN;
        let spare = if full || self.live < self.entries.len() { self.entries.pop() } else { None };
        if self.entries.capacity() < MTF_LEN {
            self.entries.reserve_exact(MTF_LEN - self.entries.len());
        }
        self.entries.insert(0, make(spare));
        self.live = (self.live + 1).min(MTF_LEN);
        self.entries.first_mut()
    }

    pub(crate) fn clear(&mut self) {
        self.live = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_used_come_first_and_the_oldest_falls_out() {
        let mut table = MoveToFront::new();
        for name in 0..MTF_LEN {
            table.push(|evicted| {
                assert_eq!(evicted, None);
                name
            });
        }
        assert_eq!(table.touch(30).copied(), Some(0));
        assert_eq!(table.position(|&n| n == 30), Some(1));
        let mut out = None;
        table.push(|evicted| {
            out = evicted;
            99
        });
        assert_eq!(out, Some(1));
        assert_eq!(table.len(), MTF_LEN);
        assert_eq!(table.touch(MTF_LEN), None);
    }

    #[test]
    fn a_cleared_table_knows_nothing_and_reuses_everything() {
        let mut table = MoveToFront::new();
        for name in 0..5 {
            table.push(|_| name);
        }
        table.clear();
        assert_eq!(table.touch(0), None);
        assert_eq!(table.position(|_| true), None);
        for name in 10..15 {
            table.push(|spare| {
                assert!(spare.is_some());
                name
            });
        }
        assert_eq!(table.position(|&n| n == 10), Some(4));
        table.push(|spare| {
            assert_eq!(spare, None);
            15
        });
        assert_eq!(table.len(), 6);
    }
}
