//! Tracked blocks by address, shared by all mutators.
//!
//! Open addressing in segments, each twice the last one's size; a new segment
//! is mapped when no known one has room near a block's place. A key is written
//! once its id is, and taken out by exchanging it for [`TAKEN`]: of two threads
//! that free one address, one finds it.
//!
//! A place that was ever used never becomes empty again. So whatever lies
//! behind an empty place of a window was never put there, and most look-ups,
//! which are for blocks that were not sampled, end at the first place.
//!
//! No locks: every operation ends in a bounded number of steps.

#![allow(unsafe_code, reason = "segments are found through atomic pointers")]

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::queue::BlockId;
use crate::sys::memory::{MappedArray, Zeroable};

/// What a key is when no block is there. No block lies at such an address.
const EMPTY: usize = 0;
const TAKEN: usize = 1;
const BUSY: usize = 2;

/// Places in the first segment, and how many segments there can be.
const FIRST_BITS: u32 = 12;
const SEGMENTS: usize = 20;

/// How far from its place a block may lie.
const WINDOW: usize = 16;

/// One place. All bytes zero is an empty one.
struct Place {
    key: AtomicUsize,
    id: AtomicU64,
}

// SAFETY: zero is a number, and nothing needs to be dropped.
unsafe impl Zeroable for Place {}

/// Blocks by address.
pub(crate) struct AddressTable {
    /// Null or `1 << (FIRST_BITS + index)` places, mapped until the end.
    segments: [AtomicPtr<Place>; SEGMENTS],
    live: AtomicUsize,
}

impl AddressTable {
    pub(crate) fn new() -> AddressTable {
        AddressTable {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            live: AtomicUsize::new(0),
        }
    }

    /// How many blocks are in it.
    pub(crate) fn len(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Adds a block. False: no memory, or no address of a block.
    pub(crate) fn add(&self, address: usize, id: BlockId) -> bool {
        if address <= BUSY {
            return false;
        }
        for index in 0..SEGMENTS {
            let Some(segment) = self.segment(index).or_else(|| self.grow(index)) else {
                return false;
            };
            if window(segment, address).any(|place| place.put(address, id)) {
                self.live.fetch_add(1, Ordering::Relaxed);
                return true;
            }
        }
        false
    }

    /// Takes a block out, if it is there.
    pub(crate) fn take(&self, address: usize) -> Option<BlockId> {
        if address <= BUSY || self.len() == 0 {
            return None;
        }
        let segments = (0..SEGMENTS).map_while(|index| self.segment(index));
        for segment in segments {
            for place in window(segment, address) {
                let key = place.key.load(Ordering::Acquire);
                if key == address
                    && let Some(id) = place.take(address)
                {
                    self.live.fetch_sub(1, Ordering::Relaxed);
                    return Some(id);
                }
                if key == EMPTY {
                    break;
                }
            }
        }
        None
    }

    fn segment(&self, index: usize) -> Option<&[Place]> {
        let places = self.segments.get(index)?.load(Ordering::Acquire);
        if places.is_null() {
            return None;
        }
        // SAFETY: a pointer that is not null was published by `grow` and is
        // that many zeroed or used places, mapped for as long as `self`.
        Some(unsafe { std::slice::from_raw_parts(places, places_in(index)) })
    }

    /// Maps a segment, or finds that another thread has.
    #[cold]
    fn grow(&self, index: usize) -> Option<&[Place]> {
        let slot = self.segments.get(index)?;
        let places = MappedArray::<Place>::new(places_in(index))?.into_raw();
        let published =
            slot.compare_exchange(ptr::null_mut(), places, Ordering::AcqRel, Ordering::Acquire);
        if published.is_err() {
            // SAFETY: just taken apart, and not published.
            drop(unsafe { MappedArray::from_raw(places, places_in(index)) });
        }
        self.segment(index)
    }
}

impl Drop for AddressTable {
    fn drop(&mut self) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let places = *segment.get_mut();
            if !places.is_null() {
                // SAFETY: published by `grow` with this length, and ours alone.
                drop(unsafe { MappedArray::from_raw(places, places_in(index)) });
            }
        }
    }
}

