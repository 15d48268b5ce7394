//! Young heaps that are filled upwards.
//!
//! Addresses are mirrored: what is at `a` counts as being at [`MIRROR`] - `a`, where the heap is
//! filled downwards and samples are placed as in any other. Nothing else knows of directions.

use crate::sampling::{PartSizes, SampledPart, WORD};
use crate::stack::native::Registers;
use crate::tracer::failure::Failure;
use crate::tracer::mutator::{Mutator, YoungHit};

/// Above all addresses, and a multiple of a word.
const MIRROR: usize = 1 << 60;

/// An address in a heap that is filled upwards as one in a heap that is filled downwards, and the
/// other way round.
pub(super) fn mirrored(address: usize) -> usize {
    MIRROR.saturating_sub(address)
}

/// The lowest address of a part of which everything is mirrored.
pub(super) fn start_of(part: &SampledPart) -> usize {
    mirrored(part.address.saturating_add(part.words.saturating_mul(WORD)))
}

impl Mutator {
    /// The host has moved the young pointer of a heap that is filled up to `end`. Returns the
    /// limit to install: an allocation that moves the pointer above it is sampled or does not fit.
    pub(crate) fn renew_upward(&mut self, pointer: usize, end: usize) -> usize {
        self.young_blocks.upward = true;
        mirrored(self.place_sample(mirrored(pointer), mirrored(end)))
    }

    /// The parts, in the order of their addresses up to `pointer`, went above the limit. `kind`
    /// returns the kind of each by its index.
    pub(crate) fn young_hit_upward(
        &mut self,
        pointer: usize,
        parts: impl PartSizes,
        kind: impl Fn(usize) -> u8,
        registers: Registers,
    ) -> Result<YoungHit, Failure> {
        if !self.young_blocks.upward {
            return Err(Failure::Order);
        }
        let last = parts.len().saturating_sub(1);
        let kind = |index| kind(last.saturating_sub(index));
        let hit = self.young_hit_of_kinds(mirrored(pointer), parts.rev(), kind, registers)?;
        Ok(YoungHit { limit: mirrored(hit.limit), ..hit })
    }

    /// Whether the young heap is filled upwards.
    pub(crate) fn is_upward(&self) -> bool {
        self.young_blocks.upward
    }
}
