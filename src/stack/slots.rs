//! An open-addressed array from return addresses to steps, read by any thread
//! while one adds to it.
//!
//! A slot is free while its key is 0. Its other words are written before its
//! key (release), never changed after, and the array is at most half full, so a
//! reader that sees a key (acquire) sees the rest, and every search ends.

use core::sync::atomic::{AtomicU64, Ordering};

use super::formats::Entry;

struct Slot {
    /// The return address, 0 = free.
    key: AtomicU64,
    step: AtomicU64,
    record: AtomicU64,
}

pub(super) struct Slots {
    /// Its length is a power of two.
    slots: Box<[Slot]>,
    /// How far a hash is shifted down to be an index.
    shift: u32,
}

impl Slots {
    /// An empty array with room for `count` entries.
    pub(super) fn with_room_for(count: usize) -> Self {
        let length = (2 * count).next_power_of_two().max(1024);
        let free =
            || Slot { key: AtomicU64::new(0), step: AtomicU64::new(0), record: AtomicU64::new(0) };
        let slots = core::iter::repeat_with(free).take(length).collect();
        Self { slots, shift: 64 - length.trailing_zeros() }
    }

    /// How many entries fit.
    pub(super) fn room(&self) -> usize {
        self.slots.len() / 2
    }

    /// The slots from where `key` belongs on, around the end.
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
                found if found == key => {
                    return Some(Entry {
                        return_address: key,
                        step: slot.step.load(Ordering::Relaxed),
                        record: slot.record.load(Ordering::Relaxed),
                    });
                }
                _ => {}
            }
        }
        None
    }

    /// One thread at a time; there must be room, and the key must be new.
    pub(super) fn insert(&self, entry: Entry) {
        for slot in self.probe(entry.return_address) {
            if slot.key.load(Ordering::Relaxed) == 0 {
                slot.step.store(entry.step, Ordering::Relaxed);
                slot.record.store(entry.record, Ordering::Relaxed);
                slot.key.store(entry.return_address, Ordering::Release);
                return;
            }
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Entry> {
        self.slots.iter().filter_map(|slot| {
            let return_address = slot.key.load(Ordering::Acquire);
            (return_address != 0).then(|| Entry {
                return_address,
                step: slot.step.load(Ordering::Relaxed),
                record: slot.record.load(Ordering::Relaxed),
            })
        })
    }
}

/// Fibonacci hashing: the golden ratio's bits, so that the product's high bits
/// depend on all of the key's.
pub(super) const fn spread(key: u64) -> u64 {
    key.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}