impl Place {
    /// Takes the place for a block, if it is free.
    fn put(&self, address: usize, id: BlockId) -> bool {
        let key = self.key.load(Ordering::Relaxed);
        if key != EMPTY && key != TAKEN {
            return false;
        }
        let claimed =
            self.key.compare_exchange(key, BUSY, Ordering::Acquire, Ordering::Relaxed).is_ok();
        if claimed {
            self.id.store(id.to_bits(), Ordering::Relaxed);
            self.key.store(address, Ordering::Release);
        }
        claimed
    }

    fn take(&self, address: usize) -> Option<BlockId> {
        let id = BlockId::from_bits(self.id.load(Ordering::Relaxed));
        self.key
            .compare_exchange(address, TAKEN, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
            .then_some(id)
    }
}

const fn places_in(index: usize) -> usize {
    1 << (FIRST_BITS as usize + index)
}

/// The places where a block may lie, from the first on.
fn window(segment: &[Place], address: usize) -> impl Iterator<Item = &Place> {
    // Fibonacci hashing (Knuth, The Art of Computer Programming 3, 6.4).
    let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
    let mask = segment.len() - 1;
    let start = hash >> (usize::BITS - segment.len().trailing_zeros());
    (0..WINDOW).filter_map(move |step| segment.get((start + step) & mask))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn id(number: u64) -> BlockId {
        BlockId::new(0, number)
    }

    #[test]
    fn what_is_put_in_is_taken_out_once() {
        let directory = AddressTable::new();
        assert_eq!(directory.take(4096), None);
        assert!(directory.add(4096, id(7)));
        assert!(!directory.add(0, id(8)));
        assert_eq!(directory.len(), 1);
        assert_eq!(directory.take(4096), Some(id(7)));
        assert_eq!(directory.take(4096), None);
        assert_eq!(directory.len(), 0);
    }

    #[test]
    fn it_grows_and_keeps_everything() {
        let directory = AddressTable::new();
        let address = |n: u64| 0x7f00_0000_0000 + n as usize * 48;
        for n in 0..100_000 {
            assert!(directory.add(address(n), id(n)));
        }
        for n in (0..100_000).rev() {
            assert_eq!(directory.take(address(n)), Some(id(n)));
        }
        assert_eq!(directory.len(), 0);
    }

    /// Blocks come and go for ever in the same room.
    #[test]
    fn freed_places_are_used_again() {
        let directory = AddressTable::new();
        for n in 0..1_000_000u64 {
            let address = 0x1000 + (n as usize).wrapping_mul(0x9e3b) % 0xfff_fff0;
            if directory.add(address, id(n)) {
                directory.take(address);
            }
        }
        assert!(directory.segment(1).is_none());
    }

    /// Each of many blocks is freed by two threads at once: one finds it.
    #[test]
    fn two_threads_free_a_block_once() {
        let directory = Arc::new(AddressTable::new());
        const BLOCKS: u64 = 50_000;
        let address = |n: u64| 0x5000 + n as usize * 16;
        let adders: Vec<_> = (0..2)
            .map(|part| {
                let directory = Arc::clone(&directory);
                std::thread::spawn(move || {
                    for n in (part..BLOCKS).step_by(2) {
                        assert!(directory.add(address(n), id(n)));
                    }
                })
            })
            .collect();
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let directory = Arc::clone(&directory);
                std::thread::spawn(move || {
                    let mut taken = 0;
                    for n in (0..BLOCKS).chain(0..BLOCKS) {
                        if let Some(found) = directory.take(address(n)) {
                            assert_eq!(found, id(n));
                            taken += 1;
                        }
                    }
                    taken
                })
            })
            .collect();
        for adder in adders {
            adder.join().unwrap();
        }
        let taken: u64 = takers.into_iter().map(|taker| taker.join().unwrap()).sum();
        let left = (0..BLOCKS).filter(|&n| directory.take(address(n)).is_some()).count();
        assert_eq!(taken + left as u64, BLOCKS);
    }
}
