//! A run along plain frames: those whose caller is found by adding their size.

#![allow(unsafe_code, reason = "keeps the compiler from waiting for a load")]

use core::arch::asm;

use super::super::memory::{Memory, opaque};
use super::super::step::{Step, is_distance};
use super::super::table::FrameTables;

/// Places of the cache from return address to hop.
pub(super) const PLACES: usize = 2048;

/// What is known of return addresses that were met before. Each has one place, by
/// its low bits, which are as good as a hash and are there at once. An entry is
/// one word, the address's other bits with the hop's inverse below them, so that as
/// many as possible are close by, and an empty one is nobody's.
///
/// Of the addresses with the same place there are the [`NEWEST`] and the one before;
/// and what [`FOLLOWED`] there is the place of the frame that came next.
pub(super) type Cache = [[u64; PLACES]; 3];

const NEWEST: usize = 0;
const OLDER: usize = 1;
const FOLLOWED: usize = 2;

/// Where an entry has the hop: neither 0 nor all of these bits. A distance is in
/// words, and one that is too long for that is looked up in the tables each time.
const HOP: u64 = PLACES as u64 - 1;

/// Set in a hop that is no plain distance, but what to do at a boundary.
const BOUNDARY: u64 = PLACES as u64 / 2;

/// Between which a stack pointer can be: a frame's return address lies below it
/// and not at 0, and no frame's size leads from the highest around the end.
const LOWEST: u64 = 16;
const HIGHEST: u64 = 1 << 63;

/// No frame's return address is there or above: the frame's stack pointer, 8 above,
/// would be above the highest.
pub(super) const BEYOND: u64 = HIGHEST - 7;

/// Whether a managed frame can be there.
pub(super) fn is_stack_pointer(sp: u64) -> bool {
    sp.is_multiple_of(8) && (LOWEST..=HIGHEST).contains(&sp)
}

/// After so many frames of a recursion more are to be expected.
pub(super) const ALIKE: usize = if cfg!(test) { 3 } else { 8 };

/// Where a run has come to: at a frame that is not put yet.
pub(super) struct Run {
    pub(super) sp: u64,
    pub(super) return_address: u64,
    /// Frames that there is room for.
    pub(super) room: usize,
    /// The cache's place of the frame before.
    before: usize,
}

/// Why a run ended.
pub(super) enum Halt {
    /// At or above the witness, where the return address was read.
    AtWitness {
        at: u64,
    },
    /// At a frame that has no plain caller; 0 if it is in no table.
    Boundary(Step),
    /// At a frame that has the return address of the [`ALIKE`] put last, each so
    /// far from the next.
    Alike {
        distance: u64,
    },
    /// There is no room for more.
    Full,
    Broken,
}

impl Run {
    pub(super) fn new(sp: u64, return_address: u64, room: usize) -> Run {
        Run { sp, return_address, room, before: 0 }
    }

    /// Goes on as long as frames are plain and below the witness, and puts each
    /// into its place, from the last down: where its return address was read, and
    /// that address. The loop keeps all in registers: each frame's place depends
    /// on the one before, so what it waits for is what it costs.
    ///
    /// It does not wait for look-ups: it takes the frame that last came next for
    /// the one that comes now, and finds out later.
    #[inline(always)]
    pub(super) fn go<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        cache: &mut Cache,
        witness: u64,
        mut put: impl FnMut(usize, u64, u64),
    ) -> Halt {
        let Run { mut sp, mut return_address, mut room, mut before } = *self;
        let halt = 'run: loop {
            let followed = cache[FOLLOWED][before % PLACES];
            // To the compiler, it has nothing to do with what it is compared with.
            let guess = opaque(followed) as usize % PLACES;
            let entry = cache[NEWEST][guess];
            let hop = !entry & HOP;
            let known = (entry ^ return_address) & !HOP == 0 && hop < BOUNDARY;
            let distance = if followed == return_address & HOP && known {
                before = guess;
                8 * hop
            } else {
                cache[FOLLOWED][before % PLACES] = return_address & HOP;
                before = return_address as usize % PLACES;
                match words_from(return_address, cache, tables) {
                    Ok(words) => 8 * words,
                    Err(step) => break Halt::Boundary(step),
                }
            };
            let code = return_address;
            // Once, unless a function has called itself.
            for alike in 1.. {
                if room == 0 {
                    break 'run Halt::Full;
                }
                room -= 1;
                put(room, sp.wrapping_sub(8), code);
                // Does not overflow: `sp` is not above the highest.
                sp = sp.wrapping_add(distance);
                let at = sp.wrapping_sub(8);
                // Not 0: `sp` was not below the lowest. And distances are
                // multiples of 8.
                let Some(word) = memory.aligned_word(at) else { break 'run Halt::Broken };
                return_address = word;
                if at >= witness {
                    break 'run Halt::AtWitness { at };
                }
                if word != code {
                    break;
                }
                if alike == ALIKE {
                    break 'run Halt::Alike { distance };
                }
            }
        };
        *self = Run { sp, return_address, room, before };
        halt
    }

    /// How many frames from here on have the same return address, each so far from
    /// the next: those below the witness that there is room for.
    pub(super) fn count_alike<M: Memory>(&self, memory: &M, distance: u64, witness: u64) -> usize {
        let at = self.sp.wrapping_sub(8);
        memory.repeats(at, distance, witness, self.return_address).min(self.room)
    }

    /// Goes on behind so many frames; where the return address was read, `None` if
    /// it could not be.
    pub(super) fn pass<M: Memory>(
        &mut self,
        memory: &M,
        count: usize,
        distance: u64,
    ) -> Option<u64> {
        self.room = self.room.saturating_sub(count);
        // Does not overflow: the last of them was not above the highest.
        self.sp = self.sp.wrapping_add(count as u64 * distance);
        let at = self.sp.wrapping_sub(8);
        self.return_address = memory.aligned_word(at)?;
        Some(at)
    }
}

