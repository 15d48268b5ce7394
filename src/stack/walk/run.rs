//! A run along plain frames: those whose caller is found by adding their size.

use super::super::formats::{Step, is_distance};
use super::super::memory::Memory;
use super::super::table::FrameTables;

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
    /// There is no room for more.
    Full,
    Broken,
}

impl Run {
    pub(super) fn new(sp: u64, return_address: u64, room: usize) -> Run {
        Run { sp, return_address, room, before: 0 }
    }

    /// Goes on as long as frames are plain and below the witness, and puts each
    /// into its place, from the last down to `full`: where its return address was
    /// read, and that address. The loop keeps all in registers: each frame's
    /// place depends on the one before, so what it waits for is what it costs.
    ///
    /// With `GUESS` it does not wait for look-ups: it takes the frame that last
    /// came next for the one that comes now, and finds out later. That is worth
    /// it in a long recursion; the first few frames are those that have changed
    /// since the last walk, and guesses at them are wrong more often than not.
    #[inline(always)]
    pub(super) fn go<const GUESS: bool, M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        cache: &mut Cache,
        (highest, witness): (u64, u64),
        full: usize,
        mut put: impl FnMut(usize, u64, u64),
    ) -> Halt {
        let Run { mut sp, mut return_address, mut room, mut before } = *self;
        let halt = 'run: loop {
            let mut entry = if GUESS { (cache[before][1] >> 32) as usize } else { 0 };
            entry %= CACHE_ENTRIES;
            if !GUESS || cache[entry][0] != return_address {
                let Some(found) = find(return_address, cache, tables) else {
                    break Halt::Boundary(0);
                };
                entry = found % CACHE_ENTRIES;
                if GUESS {
                    cache[before][1] = cache[before][1] & HOP | (entry as u64) << 32;
                }
            }
            let hop = cache[entry][1];
            // Of an empty entry it is 0.
            if hop as i32 <= 0 {
                break Halt::Boundary(hop & (HOP ^ BOUNDARY));
            }
            before = entry;
            let (code, distance) = (return_address, u64::from(hop as u32));
            // Once, unless a function has called itself.
            loop {
                if room <= full {
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
                if !GUESS || word != code {
                    break;
                }
            }
        };
        *self = Run { sp, return_address, room, before };
        halt
    }
}

/// The cache's entry for a return address, which is fetched from the tables if
/// need be; `None` if it is not there either.
#[inline(always)]
fn find(return_address: u64, cache: &mut Cache, tables: &FrameTables) -> Option<usize> {
    // Their low bits are as good as a hash, and are there at once.
    let newest = 2 * (return_address as usize % SETS);
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
    if step == 0 || step >= BOUNDARY {
        return None;
    }
    cache[older] = cache[newest];
    cache[newest] = [return_address, if is_distance(step) { step } else { step | BOUNDARY }];
    Some(newest)
}
