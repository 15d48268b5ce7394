//! Which addresses are loaded bytecode.
//!
//! Walks look up, inside hooks and in several domains at a time, every word of a stack
//! that might be a return address. So a lookup takes no lock: there are two tables, of
//! which one is read while the other is rewritten. A version counts the changes, and its
//! lowest bit selects the table. A reader that finds the version changed tries again: a
//! seqlock over two copies, in which the table that is read is never half written unless
//! two changes come during one lookup.
//!
//! If nothing is loaded, a lookup is one load and one comparison. Only the holder of the
//! lock in `loaded` changes anything.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};

use crate::sys::memory::{MappedArray, Zeroable};

/// A piece of code: addresses from `start` to before `end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) start: usize,
    pub(super) end: usize,
    /// The code of a frame at its start.
    pub(super) code: u64,
}

/// A range in a table that another thread may be reading.
#[derive(Default)]
struct Entry {
    start: AtomicUsize,
    end: AtomicUsize,
    code: AtomicU64,
}

// SAFETY: atomic zeros, which need no drop.
unsafe impl Zeroable for Entry {}

impl Entry {
    fn get(&self) -> Range {
        Range {
            start: self.start.load(Ordering::Relaxed),
            end: self.end.load(Ordering::Relaxed),
            code: self.code.load(Ordering::Relaxed),
        }
    }

    fn set(&self, range: Range) {
        self.start.store(range.start, Ordering::Relaxed);
        self.end.store(range.end, Ordering::Relaxed);
        self.code.store(range.code, Ordering::Relaxed);
    }
}

/// Ranges by address, none of which overlap.
struct Side {
    entries: MappedArray<Entry>,
    count: AtomicUsize,
}

impl Side {
    fn new(capacity: usize) -> Option<Side> {
        Some(Side { entries: MappedArray::new(capacity)?, count: AtomicUsize::new(0) })
    }

    fn ranges(&self) -> impl Iterator<Item = Range> + '_ {
        self.entries.iter().take(self.count.load(Ordering::Relaxed)).map(Entry::get)
    }

    /// Terminates even while another thread changes the entries. Then the result may be
    /// wrong, and the caller discards it when the version has changed.
    fn find(&self, address: usize) -> Option<u64> {
        let (mut low, mut high) = (0, self.count.load(Ordering::Relaxed));
        while low < high {
            let middle = low + (high - low) / 2;
            let range = self.entries.get(middle)?.get();
            if address < range.start {
                high = middle;
            } else if address < range.end {
                return Some(range.code.wrapping_add((address - range.start) as u64));
            } else {
                low = middle + 1;
            }
        }
        None
    }

    /// Replaces its ranges by these; false if there are too many.
    fn fill(&self, ranges: impl Iterator<Item = Range>) -> bool {
        let mut count = 0;
        for range in ranges {
            let Some(entry) = self.entries.get(count) else { return false };
            entry.set(range);
            count += 1;
        }
        self.count.store(count, Ordering::Relaxed);
        true
    }
}

/// The two tables.
pub(super) struct Ranges {
    sides: [Side; 2],
    /// Counts changes; its lowest bit is the side in use.
    version: AtomicUsize,
}

impl Ranges {
    /// How often a lookup is tried. It is repeated only if code was loaded meanwhile, and
    /// no program loads code this often during one lookup.
    const TRIES: usize = 64;

    /// No ranges; `None` if there is no memory.
    pub(super) fn new(capacity: usize) -> Option<Ranges> {
        let sides = [Side::new(capacity)?, Side::new(capacity)?];
        Some(Ranges { sides, version: AtomicUsize::new(0) })
    }

    fn side(&self, version: usize) -> &Side {
        let [even, odd] = &self.sides;
        if version & 1 == 0 { even } else { odd }
    }

    /// The code of a frame with this return address, if it is in a range.
    pub(super) fn find(&self, address: usize) -> Option<u64> {
        for _ in 0..Self::TRIES {
            let version = self.version.load(Ordering::Acquire);
            let found = self.side(version).find(address);
            // A reader that has seen a word written for the next version but one also
            // sees the next version: the other fence is in `change`.
            fence(Ordering::Acquire);
            if self.version.load(Ordering::Relaxed) == version {
                return found;
            }
        }
        None
    }

