//! The frames of a host's own index that walks have reached so far.
//!
//! There is a sequence of arrays, each larger than the one before, of which one is in
//! use. When it is full the next one takes its place, empty: to copy the entries would
//! take too long inside a hook. Walks that reach those frames again enter them again.
//! Full arrays stay, for the writer. So a program that samples few frames uses few pages,
//! however many frames its tables have.
//!
//! Mutators and the writer, without locks.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::slots::{Slot, Slots};
use super::step::Entry;
use crate::sys::memory::MappedArray;

/// The capacity of the first array, and the factor from each to the next.
const SMALLEST: usize = 64;
const GROWTH: usize = 4;

pub(super) struct LazyFrames {
    /// Smallest first; the last has room for all frames.
    arrays: Vec<Slots<MappedArray<Slot>>>,
    /// The index of the array in use; those before it are full.
    current: AtomicUsize,
}

impl LazyFrames {
    /// Empty, for tables of this many frames; `None` if there is no memory.
    pub(super) fn of(frames: usize) -> Option<Self> {
        let mut arrays = Vec::new();
        let mut room = SMALLEST;
        while room < frames {
            arrays.push(Slots::mapped_with_room_for(room)?);
            room = room.checked_mul(GROWTH)?;
        }
        arrays.push(Slots::mapped_with_room_for(frames)?);
        Some(Self { arrays, current: AtomicUsize::new(0) })
    }

    /// A frame in the array in use. Mutators.
    pub(super) fn find(&self, return_address: u64) -> Option<Entry> {
        self.arrays.get(self.current.load(Ordering::Acquire))?.find(return_address)
    }

    /// A frame in any array. The writer.
    pub(super) fn find_ever(&self, return_address: u64) -> Option<Entry> {
        // Not in the ones beyond: a look there would bring their pages in.
        let used = self.arrays.get(..=self.current.load(Ordering::Acquire));
        used.unwrap_or(&self.arrays).iter().rev().find_map(|array| array.find(return_address))
    }

    /// Enters a frame. If more than all frames are entered, it is dropped. Mutators.
    pub(super) fn insert(&self, entry: Entry) {
        loop {
            let current = self.current.load(Ordering::Acquire);
            if self.arrays.get(current).is_none_or(|array| array.insert(entry)) {
                return;
            }
            // If this fails another thread has moved on already.
            let _ = self.current.compare_exchange(
                current,
                current + 1,
                Ordering::AcqRel,
                Ordering::Relaxed,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_entered_is_found_ever_after() {
        const FRAMES: usize = 40_000;
        let entry =
            |number: u64| Entry { return_address: 0x1000 + number, step: 8, record: number };
        let lazy_frames = LazyFrames::of(FRAMES).unwrap();
        assert_eq!(lazy_frames.arrays.len(), 6);
        for number in 0..FRAMES as u64 {
            assert_eq!(lazy_frames.find(0x1000 + number), None);
            lazy_frames.insert(entry(number));
            assert_eq!(lazy_frames.find(0x1000 + number), Some(entry(number)));
            // Mutators may have to enter it again.
            if lazy_frames.find(0x1000).is_none() {
                lazy_frames.insert(entry(0));
            }
        }
        for number in 0..FRAMES as u64 {
            assert_eq!(lazy_frames.find_ever(0x1000 + number), Some(entry(number)));
        }
        assert_eq!(lazy_frames.find_ever(0xfff), None);
        assert_eq!(lazy_frames.find_ever(0x1000 + FRAMES as u64), None);
    }

    #[test]
    fn more_frames_than_the_tables_have_are_dropped() {
        let lazy_frames = LazyFrames::of(1).unwrap();
        for number in 0..10_000 {
            lazy_frames.insert(Entry { return_address: 0x1000 + number, step: 8, record: 0 });
        }
        assert_eq!(lazy_frames.find_ever(0x1000).map(|entry| entry.step), Some(8));
        assert_eq!(lazy_frames.find(0x1000 + 9_999), None);
    }
}
