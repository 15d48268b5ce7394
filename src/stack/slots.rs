//! A hash table of fixed size from return addresses to steps. Any thread reads it and
//! adds to it, wait-free.
//!
//! Open addressing with linear probing. A slot is free while its key is 0. To add an
//! entry, a thread claims a free slot by a compare-exchange, writes the other words, and
//! then the key (release); none of them ever changes again. So a reader that sees a key
//! (acquire) sees the whole entry. The table is at most half full, so every search ends.
//! Two threads that add the same key at once may claim a slot each: both entries are the
//! same.

#![allow(unsafe_code, reason = "declares that a zeroed slot is valid")]

use core::ops::Deref;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::step::Entry;
use crate::sys::memory::{MappedArray, Zeroable};

#[derive(Default)]
pub(super) struct Slot {
    /// The return address, 0 = free, [`TAKEN`] = being written.
    key: AtomicU64,
    step: AtomicU64,
    record: AtomicU64,
}

// SAFETY: all fields are atomic integers: zero is a value of each, and none needs drop.
unsafe impl Zeroable for Slot {}

/// No return address: nothing is mapped there.
const TAKEN: u64 = 1;

pub(super) struct Slots<S = Box<[Slot]>> {
    /// Its length is a power of two, at least 2.
    slots: S,
    /// Slots claimed, and claims that were refused because the table was half full.
    taken: AtomicUsize,
    /// A hash shifted right by this is an index.
    shift: u32,
}

/// The length of an array with room for `count` entries.
fn length_for(count: usize) -> usize {
    (2 * count).next_power_of_two().max(64)
}

impl Slots {
    /// An empty array with room for `count` entries.
    pub(super) fn with_room_for(count: usize) -> Self {
        let slots = core::iter::repeat_with(Slot::default).take(length_for(count));
        Self::of(slots.collect())
    }
}

impl Slots<MappedArray<Slot>> {
    /// The same in mapped memory, whose pages cost nothing until they are used; `None`
    /// if the mapping is refused.
    pub(super) fn mapped_with_room_for(count: usize) -> Option<Self> {
        Some(Self::of(MappedArray::new(length_for(count))?))
    }
}

impl<S: Deref<Target = [Slot]>> Slots<S> {
    fn of(slots: S) -> Self {
        let shift = 64 - slots.len().trailing_zeros();
        Self { slots, taken: AtomicUsize::new(0), shift }
    }

    /// How many entries fit.
    pub(super) fn room(&self) -> usize {
        self.slots.len() / 2
    }

    /// All slots in the order of probing for `key`.
    fn probe(&self, key: u64) -> impl Iterator<Item = &Slot> {
        let home = (spread(key) >> self.shift) as usize;
        let (front, back) = self.slots.split_at_checked(home).unwrap_or((&self.slots, &[]));
        back.iter().chain(front)
    }

    /// Any thread, wait-free.
    pub(super) fn find(&self, key: u64) -> Option<Entry> {
        for slot in self.probe(key) {
            match slot.key.load(Ordering::Acquire) {
                0 => return None,
                found if found == key => return Some(slot.entry(key)),
                _ => {}
            }
        }
        None
    }

    /// Any thread, wait-free; false if there is no room. An existing entry is left as it
    /// is.
    pub(super) fn insert(&self, entry: Entry) -> bool {
        if self.taken.fetch_add(1, Ordering::Relaxed) >= self.room() {
            return false;
        }
        for slot in self.probe(entry.return_address) {
            let taken = slot.key.compare_exchange(0, TAKEN, Ordering::Relaxed, Ordering::Relaxed);
            match taken {
                Ok(_) => {
                    slot.step.store(entry.step, Ordering::Relaxed);
                    slot.record.store(entry.record, Ordering::Relaxed);
                    slot.key.store(entry.return_address, Ordering::Release);
                    return true;
                }
                Err(found) if found == entry.return_address => return true,
                Err(_) => {}
            }
        }
        false
    }

    /// All entries whose insertion happened before.
    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.slots.iter().filter_map(|slot| {
            let return_address = slot.key.load(Ordering::Acquire);
            (return_address > TAKEN).then(|| slot.entry(return_address))
        })
    }
}

impl Slot {
    /// Its entry, once the key has been loaded with acquire.
    fn entry(&self, return_address: u64) -> Entry {
        Entry {
            return_address,
            step: self.step.load(Ordering::Relaxed),
            record: self.record.load(Ordering::Relaxed),
        }
    }
}

/// Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4): the high bits
/// of the product with the golden ratio depend on all bits of the key.
pub(super) const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> Entry {
        Entry { return_address: 0x1000 + number, step: 8 * number, record: number }
    }

    #[test]
    fn entries_fit_up_to_the_capacity_and_no_more() {
        let slots = Slots::mapped_with_room_for(100).unwrap();
        let room = slots.room() as u64;
        assert!((0..room).all(|number| slots.insert(entry(number))));
        assert!(!slots.insert(entry(room)));
        assert!((0..room).all(|number| slots.find(0x1000 + number) == Some(entry(number))));
        assert_eq!(slots.find(0x1000 + room), None);
        assert_eq!(slots.iter().count() as u64, room);
    }

    #[test]
    fn threads_that_add_the_same_entries_find_them() {
        let slots = Slots::mapped_with_room_for(4000).unwrap();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for number in 1..2000 {
                        assert!(slots.insert(entry(number)));
                        assert_eq!(slots.find(0x1000 + number), Some(entry(number)));
                    }
                });
            }
        });
        assert!((1..2000).all(|number| slots.find(0x1000 + number) == Some(entry(number))));
    }
}
