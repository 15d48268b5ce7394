//! Backtraces as the encoder writes them.
//!
//! A code that is in neither of its two slots enters the one that was named
//! longest ago. After a hit, predictions are followed for as long as they are
//! right; only their number is written. Here this is done entry by entry, as the
//! format defines it; most backtraces take the faster path of `cached`.

use crate::memtrace::cache::{Cache, Slot, homes, index};
use crate::memtrace::header::CacheCheck;
use crate::memtrace::rules::{MAX_ENTRY, MAX_EVENT_BODY, MAX_PREDICTED, SLOTS};
use crate::memtrace::wire::Packet;
use crate::memtrace::zeroed::{UNTOUCHED, boxed};
use crate::model::LeftOut;
use crate::model::event::{Code, is_code};

pub(super) type Dates = [u64; UNTOUCHED / size_of::<u64>()];

/// The cache with what only a writer needs.
pub(crate) struct Stack {
    pub(super) cache: Cache<{ UNTOUCHED / size_of::<Code>() }, { UNTOUCHED / size_of::<Slot>() }>,
    /// The id of the allocation that last named each slot. Only the first [`SLOTS`] are used.
    pub(super) dates: Box<Dates>,
    next_check: Slot,
    /// Where [`Stack::find_cached`] found the codes of one allocation.
    pub(super) found: Box<[Slot; MAX_CACHED]>,
}

/// The most new frames that `cached` writes. More are recursions, which
/// [`Stack::put`] is quicker at; and no entry can predict more than 255.
pub(super) const MAX_CACHED: usize = 63;

/// Bytes for the entries of a number of frames. One frame takes 2 bytes, two take 2
/// and more take 3; each is written 4 bytes at a time.
pub(super) const CACHED_ROOM: usize = CACHED_ENTRIES + 4;
pub(super) const CACHED_ENTRIES: usize = 2 * (MAX_CACHED + 1);

/// The slot of the first cache check, and the step to each next one.
const FIRST_CHECK: Slot = 4242;
const CHECK_STEP: Slot = 5413;

/// The initial content of slot 0. Empty slots hold 0, which is not a code, but
/// the slots of 0 are slot 0, where a search for it must fail. This is not a code
/// either, and its slots are others.
const NO_CODE: Code = 1 << 62 | 1;

/// Up to this length of a backtrace in bytes, even the largest entry fits.
const ROOM: usize = MAX_EVENT_BODY - MAX_ENTRY;

/// The number of frames at the allocation point that are kept when a backtrace
/// loses its middle: enough to understand the allocation, few enough for a
/// recursion of 262,144 frames to fit before them.
const TAIL: usize = 90;

impl Stack {
    pub(crate) fn new() -> Self {
        let mut cache = Cache::new();
        cache.codes[0] = NO_CODE;
        Stack { cache, dates: boxed(), next_check: FIRST_CHECK, found: boxed() }
    }

    /// The cache check for the next packet.
    pub(crate) fn check(&mut self) -> CacheCheck {
        let slot = self.next_check;
        self.next_check = (slot + CHECK_STEP) & (SLOTS as Slot - 1);
        let mut check = self.cache.check(slot);
        if check.code == NO_CODE {
            check.code = 0;
        }
        check
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
        let limit = packet.len() + ROOM;
        self.put_until(packet, frames, id, 0, limit, missed).0
    }

    /// The same, but if there is no room for all, one frame replaces those in the
    /// middle: its code is `left_out` plus their number. Also returns what was
    /// left out.
    pub(crate) fn put_elided(
        &mut self,
        packet: &mut Packet,
        frames: &[Code],
        left_out: Code,
        id: u64,
        missed: &mut Vec<Code>,
    ) -> (u16, Option<LeftOut>) {
        let limit = packet.len() + ROOM;
        let head_limit = limit - (TAIL + 1) * MAX_ENTRY;
        let (tail_start, may_be_cut) = match frames.len().checked_sub(TAIL) {
            Some(start) if frames.len() * MAX_ENTRY > ROOM => (start, true),
            _ => (frames.len(), false),
        };
        if !may_be_cut {
            return (self.put_until(packet, frames, id, 0, limit, missed).0, None);
        }
        let (head, tail) = frames.split_at(tail_start);
        let (entries, predictor, rest) = self.put_until(packet, head, id, 0, head_limit, missed);
        let count = rest.len() as u64;
        let marker = [left_out + count];
        let marker = if count == 0 { &[] } else { marker.as_slice() };
        let (one, predictor, _) = self.put_until(packet, marker, id, predictor, limit, missed);
        let (more, ..) = self.put_until(packet, tail, id, predictor, limit, missed);
        let cut = LeftOut { kept: head.len() - rest.len(), count };
        (entries + one + more, (count != 0).then_some(cut))
    }

