//! The walk as it would be without anything kept: the oracle of the tests and the
//! yardstick of the benches. Allocates, so it is not for hooks.

use super::super::memory::Memory;
use super::super::step::{CROSS_NEUTRAL, is_distance};
use super::super::table::FrameTables;
use super::crossing::{Crossing, Witnesses, cross};
use super::{End, MARKERS, Start, is_stack_pointer};

/// The codes of a stack, outermost first, and how the walk ended. Ends with
/// [`End::Cut`] after `max_frames`, which only a stack that leads back into itself needs.
pub(crate) fn walk<M: Memory>(
    memory: &M,
    tables: &FrameTables,
    start: Start,
    max_frames: usize,
) -> (Vec<u64>, End) {
    let mut codes = Vec::new();
    let end = walk_outwards(memory, tables, start, max_frames, &mut codes);
    codes.reverse();
    (codes, end)
}

fn walk_outwards<M: Memory>(
    memory: &M,
    tables: &FrameTables,
    start: Start,
    max_frames: usize,
    codes: &mut Vec<u64>,
) -> End {
    let Start { mut sp, mut return_address } = start;
    if return_address == 0 {
        return End::Complete;
    }
    // Each frame and each crossing.
    for _ in 0..2 * max_frames {
        if !is_stack_pointer(sp) {
            return End::Broken;
        }
        let step = tables.step(return_address);
        if step == 0 {
            return End::Unknown;
        }
        if is_distance(step) || step == CROSS_NEUTRAL {
            codes.push(return_address);
        }
        if is_distance(step) {
            sp += step;
            let Some(word) = memory.word(sp - 8) else { return End::Broken };
            return_address = word;
        } else {
            match cross(memory, tables, step, sp, &mut Witnesses::default()) {
                None => return End::Broken,
                Some(Crossing::End) => return End::Complete,
                Some(Crossing::Frame { sp: next, return_address: code, .. }) => {
                    (sp, return_address) = (next, code);
                }
            }
        }
    }
    End::Cut
}

/// Compares walks with the ones before, code by code.
#[derive(Default)]
pub(crate) struct NaiveWalker {
    markers: [u64; MARKERS],
    /// The codes of the last walk that the receiver has, markers included.
    received: Vec<u64>,
}

impl NaiveWalker {
    /// All codes of a stack to be reported, and how many of them the receiver has: the
    /// longest common run with the walk before, or none if the markers have changed.
    pub(crate) fn report(&mut self, frames: &[u64], markers: [u64; MARKERS]) -> (Vec<u64>, usize) {
        if self.markers != markers {
            self.received.clear();
        }
        self.markers = markers;
        let marks = markers.into_iter().filter(|code| *code != 0);
        let codes: Vec<_> = marks.chain(frames.iter().copied()).collect();
        let both = self.received.iter().zip(&codes);
        let prefix = both.take_while(|(old, new)| old == new).count();
        self.received.clone_from(&codes);
        (codes, prefix)
    }

    /// The receiver did not get the last walk, but for this many codes.
    pub(crate) fn rewind(&mut self, codes: usize) {
        self.received.truncate(codes);
    }
}
