//! A stack of few frames, all of them plain: found anew by each walk.

use super::super::formats::CROSS_NEUTRAL;
use super::super::memory::Memory;
use super::super::table::FrameTables;
use super::Start;
use super::crossing::{Crossing, Witnesses, cross};
use super::run::{Cache, HIGHEST, Halt, Run, is_stack_pointer};

/// A stack of no more frames is walked whole: to meet so few of the previous walk
/// would take longer.
///
/// Fewer in tests, so that made-up stacks are of both kinds.
pub(super) const FEW: usize = if cfg!(test) { 8 } else { 16 };

/// Room for the codes of a small stack.
pub(super) type Few = [u64; FEW];

/// Walks a stack that has no more frames than that and no boundaries but its end,
/// and returns their codes, outermost first; `None` if it is another.
#[inline(always)]
pub(super) fn walk_few<'a, M: Memory>(
    memory: &M,
    tables: &FrameTables,
    cache: &mut Cache,
    start: Start,
    codes: &'a mut Few,
) -> Option<&'a [u64]> {
    let Start { sp, return_address, limit } = start;
    let highest = if limit == 0 { HIGHEST } else { limit.min(HIGHEST) };
    if return_address == 0 || !is_stack_pointer(sp, highest) {
        return None;
    }
    let mut run = Run::new(sp, return_address, FEW);
    let put = |place: usize, _, code| codes[place % FEW] = code;
    let Halt::Boundary(step) =
        run.go::<false, _>(memory, tables, cache, (highest, u64::MAX), 0, put)
    else {
        return None;
    };
    if step == CROSS_NEUTRAL {
        // A frame of its own.
        run.room = run.room.checked_sub(1)?;
        codes[run.room % FEW] = run.return_address;
    }
    match cross(memory, step, run.sp, &mut Witnesses::default()) {
        Crossing::End => codes.get(run.room..),
        Crossing::Frame { .. } | Crossing::Broken => None,
    }
}
