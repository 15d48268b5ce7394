//! A concurrent hash table of tracked blocks by address, shared by all mutators.
//!
//! Open addressing with linear probing (Knuth, *The Art of Computer Programming* 3, 6.4),
//! limited to a window of [`WINDOW`] slots. The table is a sequence of segments, each twice
//! as large as the one before. A block that finds no free slot in its windows gets one in a
//! new segment. Segments never move.
//!
//! A slot's id is written before its key, and the key is removed by a compare-exchange to
//! [`REMOVED`]. So if two threads free the same address, exactly one of them finds the block.
//!
//! A slot that was used never becomes [`EMPTY`] again. So a look-up may stop at the first
//! empty slot of a window. Most look-ups are for blocks that were not sampled, and stop at
//! the first slot.
//!
//! Wait-free: every operation takes a bounded number of steps.

#![allow(unsafe_code, reason = "segments are published through atomic pointers")]

use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::blocks::address_filter::AddressFilter;
use crate::blocks::tracked_id::TrackedId;
use crate::sys::memory::{MappedArray, Zeroable};

/// Keys that are not addresses of blocks: a slot that was never used, one whose block was
/// removed, and one that a thread is filling.
const EMPTY: usize = 0;
const REMOVED: usize = 1;
const BUSY: usize = 2;

/// The base-2 logarithm of the first segment's length.
const FIRST_BITS: u32 = 12;
/// The most segments.
const SEGMENTS: usize = 20;

/// In how many consecutive slots of a segment a block may be.
const WINDOW: usize = 16;

/// All bytes zero is an empty slot.
struct Slot {
    /// [`EMPTY`], [`REMOVED`], [`BUSY`] or a block's address.
    key: AtomicUsize,
    /// A [`TrackedId`], valid while the key is an address.
    id: AtomicU64,
}

// SAFETY: both fields are atomic integers, for which zero is valid and which need no drop.
unsafe impl Zeroable for Slot {}

/// Blocks by address.
pub(crate) struct AddressTable {
    /// By index: null, or a mapping of [`slots_in`] slots that lives as long as the table.
    segments: [AtomicPtr<Slot>; SEGMENTS],
    /// How many blocks are in the table.
    live: AtomicUsize,
    /// Knows of every block in the table, and of those of other tables.
    filter: Arc<AddressFilter>,
}

impl AddressTable {
    pub(crate) fn new(filter: &Arc<AddressFilter>) -> AddressTable {
        AddressTable {
            segments: [const { AtomicPtr::new(ptr::null_mut()) }; SEGMENTS],
            live: AtomicUsize::new(0),
            filter: Arc::clone(filter),
        }
    }

