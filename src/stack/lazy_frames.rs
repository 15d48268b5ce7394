//! The frames that were met so far, of tables that the host keeps an index of.
//!
//! An array that has no room left is not copied into a larger one, since this
//! runs inside hooks: the larger one takes its place empty, and what is met again
//! is entered again. The full one stays as it is, for the writer. So few pages are
//! used where few frames are met.

use core::sync::atomic::{AtomicUsize, Ordering};

use super::slots::{Slot, Slots};
use super::step::Entry;
use crate::sys::memory::MappedArray;

/// Entries that the smallest array has room for, and how much larger each next
/// one is.
const SMALLEST: usize = 64;
const TIMES: usize = 4;

pub(super) struct LazyFrames {
    /// From the smallest on; the last has room for all frames.
    arrays: Vec<Slots<MappedArray<Slot>>>,
    /// The array in use; those before are full.
    current: AtomicUsize,
}

impl LazyFrames {
    /// Nothing was met yet of so many frames; `None` when there is no memory.
    pub(super) fn of(frames: usize) -> Option<Self> {
        let mut arrays = Vec::new();
        let mut room = SMALLEST;
        while room < frames {
            arrays.push(Slots::mapped_with_room_for(room)?);
            room = room.checked_mul(TIMES)?;
        }
        arrays.push(Slots::mapped_with_room_for(frames)?);
        Some(Self { arrays, current: AtomicUsize::new(0) })
    }

    /// What was met since the array in use is in use. Mutators.
    pub(super) fn find(&self, return_address: u64) -> Option<Entry> {
        self.arrays.get(self.current.load(Ordering::Acquire))?.find(return_address)
    }

    /// What was ever met. The writer.
    pub(super) fn find_ever(&self, return_address: u64) -> Option<Entry> {
        // Not the ones beyond: to look there would bring their pages in.
        let used = self.arrays.get(..=self.current.load(Ordering::Acquire));
        used.unwrap_or(&self.arrays).iter().rev().find_map(|array| array.find(return_address))
    }

    /// A frame was met. Mutators.
    pub(super) fn insert(&self, entry: Entry) {
        loop {
            let current = self.current.load(Ordering::Acquire);
            if self.arrays.get(current).is_none_or(|array| array.insert(entry)) {
                return;
            }
            // Whoever is first goes on to the next.
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
    fn whatever_was_met_is_found_ever_after() {
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
    fn more_than_there_should_be_is_let_go() {
        let lazy_frames = LazyFrames::of(1).unwrap();
        for number in 0..10_000 {
            lazy_frames.insert(Entry { return_address: 0x1000 + number, step: 8, record: 0 });
        }
        assert_eq!(lazy_frames.find_ever(0x1000).map(|entry| entry.step), Some(8));
        assert_eq!(lazy_frames.find(0x1000 + 9_999), None);
    }
}
