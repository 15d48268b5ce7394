//! A run along plain frames: those whose caller is found by adding their size.

use super::super::formats::{Step, is_distance};
use super::super::memory::Memory;
use super::super::slots::spread;
use super::super::table::FrameTables;
use super::End;

/// Sets of the cache from return address to hop: two entries of two words.
const SETS: usize = 1024;

/// An entry of the cache: a return address, and how to go on from it with what
/// followed it.
pub(super) type CacheEntry = [u64; 2];

/// How many entries the cache has.
pub(super) const CACHE_ENTRIES: usize = 2 * SETS;

/// What is known of return addresses that were met before.
pub(super) type Cache = [CacheEntry; CACHE_ENTRIES];

/// Of an entry's second word: how to go on. Above it is the entry that followed.
const HOP: u64 = u32::MAX as u64;

/// Set in a hop that is a plain distance, which is added. Otherwise, above this
/// bit, is what to do at a boundary. A word of zeros is neither.
const PLAIN: u64 = 1;

/// Between which a stack pointer can be: a frame's return address lies below it
/// and not at 0, and no frame's size leads from the highest around the end.
const LOWEST: u64 = 16;
pub(super) const HIGHEST: u64 = 1 << 63;

/// Whether a managed frame can be there.
pub(super) fn is_stack_pointer(sp: u64, highest: u64) -> bool {
    sp.is_multiple_of(8) && (LOWEST..=highest).contains(&sp)
}

/// Where a run has come to: at a frame that is not put yet.
pub(super) struct Run {
    pub(super) sp: u64,
    pub(super) return_address: u64,
    /// Frames that there is room for.
    pub(super) room: usize,
    /// The cache's entry of the frame before, and where the last walk went on
    /// from there.
    before: usize,
    guess: usize,
}

/// Why a run ended.
pub(super) enum Halt {
    /// At or above the witness.
    AtWitness,
    /// At a frame that has no plain caller; 0 if it is in no table.
    Boundary(Step),
    Done(End),
}

impl Run {
    pub(super) fn new(sp: u64, return_address: u64, room: usize) -> Run {
        Run { sp, return_address, room, before: 0, guess: 0 }
    }

    /// Goes on as long as frames are plain and below the witness, and puts each
    /// into its place, from the last down: where its return address was read, and
    /// that address. The loop keeps all in registers: each frame's place depends
    /// on the one before, so what it waits for is what it costs.
    #[inline(always)]
    pub(super) fn go<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        cache: &mut Cache,
        highest: u64,
        witness: u64,
        mut put: impl FnMut(usize, u64, u64),
    ) -> Halt {
        let Run { mut sp, mut return_address, mut room, mut before, mut guess } = *self;
        let halt = loop {
            // Where the last walk went from here. A right guess is known to be
            // right only later, and is gone on with until then: so no frame
            // waits for the look-up of the one before.
            guess %= CACHE_ENTRIES;
            if cache[guess][0] != return_address {
                let Some(found) = find(return_address, cache, tables) else {
                    break Halt::Boundary(0);
                };
                guess = found % CACHE_ENTRIES;
                cache[before][1] = cache[before][1] & HOP | (guess as u64) << 32;
            }
            let hop = cache[guess][1];
            if hop & PLAIN == 0 {
                break Halt::Boundary((hop & HOP) >> 1);
            }
            if room == 0 {
                break Halt::Done(End::Cut);
            }
            before = guess;
            guess = (hop >> 32) as usize;
            room -= 1;
            put(room, sp.wrapping_sub(8), return_address);
            // Does not overflow: `sp` is not above the highest.
            sp = sp.wrapping_add(u64::from(hop as u32) - PLAIN);
            if sp > highest {
                break Halt::Done(End::Broken);
            }
            let at = sp.wrapping_sub(8);
            // Not 0: `sp` was not below the lowest. And steps are multiples of 8.
            let Some(word) = memory.aligned_word(at) else {
                break Halt::Done(End::Broken);
            };
            return_address = word;
            if at >= witness {
                break Halt::AtWitness;
            }
        };
        *self = Run { sp, return_address, room, before, guess };
        halt
    }
}

/// The cache's entry for a return address, which is fetched from the tables if
/// need be; `None` if it is not there either.
#[inline(always)]
fn find(return_address: u64, cache: &mut Cache, tables: &FrameTables) -> Option<usize> {
    let newest =
        2 * (spread(return_address) >> (64 - SETS.trailing_zeros())) as usize % CACHE_ENTRIES;
    if cache[newest][0] == return_address {
        return Some(newest);
    }
    find_older(return_address, newest, cache, tables)
}

/// The set's other entry, or one fetched from the tables in its place.
#[cold]
#[inline(never)]
fn find_older(
    return_address: u64,
    newest: usize,
    cache: &mut Cache,
    tables: &FrameTables,
) -> Option<usize> {
    let (newest, older) = (newest % CACHE_ENTRIES, (newest | 1) % CACHE_ENTRIES);
    if cache[older][0] == return_address {
        return Some(older);
    }
    let step = tables.step(return_address);
    // What is in no table today may be in one tomorrow.
    if step == 0 || step >= HOP >> 1 {
        return None;
    }
    cache[older] = cache[newest];
    cache[newest] = [return_address, if is_distance(step) { step | PLAIN } else { step << 1 }];
    Some(newest)
}
