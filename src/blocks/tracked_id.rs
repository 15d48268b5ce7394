//! A tracked block's id, with whether the block has a generation.

use heaptap_trace::Source;

use crate::queue::BlockId;

/// External memory has no generation: when the block that owns it is promoted, nothing is
/// recorded, since readers of the format refuse a promotion of an external block.
///
/// [`BlockId`]'s 56 bits, and [`EXTERNAL`](Self::EXTERNAL) above them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackedId(u64);

impl TrackedId {
    const EXTERNAL: u64 = 1 << 63;

    /// The id of a block that was allocated in this source.
    #[inline]
    pub(crate) fn new(block: BlockId, source: Source) -> TrackedId {
        let external = if source == Source::External { Self::EXTERNAL } else { 0 };
        TrackedId(block.to_bits() | external)
    }

    #[inline]
    pub(crate) fn block(self) -> BlockId {
        BlockId::from_bits(self.0)
    }

    /// Whether a promotion of the block is recorded.
    #[inline]
    pub(crate) fn has_generation(self) -> bool {
        self.0 & Self::EXTERNAL == 0
    }

    pub(super) fn to_bits(self) -> u64 {
        self.0
    }

    /// The inverse of [`TrackedId::to_bits`].
    pub(super) fn from_bits(bits: u64) -> TrackedId {
        TrackedId(bits)
    }
}
