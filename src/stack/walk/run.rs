//! A run along plain frames: those whose caller is found by adding their size.

#![allow(unsafe_code, reason = "keeps the compiler from waiting for a load")]

use core::arch::asm;
use core::hint::select_unpredictable;

use super::super::formats::{Step, is_distance};
use super::super::memory::{Memory, opaque};
use super::super::table::FrameTables;

/// Sets of the cache from return address to hop: two entries of two words.
const SETS: usize = 1024;

/// An entry of the cache: a return address, and how to go on from it with what
/// followed it.
pub(super) type CacheEntry = [u64; 2];

/// How many entries the cache has.
pub(super) const CACHE_ENTRIES: usize = 2 * SETS;

/// What is known of return addresses that were met before: of those with the same
/// low bits, the two that came last, the last one first.
pub(super) type Cache = [[CacheEntry; 2]; SETS];

/// Of an entry's second word: how to go on. Above it is the entry that followed.
const HOP: u64 = u32::MAX as u64;

/// Set in a hop that is no plain distance, which would be added, but what to do at
/// a boundary.
const BOUNDARY: u64 = 1 << 31;

/// Between which a stack pointer can be: a frame's return address lies below it
/// and not at 0, and no frame's size leads from the highest around the end.
const LOWEST: u64 = 16;
pub(super) const HIGHEST: u64 = 1 << 63;

/// Whether a managed frame can be there.
pub(super) fn is_stack_pointer(sp: u64, highest: u64) -> bool {
    sp.is_multiple_of(8) && (LOWEST..=highest).contains(&sp)
}

/// After so many frames of a recursion more are to be expected.
pub(super) const ALIKE: usize = if cfg!(test) { 3 } else { 8 };

/// Where a run has come to: at a frame that is not put yet.
pub(super) struct Run {
    pub(super) sp: u64,
    pub(super) return_address: u64,
    /// Frames that there is room for.
    pub(super) room: usize,
    /// The cache's entry of the frame before.
    before: usize,
}

/// Why a run ended.
pub(super) enum Halt {
    /// At or above the witness.
    AtWitness,
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
        (highest, witness): (u64, u64),
        mut put: impl FnMut(usize, u64, u64),
    ) -> Halt {
        let Run { mut sp, mut return_address, mut room, mut before } = *self;
        let halt = 'run: loop {
            let entries = cache.as_flattened_mut();
            let mut entry = (entries[before][1] >> 32) as usize % CACHE_ENTRIES;
            if entries[entry][0] != return_address {
                let Some(found) = find(return_address, cache, tables) else {
                    break Halt::Boundary(0);
                };
                entry = found % CACHE_ENTRIES;
                let hop = &mut cache.as_flattened_mut()[before][1];
                *hop = *hop & HOP | (entry as u64) << 32;
            }
            before = entry;
            let distance = match distance_of(cache.as_flattened()[entry][1]) {
                Ok(distance) => distance,
                Err(step) => break Halt::Boundary(step),
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
                if sp > highest {
                    break 'run Halt::Broken;
                }
                let at = sp.wrapping_sub(8);
                // Not 0: `sp` was not below the lowest. And distances are
                // multiples of 8.
                let Some(word) = memory.aligned_word(at) else { break 'run Halt::Broken };
                return_address = word;
                if at >= witness {
                    break 'run Halt::AtWitness;
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
    pub(super) fn count_alike<M: Memory>(
        &self,
        memory: &M,
        distance: u64,
        (highest, witness): (u64, u64),
    ) -> usize {
        let at = self.sp.wrapping_sub(8);
        // A frame's stack pointer, 8 above, is not above the highest.
        let end = witness.min(highest.saturating_sub(7));
        memory.repeats(at, distance, end, self.return_address).min(self.room)
    }

    /// Goes on behind so many frames; where the return address was read, `None` if
    /// it could not be.
    pub(super) fn pass<M: Memory>(
        &mut self,
        memory: &M,
        count: usize,
        distance: u64,
        highest: u64,
    ) -> Option<u64> {
        self.room = self.room.saturating_sub(count);
        // Does not overflow: the last of them was not above the highest.
        self.sp = self.sp.wrapping_add(count as u64 * distance);
        if self.sp > highest {
            return None;
        }
        let at = self.sp.wrapping_sub(8);
        self.return_address = memory.aligned_word(at)?;
        Some(at)
    }
}

/// How far up the stack the caller of this frame is, or what to do at a boundary;
/// 0 if it is in no table. Without an entry's number, as [`find`] gives it, there
/// is less to compute for each frame.
#[inline(always)]
pub(super) fn hop(
    return_address: u64,
    cache: &mut Cache,
    tables: &FrameTables,
) -> Result<u64, Step> {
    let newest = cache[return_address as usize % SETS][0];
    if newest[0] == return_address {
        return distance_of(newest[1]);
    }
    let entry = find_older(return_address, cache, tables).ok_or(0_u64)?;
    distance_of(cache.as_flattened()[entry % CACHE_ENTRIES][1])
}

/// The same where so many functions are met that either entry of a set may be the
/// one: which it is, is not worth a guess.
#[inline(always)]
pub(super) fn hop_of_many(
    return_address: u64,
    cache: &mut Cache,
    tables: &FrameTables,
) -> Result<u64, Step> {
    let [newest, older] = cache[return_address as usize % SETS];
    let [is_newest, is_older] = [newest, older].map(|entry| entry[0] == return_address);
    let hop = select_unpredictable(is_newest, newest[1], older[1]);
    if opaque(is_newest.into()) | opaque(is_older.into()) != 0 {
        return distance_of(hop);
    }
    let entry = find_older(return_address, cache, tables).ok_or(0_u64)?;
    distance_of(cache.as_flattened()[entry % CACHE_ENTRIES][1])
}

/// What an entry's second word says; of an empty one it is 0.
#[inline(always)]
fn distance_of(hop: u64) -> Result<u64, Step> {
    if hop as i32 > 0 { Ok(hop & HOP) } else { Err(boundary(hop)) }
}

#[cold]
fn boundary(hop: u64) -> Step {
    hop & (HOP ^ BOUNDARY)
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

/// The cache's entry for a return address, which is fetched from the tables if
/// need be; `None` if it is not there either.
#[inline(always)]
fn find(return_address: u64, cache: &mut Cache, tables: &FrameTables) -> Option<usize> {
    // Their low bits are as good as a hash, and are there at once.
    let set = return_address as usize % SETS;
    if cache[set][0][0] == return_address {
        return Some(2 * set);
    }
    find_older(return_address, cache, tables)
}

/// The set's other entry, or one fetched from the tables in its place.
#[cold]
#[inline(never)]
fn find_older(return_address: u64, cache: &mut Cache, tables: &FrameTables) -> Option<usize> {
    let set = return_address as usize % SETS;
    let [newest, older] = &mut cache[set];
    if older[0] == return_address {
        return Some(2 * set + 1);
    }
    let step = tables.step(return_address);
    // What is in no table today may be in one tomorrow.
    if step == 0 || step >= BOUNDARY {
        return None;
    }
    *older = *newest;
    *newest = [return_address, if is_distance(step) { step } else { step | BOUNDARY }];
    Some(2 * set)
}