/// How many words up the stack the caller of this frame is, or what to do at a
/// boundary; 0 if it is in no table.
#[inline(always)]
pub(super) fn words_from(
    return_address: u64,
    cache: &mut Cache,
    tables: &FrameTables,
) -> Result<u64, Step> {
    let newest = cache[NEWEST][return_address as usize % PLACES];
    let hop = newest ^ key(return_address);
    if hop < BOUNDARY {
        return Ok(hop);
    }
    let step = step_of(hop).unwrap_or_else(|| find_older(return_address, cache, tables));
    if is_distance(step) { Ok(step / 8) } else { Err(step) }
}

/// What an entry has of an address, which leaves the hop if it is that address's.
#[inline(always)]
const fn key(return_address: u64) -> u64 {
    return_address | HOP
}

/// The step of a hop, if it is one.
const fn step_of(hop: u64) -> Option<Step> {
    match hop {
        1..BOUNDARY => Some(8 * hop),
        BOUNDARY..HOP => Some(hop ^ BOUNDARY),
        _ => None,
    }
}

/// So many words up the stack, as if it were as far as the last time: many frames
/// of one stack are of one function, and so of one size. If that is foreseen
/// rightly nothing waits for the distance, which took two loads to find. So it is a
/// branch, where the compiler would rather add what it has to wait for.
#[inline(always)]
pub(super) fn onwards(sp: u64, words: u64, usual: &mut u64) -> u64 {
    let foreseen = opaque(sp.wrapping_add(8 * *usual));
    if words == *usual {
        return foreseen;
    }
    // SAFETY: no instruction; the compiler keeps the branch around it.
    unsafe { asm!("", options(nomem, nostack, preserves_flags)) };
    *usual = words;
    sp.wrapping_add(8 * words)
}

/// The step of an address that is not the newest of its place. It is that then, if
/// it is in any table: what is in none today may be in one tomorrow.
#[cold]
#[inline(never)]
fn find_older(return_address: u64, cache: &mut Cache, tables: &FrameTables) -> Step {
    let place = return_address as usize % PLACES;
    let key = key(return_address);
    let older = cache[OLDER][place];
    let (entry, step) = match step_of(older ^ key) {
        Some(step) => (older, step),
        None => {
            let step = tables.step(return_address);
            let Some(hop) = hop_of(step) else { return step };
            (key ^ hop, step)
        }
    };
    cache[OLDER][place] = cache[NEWEST][place];
    cache[NEWEST][place] = entry;
    step
}

/// The hop of a step, if there is one.
fn hop_of(step: Step) -> Option<u64> {
    let hop = if is_distance(step) { step / 8 } else { step | BOUNDARY };
    (step != 0 && step_of(hop) == Some(step)).then_some(hop)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::super::formats::neutral::{self, NO_PLACE, NeutralFrame};
    use super::*;

    /// Return addresses with sizes: three of one place, one too large for a hop, and
    /// two boundaries. And some that are in no table, of the same places.
    const FRAMES: [(u64, u32); 6] = [
        (0x7_0001, 16),
        (0x8_0001, 8 * (BOUNDARY as u32 - 1)),
        (0x9_0001, neutral::BOUNDARY),
        (0x7_0002, 8 * BOUNDARY as u32),
        (0x7_0003, neutral::BOUNDARY),
        (0x8_0002, 8),
    ];
    const OTHERS: [u64; 8] =
        [0, 1, HOP, 0x6_0001, 0x7_0004, 0x7_0001 | 1 << 52, u64::MAX, u64::MAX << 11];

    proptest! {
        #[test]
        fn the_cache_says_what_the_tables_say(
            asked in prop::collection::vec(0..FRAMES.len() + OTHERS.len(), 0..60),
        ) {
            let frame = |(return_address, size): (u64, u32)| NeutralFrame {
                return_address: return_address as usize,
                size,
                place: NO_PLACE,
            };
            let frames = FRAMES.map(frame);
            let tables = FrameTables::new();
            // SAFETY: as long as said, and without places.
            unsafe { tables.add_neutral(frames.as_ptr(), frames.len(), core::ptr::null(), 0) }
                .expect("sound");
            let mut cache: Box<Cache> = vec![[0; PLACES]; 3].try_into().expect("three");
            for which in asked {
                let known = FRAMES.get(which).map(|(return_address, _)| *return_address);
                let address = known.unwrap_or_else(|| OTHERS[which - FRAMES.len()]);
                let step = tables.step(address);
                prop_assert_eq!(step != 0, known.is_some());
                let expected = if is_distance(step) { Ok(step / 8) } else { Err(step) };
                prop_assert_eq!(words_from(address, &mut cache, &tables), expected);
            }
        }

        #[test]
        fn a_hop_says_what_its_step_says(step in prop_oneof![0..20_000_u64, any::<u64>()]) {
            let most = if is_distance(step) { 8 * BOUNDARY } else { BOUNDARY - 1 };
            prop_assert_eq!(hop_of(step).is_some(), (1..most).contains(&step));
            if let Some(hop) = hop_of(step) {
                prop_assert_eq!(step_of(hop), Some(step));
                prop_assert_eq!(hop < BOUNDARY, is_distance(step));
            }
        }
    }
}