    /// Adds a range in place of all that it overlaps; false, and nothing is changed, if
    /// there is no room. One caller at a time.
    pub(super) fn add(&self, new: Range) -> bool {
        self.change(|old| {
            let before = old.ranges().filter(move |range| range.end <= new.start);
            let after = old.ranges().filter(move |range| range.start >= new.end);
            before.chain(std::iter::once(new)).chain(after)
        })
    }

    /// Removes the range that begins there. One caller at a time.
    pub(super) fn remove(&self, start: usize) {
        self.change(|old| old.ranges().filter(move |range| range.start != start));
    }

    fn change<'a, I: Iterator<Item = Range> + 'a>(
        &'a self,
        others: impl FnOnce(&'a Side) -> I,
    ) -> bool {
        let version = self.version.load(Ordering::Relaxed);
        // See `find`.
        fence(Ordering::Release);
        let next = version.wrapping_add(1);
        let fits = self.side(next).fill(others(self.side(version)));
        if fits {
            self.version.store(next, Ordering::Release);
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use proptest::prelude::*;

    use super::*;

    fn range(start: usize, end: usize, code: u64) -> Range {
        Range { start, end, code }
    }

    #[test]
    fn codes_go_on_from_the_code_of_the_start() {
        let ranges = Ranges::new(8).unwrap();
        assert!(ranges.add(range(100, 110, 1_000)));
        assert_eq!(ranges.find(99), None);
        assert_eq!(ranges.find(100), Some(1_000));
        assert_eq!(ranges.find(109), Some(1_009));
        assert_eq!(ranges.find(110), None);
        ranges.remove(100);
        assert_eq!(ranges.find(105), None);
    }

    #[test]
    fn a_table_that_is_full_stays_as_it_is() {
        let ranges = Ranges::new(1).unwrap();
        let room = ranges.sides[0].entries.len();
        for index in 0..room {
            assert!(ranges.add(range(index * 10, index * 10 + 10, index as u64 * 100)));
        }
        assert!(!ranges.add(range(room * 10, room * 10 + 10, 1)));
        assert_eq!(ranges.find(room * 10), None);
        assert_eq!(ranges.find(5), Some(5));
    }

    proptest! {
        /// As a list says in which the newest comes first.
        #[test]
        fn the_newest_range_is_found(
            changes in prop::collection::vec((0usize..200, 1usize..40, any::<bool>()), 1..60),
        ) {
            let ranges = Ranges::new(256).unwrap();
            let mut list: Vec<Range> = Vec::new();
            for (number, &(start, length, adds)) in changes.iter().enumerate() {
                if adds {
                    let new = range(start, start + length, (number as u64 + 1) << 32);
                    list.retain(|old| old.end <= new.start || old.start >= new.end);
                    list.push(new);
                    prop_assert!(ranges.add(new));
                } else {
                    list.retain(|old| old.start != start);
                    ranges.remove(start);
                }
                for address in 0..250 {
                    let oracle = list
                        .iter()
                        .find(|range| (range.start..range.end).contains(&address))
                        .map(|range| range.code + (address - range.start) as u64);
                    prop_assert_eq!(ranges.find(address), oracle);
                }
            }
        }
    }

    /// One thread loads and releases at the same address, in front of and behind
    /// what stays; others ask meanwhile.
    #[test]
    fn what_stays_is_found_while_others_come_and_go() {
        let ranges = Ranges::new(64).unwrap();
        let stays = range(1_000, 1_100, 7_000);
        assert!(ranges.add(stays));
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        assert_eq!(ranges.find(1_050), Some(7_050));
                        assert_eq!(ranges.find(2_500), None);
                        let found = ranges.find(10);
                        assert!(found.is_none_or(|code| code % 100 == 10 && code >= 10_000));
                    }
                });
            }
            for round in 0..2_000u64 {
                assert!(ranges.add(range(0, 50, 10_000 + round * 100)));
                assert!(ranges.add(range(2_000, 2_100, 50)));
                ranges.remove(0);
                ranges.remove(2_000);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