    /// How many blocks are in the table.
    pub(crate) fn len(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Adds a block. False without memory, or if `address` cannot be a block's.
    pub(crate) fn add(&self, address: usize, id: TrackedId) -> bool {
        if address <= BUSY {
            return false;
        }
        self.filter.add(address);
        for index in 0..SEGMENTS {
            let Some(segment) = self.segment(index).or_else(|| self.grow(index)) else {
                break;
            };
            if window(segment, address).any(|slot| slot.try_insert(address, id)) {
                self.live.fetch_add(1, Ordering::Relaxed);
                return true;
            }
        }
        self.filter.remove(address);
        false
    }

    /// Removes the block at `address`, if it is in the table.
    pub(crate) fn take(&self, address: usize) -> Option<TrackedId> {
        if address <= BUSY || self.len() == 0 {
            return None;
        }
        let segments = (0..SEGMENTS).map_while(|index| self.segment(index));
        for segment in segments {
            for slot in window(segment, address) {
                let key = slot.key.load(Ordering::Acquire);
                if key == address
                    && let Some(id) = slot.try_remove(address)
                {
                    self.live.fetch_sub(1, Ordering::Relaxed);
                    self.filter.remove(address);
                    return Some(id);
                }
                if key == EMPTY {
                    break;
                }
            }
        }
        None
    }

    fn segment(&self, index: usize) -> Option<&[Slot]> {
        let slots = self.segments.get(index)?.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: `grow` published the pointer with release order. It is a mapping of that
        // many slots, which is unmapped only when `self` is dropped.
        Some(unsafe { std::slice::from_raw_parts(slots, slots_in(index)) })
    }

    /// Maps a segment, unless another thread has.
    #[cold]
    fn grow(&self, index: usize) -> Option<&[Slot]> {
        let segment = self.segments.get(index)?;
        let slots = MappedArray::<Slot>::new(slots_in(index))?.into_raw();
        let published =
            segment.compare_exchange(ptr::null_mut(), slots, Ordering::AcqRel, Ordering::Acquire);
        if published.is_err() {
            // SAFETY: `into_raw` above returned it for this length, and it was not published.
            drop(unsafe { MappedArray::from_raw(slots, slots_in(index)) });
        }
        self.segment(index)
    }
}

impl Drop for AddressTable {
    fn drop(&mut self) {
        for (index, segment) in self.segments.iter_mut().enumerate() {
            let slots = *segment.get_mut();
            if !slots.is_null() {
                // SAFETY: `grow` made it with `into_raw` for this length. `&mut self` excludes
                // other users.
                drop(unsafe { MappedArray::from_raw(slots, slots_in(index)) });
            }
        }
    }
}

impl Slot {
    /// Stores a block if the slot is free. Returns whether it was.
    fn try_insert(&self, address: usize, id: TrackedId) -> bool {
        let key = self.key.load(Ordering::Relaxed);
        if key != EMPTY && key != REMOVED {
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

    /// Removes the block at `address` unless another thread has.
    fn try_remove(&self, address: usize) -> Option<TrackedId> {
        let id = TrackedId::from_bits(self.id.load(Ordering::Relaxed));
        self.key
            .compare_exchange(address, REMOVED, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
            .then_some(id)
    }
}

const fn slots_in(index: usize) -> usize {
    1 << (FIRST_BITS as usize + index)
}

/// The slots of a segment where a block may be, in the order of probing.
fn window(segment: &[Slot], address: usize) -> impl Iterator<Item = &Slot> {
    // Fibonacci hashing (Knuth, same section).
    let hash = (address >> 3).wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize);
    let mask = segment.len() - 1;
    let start = hash >> (usize::BITS - segment.len().trailing_zeros());
    (0..WINDOW).filter_map(move |step| segment.get((start + step) & mask))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use heaptap_trace::Source;

    use super::*;
    use crate::queue::BlockId;

    fn table() -> AddressTable {
        AddressTable::new(&Arc::new(AddressFilter::new().unwrap()))
    }

    fn id(number: u64) -> TrackedId {
        TrackedId::new(BlockId::new(0, number), Source::External)
    }

    #[test]
    fn a_block_is_removed_once() {
        let directory = table();
        assert_eq!(directory.take(4096), None);
        assert!(directory.add(4096, id(7)));
        assert!(!directory.add(0, id(8)));
        assert_eq!(directory.len(), 1);
        assert_eq!(directory.take(4096), Some(id(7)));
        assert_eq!(directory.take(4096), None);
        assert_eq!(directory.len(), 0);
    }

    #[test]
    fn it_grows_and_keeps_all_blocks() {
        let directory = table();
        let address = |n: u64| 0x7f00_0000_0000 + n as usize * 48;
        for n in 0..100_000 {
            assert!(directory.add(address(n), id(n)));
        }
        for n in (0..100_000).rev() {
            assert_eq!(directory.take(address(n)), Some(id(n)));
        }
        assert_eq!(directory.len(), 0);
    }

    /// Adding and removing blocks forever does not need more memory.
    #[test]
    fn removed_slots_are_used_again() {
        let directory = table();
        for n in 0..1_000_000u64 {
            let address = 0x1000 + (n as usize).wrapping_mul(0x9e3b) % 0xfff_fff0;
            if directory.add(address, id(n)) {
                directory.take(address);
            }
        }
        assert!(directory.segment(1).is_none());
    }

    /// Two threads remove each of many blocks: one of them finds it.
    #[test]
    fn two_threads_remove_a_block_once() {
        let directory = Arc::new(table());
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
