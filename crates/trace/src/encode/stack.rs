//! Backtraces as the encoder writes them.
//!
//! A code goes into the older of its two slots when it is in neither. After a
//! hit the predictions are followed for as long as they are right, which costs
//! nothing in the file but their number.

use crate::cache::{Cache, Slot, homes, index, per_slot};
use crate::event::Code;
use crate::header::CacheCheck;
use crate::rules::{MAX_ENTRY, MAX_EVENT_BODY, MAX_PREDICTED, SLOTS};
use crate::wire::Packet;

/// The cache with what only a writer needs.
pub(crate) struct Stack {
    cache: Cache,
    /// Id of the allocation that last named the slot.
    dates: Box<[u64; SLOTS]>,
    next_check: Slot,
}

/// The slot of the first cache check, and the step to each next one.
const FIRST_CHECK: Slot = 4242;
const CHECK_STEP: Slot = 5413;

impl Stack {
    pub(crate) fn new() -> Self {
        Stack { cache: Cache::new(), dates: per_slot(), next_check: FIRST_CHECK }
    }

    /// The cache check for the next packet.
    pub(crate) fn check(&mut self) -> CacheCheck {
        let slot = self.next_check;
        self.next_check = (slot + CHECK_STEP) & (SLOTS as Slot - 1);
        self.cache.check(slot)
    }

    /// Writes the entries for `frames`, as many as there is room for, and adds
    /// the codes that were not in the cache to `missed`. Returns the number of
    /// entries.
    pub(crate) fn put(
        &mut self,
        packet: &mut Packet,
        frames: &[Code],
        id: u64,
        missed: &mut Vec<Code>,
    ) -> u16 {
        // Beyond this the largest entry might not fit.
        let limit = packet.len() + MAX_EVENT_BODY - MAX_ENTRY;
        let mut predictor: Slot = 0;
        let mut entries = 0;
        let mut rest = frames;
        while let [code, behind @ ..] = rest {
            if packet.len() > limit {
                break;
            }
            rest = behind;
            let slot = match self.find(*code) {
                Some(slot) => slot,
                None => {
                    missed.push(*code);
                    predictor = self.put_miss(packet, *code, predictor, id);
                    entries += 1;
                    continue;
                }
            };
            let (count, last, behind) = self.put_hits(packet, slot, predictor, rest, id, limit);
            entries += count;
            predictor = last;
            rest = behind;
        }
        entries
    }

    #[inline(always)]
    fn find(&self, code: Code) -> Option<Slot> {
        let (first, second) = homes(code);
        if self.cache.codes[index(first)] == code {
            Some(first)
        } else if self.cache.codes[index(second)] == code {
            Some(second)
        } else {
            None
        }
    }

    fn put_miss(&mut self, packet: &mut Packet, code: Code, predictor: Slot, id: u64) -> Slot {
        let (first, second) = homes(code);
        let older = self.dates[index(first)] < self.dates[index(second)];
        let slot = if older { first } else { second };
        self.cache.codes[index(slot)] = code;
        self.dates[index(slot)] = id;
        self.cache.predictions[index(predictor)] = slot;
        packet.u16(slot << 2 | 3);
        packet.u64(code);
        slot
    }

    /// Writes a hit and the predictions that hold after it: one entry, or more
    /// when more than 255 do. Returns their number, the slot of the last
    /// frame, and the frames left.
    #[inline(always)]
    fn put_hits<'a>(
        &mut self,
        packet: &mut Packet,
        mut slot: Slot,
        mut predictor: Slot,
        frames: &'a [Code],
        id: u64,
        limit: usize,
    ) -> (u16, Slot, &'a [Code]) {
        let mut entries = 0;
        let mut rest = frames;
        loop {
            if packet.len() + 2 > limit {
                // No room for what may follow: the entry is the last.
                rest = &[];
            }
            self.dates[index(slot)] = id;
            self.cache.predictions[index(predictor)] = slot;
            let (right, last) = self.predicted(slot, rest);
            put_hit(packet, slot, right as u8);
            entries += 1;
            rest = rest.get(right..).unwrap_or(&[]);
            let next = self.cache.predictions[index(last)];
            match rest {
                [code, behind @ ..]
                    if right == MAX_PREDICTED && self.cache.codes[index(next)] == *code =>
                {
                    predictor = last;
                    slot = next;
                    rest = behind;
                }
                _ => return (entries, last, rest),
            }
        }
    }

    /// How many of the frames the predictions from `slot` foretell, at most
    /// 255, and the slot of the last one.
    #[inline(always)]
    fn predicted(&self, slot: Slot, frames: &[Code]) -> (usize, Slot) {
        let mut last = slot;
        let mut right = 0;
        for &code in frames.iter().take(MAX_PREDICTED) {
            let next = self.cache.predictions[index(last)];
            if self.cache.codes[index(next)] != code {
                break;
            }
            last = next;
            right += 1;
        }
        (right, last)
    }
}

#[inline(always)]
fn put_hit(packet: &mut Packet, slot: Slot, predicted: u8) {
    match predicted {
        0 | 1 => packet.u16(slot << 2 | u16::from(predicted)),
        _ => {
            packet.u16(slot << 2 | 2);
            packet.u8(predicted);
        }
    }
}

/// How many frames two backtraces have in common at the `main` end.
pub(crate) fn common_prefix(a: &[Code], b: &[Code]) -> usize {
    const CHUNK: usize = 8;
    let chunks = a.as_chunks::<CHUNK>().0.iter().zip(b.as_chunks::<CHUNK>().0);
    // All differences of a chunk in one word: no branch within it, and the
    // compiler takes several frames at a time.
    let same = |(a, b): &(&[Code; CHUNK], &[Code; CHUNK])| {
        a.iter().zip(*b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    };
    let whole = CHUNK * chunks.take_while(same).count();
    let rest = a.iter().zip(b).skip(whole);
    whole + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_prefixes_end_anywhere() {
        let long: Vec<Code> = (1..100).collect();
        for len in 0..40 {
            for same in 0..=len {
                let mut other = long[..len].to_vec();
                if let Some(frame) = other.get_mut(same) {
                    *frame = 0;
                }
                assert_eq!(common_prefix(&long, &other), same);
                assert_eq!(common_prefix(&other, &long), same);
            }
        }
    }
}
