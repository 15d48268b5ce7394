//! Backtraces of which all codes are in the cache: nearly all.
//!
//! Where the frames are known to be, and none comes or goes on the way, writing
//! them needs no branch that the processor could guess wrongly. Whether a frame
//! is foretold or named, afterwards the slot before it predicts it; so all that
//! is to be found out is whether it did so already. How many entries there are
//! and how many frames each foretells is as good as random: branches on that
//! were a third of the time. The result is what [`Stack::put`] writes, which a
//! test below holds it to.

use std::hint::select_unpredictable;

use crate::cache::{Slot, homes, index};
use crate::encode::stack::Stack;
use crate::event::Code;
use crate::rules::MAX_PREDICTED;
use crate::wire::{Packet, WINDOW};

/// Backtraces of as many new frames or more are left to [`Stack::put`]: theirs
/// may not fit.
pub(super) const MAX_FOUND: usize = 256;

impl Stack {
    /// Looks up all codes; false if one is not in the cache, is no code, or
    /// there are too many. Changes nothing that is written.
    #[inline(always)]
    pub(crate) fn find_all(&mut self, frames: &[Code]) -> bool {
        let codes = &*self.cache.codes;
        let mut all = frames.len() < MAX_FOUND;
        for (slot, &code) in self.found.iter_mut().zip(frames) {
            let (first, second) = homes(code);
            let in_first = codes[index(first)] == code;
            let in_second = codes[index(second)] == code;
            // An empty slot has code 0, which is none.
            all &= (in_first | in_second) & (code != 0);
            *slot = select_unpredictable(in_first, first, second);
        }
        all
    }

    /// Writes the entries for the `count` frames that [`Stack::find_all`] found
    /// all of. Returns the number of entries.
    #[inline(always)]
    pub(crate) fn put_found(&mut self, packet: &mut Packet, count: usize, id: u64) -> u16 {
        let (dates, predictions) = (&mut *self.dates, &mut *self.cache.predictions);
        let Some(room) = packet.window() else { return 0 };
        let mut entries = 0;
        // As if a full entry had just ended: the first frame begins another.
        let mut predicted = MAX_PREDICTED;
        let mut at = 0usize.wrapping_sub(hit_size(predicted));
        let (mut before, mut named): (Slot, Slot) = (0, 0);
        for &slot in self.found.iter().take(count) {
            let foretold = predictions[index(before)] == slot;
            let begins = !foretold | (predicted == MAX_PREDICTED);
            predictions[index(before)] = slot;
            before = slot;
            at = at.wrapping_add(select_unpredictable(begins, hit_size(predicted), 0));
            predicted = select_unpredictable(begins, 0, predicted + 1);
            named = select_unpredictable(begins, slot, named);
            let date = &mut dates[index(slot)];
            *date = select_unpredictable(begins, id, *date);
            entries += u16::from(begins);
            // The entry as it is so far: the next frame writes it again, or
            // another behind it.
            let entry = u32::from(named) << 2 | predicted.min(2) as u32 | (predicted as u32) << 16;
            let at = at % WINDOW;
            if let Some(place) = room.get_mut(at..at + size_of_val(&entry)) {
                place.copy_from_slice(&entry.to_le_bytes());
            }
        }
        if count > 0 {
            packet.extend(at.wrapping_add(hit_size(predicted)));
        }
        entries
    }
}

/// How many bytes a hit takes that foretells so many frames.
#[inline(always)]
fn hit_size(predicted: usize) -> usize {
    2 + usize::from(predicted >= 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stacks that share much with the ones before, over so many codes.
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
            self.last.truncate(MAX_FOUND - 1);
            &self.last
        }
    }

    #[test]
    fn both_ways_write_the_same() {
        for (codes, most) in [(1, 300), (2, 9), (3, 300), (40, 20), (700, 60), (40_000, 30)] {
            let mut stacks = Stacks { state: codes, codes, last: Vec::new() };
            let (mut fast, mut slow) = (Stack::new(), Stack::new());
            let (mut fast_packet, mut slow_packet) = (Packet::new(), Packet::new());
            let (mut fast_missed, mut slow_missed) = (Vec::new(), Vec::new());
            let mut short_ways = 0;
            for id in 0..3_000 {
                let frames = stacks.next(most);
                fast_packet.clear();
                slow_packet.clear();
                let entries = if fast.find_all(frames) {
                    short_ways += 1;
                    fast.put_found(&mut fast_packet, frames.len(), id)
                } else {
                    fast.put(&mut fast_packet, frames, id, &mut fast_missed)
                };
                assert_eq!(entries, slow.put(&mut slow_packet, frames, id, &mut slow_missed));
                assert_eq!(fast_packet.as_slice(), slow_packet.as_slice(), "event {id}");
                assert!(fast.dates == slow.dates, "dates after event {id} of {codes} codes");
                assert!(fast.cache.predictions == slow.cache.predictions, "after event {id}");
            }
            assert_eq!(fast_missed, slow_missed);
            assert!(short_ways > 100, "{short_ways} of {codes} codes");
        }
    }

    #[test]
    fn what_is_no_code_is_not_found() {
        let mut stack = Stack::new();
        assert!(!stack.find_all(&[0]));
        assert!(!stack.find_all(&[1 << 63]));
        assert!(stack.find_all(&[]));
    }
}
