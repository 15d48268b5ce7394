//! The identity of a sampled block, and runs of consecutive ones.

use super::layout::{MAX_PAYLOAD, MORE_BLOCKS_MASK};

/// Identifies a block for the length of a session: the lane that sampled it and
/// the block's number within that lane.
///
/// `lane:16 | number:40`, so it fits a record's payload of 56 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockId(u64);

impl BlockId {
    const NUMBER_BITS: u32 = 40;

    /// The highest number in a lane: a year at 30,000 samples a second.
    pub(crate) const MAX_NUMBER: u64 = (1 << Self::NUMBER_BITS) - 1;

    /// The lane of blocks that carry a tag: no mutator's. Their number is that of the probe, and
    /// they are not in the trace.
    pub(crate) const TAGGED: u16 = u16::MAX;

    /// Numbers above [`MAX_NUMBER`](Self::MAX_NUMBER) are clamped to it.
    pub(crate) fn new(lane: u16, number: u64) -> BlockId {
        BlockId(u64::from(lane) << Self::NUMBER_BITS | number.min(Self::MAX_NUMBER))
    }

    /// The lane that sampled the block.
    pub(crate) fn lane(self) -> u16 {
        (self.0 >> Self::NUMBER_BITS) as u16
    }

    /// The block's number within its lane, from 0.
    pub(crate) fn number(self) -> u64 {
        self.0 & Self::MAX_NUMBER
    }

    /// At most 56 bits.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`BlockId::to_bits`]. Ignores the upper 8 bits.
    pub(crate) fn from_bits(bits: u64) -> BlockId {
        BlockId(bits & MAX_PAYLOAD)
    }
}

/// Blocks with consecutive numbers in one lane: as many as one word can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRun {
    pub(crate) first: BlockId,
    /// From 1 to [`BlockRun::MAX`].
    pub(crate) count: u64,
}

impl BlockRun {
    pub(crate) const MAX: u64 = MORE_BLOCKS_MASK + 1;

    pub(crate) fn one(block: BlockId) -> BlockRun {
        BlockRun { first: block, count: 1 }
    }

    /// Appends `block` if it is the next one and the run is not full. Returns
    /// whether it did.
    #[inline(always)]
    pub(crate) fn grow(&mut self, block: BlockId) -> bool {
        let grows = block.0 == self.first.0 + self.count && self.count < Self::MAX;
        self.count += u64::from(grows);
        grows
    }

    pub(crate) fn last(self) -> BlockId {
        BlockId::from_bits(self.first.to_bits() + (self.count - 1))
    }

    pub(crate) fn blocks(self) -> impl Iterator<Item = BlockId> {
        let first = self.first.to_bits();
        (first..first + self.count).map(BlockId::from_bits)
    }
}
