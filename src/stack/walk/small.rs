//! The walk of a small stack: a few frames in one chunk, found anew each time.

use super::super::memory::Memory;
use super::super::step::CROSS_NEUTRAL;
use super::super::table::FrameTables;
use super::Start;
use super::crossing::ends;
use super::step_cache::{StepCache, distance_to_caller};
use crate::SMALL_LIMITS;

/// The most frames of a small stack. To rejoin the last walk would take longer than to
/// walk them all.
///
/// Fewer in unit tests, so that made-up stacks are of both kinds.
pub(crate) const SMALL_STACK: usize = if SMALL_LIMITS { 8 } else { 32 };

/// Writes the codes of a small stack, innermost first, and returns their number;
/// `None` if the stack is not small.
///
/// Inlined up to the recorder. `benches/overhead --only hooks` counted 30 instructions less for
/// each sample of a small stack since this and since rules say by data where a stack ends.
#[inline(always)]
pub(super) fn walk_small<M: Memory>(
    memory: &M,
    tables: &FrameTables,
    cache: &mut StepCache,
    start: Start,
    codes: &mut [u64; SMALL_STACK],
) -> Option<usize> {
    if !start.is_plausible() {
        return None;
    }
    let Start { mut sp, mut return_address } = start;
    let mut count = 0;
    let boundary = loop {
        let distance = match distance_to_caller(return_address, cache, tables) {
            Ok(distance) => distance,
            Err(step) => break step,
        };
        *codes.get_mut(count)? = return_address;
        count += 1;
        // Does not overflow: so few frames do not reach the end of the address space.
        sp = sp.wrapping_add(distance);
        return_address = memory.aligned_word(sp.wrapping_sub(8))?;
    };
    if boundary == CROSS_NEUTRAL {
        // This boundary is a frame, too.
        *codes.get_mut(count)? = return_address;
        count += 1;
    }
    ends(memory, tables, boundary, sp).then_some(count)
}