    /// Writes entries until the packet is longer than `limit`. Returns their
    /// number, the slot of the last frame, and the frames left.
    #[inline(always)]
    fn put_until<'a>(
        &mut self,
        packet: &mut Packet,
        frames: &'a [Code],
        id: u64,
        mut predictor: Slot,
        limit: usize,
        missed: &mut Vec<Code>,
    ) -> (u16, Slot, &'a [Code]) {
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
        (entries, predictor, rest)
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
            // Without room for a following entry, this one is the last.
            let predictable = if packet.len() + 2 > limit { &[] } else { rest };
            self.dates[index(slot)] = id;
            self.cache.predictions[index(predictor)] = slot;
            let (right, last) = self.predicted(slot, predictable);
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

    /// The number of frames, at most 255, that the predictions from `slot` get
    /// right, and the slot of the last one.
    #[inline(always)]
    fn predicted(&self, slot: Slot, frames: &[Code]) -> (usize, Slot) {
        let most = frames.get(..MAX_PREDICTED).unwrap_or(frames);
        let mut last = slot;
        let mut rest = most;
        while let [code, behind @ ..] = rest {
            let next = self.cache.predictions[index(last)];
            if self.cache.codes[index(next)] != *code {
                break;
            }
            rest = behind;
            if next == last {
                // A recursion predicts itself.
                rest = rest.get(repeats(*code, rest)..).unwrap_or(&[]);
            }
            last = next;
        }
        (most.len() - rest.len(), last)
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

/// The number of frames at the start that have this code.
#[inline(always)]
fn repeats(code: Code, frames: &[Code]) -> usize {
    let whole = CHUNK * frames.as_chunks().0.iter().take_while(|some| are_all(code, some)).count();
    let rest = frames.get(whole..).unwrap_or(&[]);
    whole + rest.iter().take_while(|&&other| other == code).count()
}

/// The number of frames compared at a time.
const CHUNK: usize = 8;

/// Whether all of these are the same. All differences go into one word, so that
/// there is no branch and the compiler vectorises it.
#[inline(always)]
fn are_all(code: Code, frames: &[Code; CHUNK]) -> bool {
    frames.iter().fold(0, |differences, other| differences | (other ^ code)) == 0
}

/// The first frame that is not a valid code.
#[inline(always)]
pub(crate) fn first_without_code(frames: &[Code]) -> Option<Code> {
    let (chunks, rest) = frames.as_chunks();
    let mut last = 1;
    // In a recursion, chunks equal to the last code need no check.
    let mut different = chunks.iter().filter(|some| {
        let same = are_all(last, some);
        [.., last] = **some;
        !same
    });
    let all_are = |some: &[Code]| some.iter().fold(true, |all, &code| all & is_code(code));
    if different.all(|some| all_are(some)) && all_are(rest) {
        return None;
    }
    frames.iter().copied().find(|&code| !is_code(code))
}

/// The number of frames that two backtraces share at the `main` end.
pub(crate) fn common_prefix(a: &[Code], b: &[Code]) -> usize {
    let chunks = a.as_chunks::<CHUNK>().0.iter().zip(b.as_chunks::<CHUNK>().0);
    // All differences of a chunk go into one word, as in `are_all`.
    let same = |(a, b): &(&[Code; CHUNK], &[Code; CHUNK])| {
        a.iter().zip(*b).fold(0, |differences, (a, b)| differences | (a ^ b)) == 0
    };
    let whole = CHUNK * chunks.take_while(same).count();
    let rest = a.iter().zip(b).skip(whole);
    whole + rest.take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_initial_content_of_slot_0_is_not_found() {
        assert!(!is_code(NO_CODE));
        assert_eq!(homes(0), (0, 0));
        let (first, second) = homes(NO_CODE);
        assert!(first != 0 && second != 0);
        let mut stack = Stack::new();
        stack.next_check = 0;
        assert_eq!(stack.check().code, 0);
    }

    /// As the format defines it.
    fn predicted_one_by_one(stack: &Stack, slot: Slot, frames: &[Code]) -> (usize, Slot) {
        let (mut right, mut last) = (0, slot);
        for &code in frames.iter().take(MAX_PREDICTED) {
            let next = stack.cache.predictions[index(last)];
            if stack.cache.codes[index(next)] != code {
                break;
            }
            (right, last) = (right + 1, next);
        }
        (right, last)
    }

    proptest! {
        #[test]
        fn recursions_are_predicted(
            known in prop::collection::vec(1..5_u64, 1..20),
            runs in prop::collection::vec((1..5_u64, prop_oneof![1..4_usize, 1..300_usize]), 0..8),
        ) {
            let mut stack = Stack::new();
            stack.put(&mut Packet::new(), &known, 0, &mut Vec::new());
            let frames: Vec<_> =
                runs.iter().flat_map(|&(code, times)| vec![code; times]).collect();
            for &code in &known {
                let slot = stack.find(code).unwrap();
                let expected = predicted_one_by_one(&stack, slot, &frames);
                prop_assert_eq!(stack.predicted(slot, &frames), expected);
            }
        }

        #[test]
        fn invalid_codes_are_found(
            runs in prop::collection::vec(
                (prop_oneof![8 => 1..4_u64, 1 => Just(0), 1 => Just(1 << 62)], 1..20_usize),
                0..6,
            ),
        ) {
            let frames: Vec<_> =
                runs.iter().flat_map(|&(code, times)| vec![code; times]).collect();
            let expected = frames.iter().copied().find(|&code| !is_code(code));
            prop_assert_eq!(first_without_code(&frames), expected);
        }
    }

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
