//! A stack of few frames, all of them plain: found anew by each walk.

use super::super::memory::Memory;
use super::super::step::CROSS_NEUTRAL;
use super::super::table::FrameTables;
use super::Start;
use super::crossing::ends;
use super::run::{Cache, is_stack_pointer, onwards, words_from};

/// A stack of no more frames is walked whole: to meet so few of the previous walk
/// would take longer.
///
/// Fewer in tests, so that made-up stacks are of both kinds.
pub(crate) const FEW: usize = if cfg!(test) { 8 } else { 32 };

/// Walks a stack that has no more frames than that and no boundaries but its end,
/// puts their codes into the room, innermost first, and tells how many they are;
/// `None` if it is another.
#[inline(always)]
pub(super) fn walk_few<M: Memory>(
    memory: &M,
    tables: &FrameTables,
    cache: &mut Cache,
    start: Start,
    codes: &mut [u64; FEW],
) -> Option<usize> {
    let Start { mut sp, mut return_address } = start;
    if return_address == 0 || !is_stack_pointer(sp) {
        return None;
    }
    let (mut count, mut usual) = (0, 0);
    let step = loop {
        let words = match words_from(return_address, cache, tables) {
            Ok(words) => words,
            Err(step) => break step,
        };
        *codes.get_mut(count)? = return_address;
        count += 1;
        // So few steps do not lead around the end.
        sp = onwards(sp, words, &mut usual);
        // Not 0, and aligned: as in a run.
        return_address = memory.aligned_word(sp.wrapping_sub(8))?;
    };
    if step == CROSS_NEUTRAL {
        // A frame of its own.
        *codes.get_mut(count)? = return_address;
        count += 1;
    }
    ends(memory, tables, step, sp).then_some(count)
}
