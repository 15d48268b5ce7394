//! A run along plain frames: those whose caller is found by adding their size.

#![allow(unsafe_code, reason = "keeps the compiler from waiting for a load")]

use core::arch::asm;

use super::super::formats::{Step, is_distance};
use super::super::memory::{Memory, opaque};
use super::super::table::FrameTables;

/// Places of the cache from return address to hop.
pub(super) const PLACES: usize = 2048;

/// What is known of return addresses that were met before. Each has one place, by
/// its low bits, which are as good as a hash and are there at once. An entry is
/// one word, the address's other bits with the hop below them, so that as many as
/// possible are close by.
///
/// Of the addresses with the same place there are the [`NEWEST`] and the one before;
/// and what [`FOLLOWED`] there is the place of the frame that came next.
pub(super) type Cache = [[u64; PLACES]; 3];

const NEWEST: usize = 0;
const OLDER: usize = 1;
const FOLLOWED: usize = 2;

/// Where an entry has the hop: 0 in one that is empty. A distance is in words, and
/// one that is too long for that is looked up in the tables each time.
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
            let known = (entry ^ return_address) & !HOP == 0 && is_distance_hop(entry & HOP);
            let distance = if followed == return_address & HOP && known {
                before = guess;
                8 * (entry & HOP)
            } else {
                cache[FOLLOWED][before % PLACES] = return_address & HOP;
                before = return_address as usize % PLACES;
                match hop(return_address, cache, tables) {
                    Ok(distance) => distance,
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

/// How far up the stack the caller of this frame is, or what to do at a boundary;
/// 0 if it is in no table.
#[inline(always)]
pub(super) fn hop(
    return_address: u64,
    cache: &mut Cache,
    tables: &FrameTables,
) -> Result<u64, Step> {
    let entry = cache[NEWEST][return_address as usize % PLACES];
    // Only the hop if it is this address's.
    let hop = entry ^ return_address & !HOP;
    if is_distance_hop(hop) {
        return Ok(8 * hop);
    }
    let step = step_of(hop).unwrap_or_else(|| find_older(return_address, cache, tables));
    if is_distance(step) { Ok(step) } else { Err(step) }
}

/// Whether a hop, if it is one, is a plain distance.
#[inline(always)]
const fn is_distance_hop(hop: u64) -> bool {
    hop.wrapping_sub(1) < BOUNDARY - 1
}

/// The step of a hop, if it is one.
#[inline(always)]
const fn step_of(hop: u64) -> Option<Step> {
    match hop {
        1..BOUNDARY => Some(8 * hop),
        BOUNDARY..=HOP => Some(hop ^ BOUNDARY),
        _ => None,
    }
}

/// So far up the stack, as if it were as far as the last time: many frames of one
/// stack are of one function, and so of one size. If that is foreseen rightly
/// nothing waits for the distance, which took two loads to find. So it is a
/// branch, where the compiler would rather add what it has to wait for.
#[inline(always)]
pub(super) fn onwards(sp: u64, distance: u64, usual: &mut u64) -> u64 {
    let foreseen = opaque(sp.wrapping_add(*usual));
    if distance == *usual {
        return foreseen;
    }
    // SAFETY: no instruction; the compiler keeps the branch around it.
    unsafe { asm!("", options(nomem, nostack, preserves_flags)) };
    *usual = distance;
    sp.wrapping_add(distance)
}

/// The step of an address that is not the newest of its place. It is that then, if
/// it is in any table: what is in none today may be in one tomorrow.
#[cold]
#[inline(never)]
fn find_older(return_address: u64, cache: &mut Cache, tables: &FrameTables) -> Step {
    let place = return_address as usize % PLACES;
    let address = return_address & !HOP;
    let entry = cache[OLDER][place];
    let (entry, step) = match step_of(entry ^ address) {
        Some(step) => (entry, step),
        None => {
            let step = tables.step(return_address);
            let Some(hop) = hop_of(step) else { return step };
            (address | hop, step)
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

    use super::*;

    proptest! {
        #[test]
        fn a_hop_says_what_its_step_says(step in prop_oneof![0..20_000_u64, any::<u64>()]) {
            let most = if is_distance(step) { 8 * BOUNDARY } else { BOUNDARY };
            prop_assert_eq!(hop_of(step).is_some(), (1..most).contains(&step));
            if let Some(hop) = hop_of(step) {
                prop_assert!(hop != 0 && hop <= HOP);
                prop_assert_eq!(step_of(hop), Some(step));
                prop_assert_eq!(is_distance_hop(hop), is_distance(step));
            }
        }
    }
}
