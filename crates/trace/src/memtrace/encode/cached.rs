//! Backtraces whose codes are all in the cache: nearly all.
//!
//! If no code enters or leaves the cache, writing the entries needs hardly a
//! branch that the processor could mispredict. Whether a frame is predicted or
//! named, afterwards the previous slot predicts it; all there is to find out is
//! whether it did so before. Which frames are named is as good as random, so the
//! entries are built with conditional moves. The bytes are those of
//! [`Stack::put`], which a test below verifies. Benches: `encode` in
//! `benches/trace.rs`, and `benches/writer.rs`.

use std::hint::select_unpredictable;

use crate::memtrace::cache::{Slot, homes, index};
use crate::memtrace::encode::stack::{CACHED_ENTRIES, CACHED_ROOM, Dates, Stack};
use crate::model::event::Code;

/// The order in which frames are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// From `main` to the allocation point.
    OuterFirst,
    /// From the allocation point to `main`.
    InnerFirst,
}

/// What a predicted frame adds to an entry. They are counted in the third byte,
/// and up to two of them also in the two lowest bits.
const PREDICTED: u32 = 1 << 16;
const TWO_PREDICTED: u32 = 2 * PREDICTED;

impl Stack {
    /// Looks up all codes; false if one is not in the cache or not a code, or if
    /// there are too many. Does not affect what is written.
    #[inline(always)]
    pub(crate) fn find_cached(&mut self, frames: &[Code]) -> bool {
        let codes = &*self.cache.codes;
        let Some(slots) = self.found.get_mut(..frames.len()) else { return false };
        for (slot, &code) in slots.iter_mut().zip(frames) {
            let (first, second) = homes(code);
            // While both slots are empty, a code enters its second one.
            *slot = second;
            if codes[index(second)] != code {
                *slot = first;
                if codes[index(first)] != code {
                    return false;
                }
            }
        }
        true
    }

    /// Writes the entries for the `count` frames that [`Stack::find_cached`] found
    /// all of. Returns their number and their bytes.
    #[inline(always)]
    pub(crate) fn put_cached(
        &mut self,
        room: &mut [u8; CACHED_ROOM],
        count: usize,
        order: Order,
        id: u64,
    ) -> (u8, usize) {
        let Stack { cache, dates, found, .. } = self;
        let slots = found.get(..count).unwrap_or(&[]);
        let predictions = &mut *cache.predictions;
        match order {
            Order::OuterFirst => put_slots(room, slots.iter(), predictions, dates, id),
            Order::InnerFirst => put_slots(room, slots.iter().rev(), predictions, dates, id),
        }
    }
}

/// Writes the entries for frames in these slots, from the outermost on.
#[inline(always)]
fn put_slots<'a, const ROOM: usize>(
    room: &mut [u8; CACHED_ROOM],
    slots: impl Iterator<Item = &'a Slot> + Clone,
    predictions: &mut [Slot; ROOM],
    dates: &mut Dates,
    id: u64,
) -> (u8, usize) {
    // Even if it was predicted, the first frame is named.
    if let Some(first) = slots.clone().next() {
        predictions[0] = !first;
    }
    let (mut entries, mut at, mut end) = (0, 0, 0);
    let (mut before, mut named, mut predicted) = (0, 0, 0);
    for &slot in slots {
        // Masked once: the index stays in bounds without another check.
        let place = index(slot);
        let begins = predictions[before] != slot;
        predictions[before] = slot;
        before = place;
        entries += u8::from(begins);
        at = select_unpredictable(begins, end, at);
        named = select_unpredictable(begins, place, named);
        let one_more = predicted + PREDICTED + u32::from(predicted < TWO_PREDICTED);
        predicted = select_unpredictable(begins, 0, one_more);
        dates[named] = id;
        // The entry as it is so far: the next frame writes it again, or
        // another behind it.
        let entry = named as u32 * 4 + predicted;
        at %= CACHED_ENTRIES;
        if let Some(place) = room.get_mut(at..at + size_of_val(&entry)) {
            place.copy_from_slice(&entry.to_le_bytes());
        }
        end = at + 2 + usize::from(predicted >= TWO_PREDICTED);
    }
    (entries, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memtrace::encode::stack::MAX_CACHED;
    use crate::memtrace::wire::Packet;

    /// Stacks that share much with the ones before, made of `codes` codes.
    struct Stacks {
        state: u64,
        codes: u64,
        last: Vec<Code>,
    }

    impl Stacks {
        fn below(&mut self, limit: u64) -> u64 {
            self.state = self.state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e);
            (self.state >> 33) % limit
        }

        fn next(&mut self, most: u64) -> &[Code] {
            let kept = self.below(self.last.len() as u64 + 1);
            self.last.truncate(kept as usize);
            for _ in 0..self.below(most) {
                let repeats = self.below(3) == 0;
                let code = (self.below(self.codes) + 1) << 5;
                let code = self.last.last().copied().filter(|_| repeats).unwrap_or(code);
                self.last.push(code);
            }
            self.last.truncate(MAX_CACHED);
            &self.last
        }
    }

    #[test]
    fn both_paths_write_the_same() {
        for (codes, most) in [(1, 300), (2, 9), (3, 300), (40, 20), (700, 60), (40_000, 30)] {
            let mut stacks = Stacks { state: codes, codes, last: Vec::new() };
            let (mut fast, mut slow) = (Stack::new(), Stack::new());
            let (mut fast_packet, mut slow_packet) = (Packet::new(), Packet::new());
            let (mut fast_missed, mut slow_missed) = (Vec::new(), Vec::new());
            let mut cached_paths = 0;
            for id in 0..3_000 {
                let frames = stacks.next(most);
                let order = if id % 2 == 0 { Order::OuterFirst } else { Order::InnerFirst };
                let mut listed = frames.to_vec();
                if order == Order::InnerFirst {
                    listed.reverse();
                }
                fast_packet.clear();
                slow_packet.clear();
                let entries = if fast.find_cached(&listed) {
                    cached_paths += 1;
                    let room = fast_packet.window().unwrap();
                    let (entries, bytes) = fast.put_cached(room, frames.len(), order, id);
                    fast_packet.extend(bytes);
                    u16::from(entries)
                } else {
                    fast.put(&mut fast_packet, frames, id, &mut fast_missed)
                };
                assert_eq!(entries, slow.put(&mut slow_packet, frames, id, &mut slow_missed));
                assert_eq!(fast_packet.as_slice(), slow_packet.as_slice(), "event {id}");
                assert!(fast.dates == slow.dates, "dates after event {id} of {codes} codes");
                assert!(fast.cache.predictions == slow.cache.predictions, "after event {id}");
            }
            assert_eq!(fast_missed, slow_missed);
            assert!(cached_paths > 100, "{cached_paths} of {codes} codes");
        }
    }

    #[test]
    fn invalid_codes_are_not_found() {
        let mut stack = Stack::new();
        assert!(!stack.find_cached(&[0]));
        assert!(!stack.find_cached(&[1 << 63]));
        assert!(stack.find_cached(&[]));
    }
}
