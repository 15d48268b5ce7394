//! Promotions and collections: records of one word.

use heaptap_trace::End;

use super::block_id::{BlockId, BlockRun};
use super::layout::{COLLECT, KIND_BITS, MORE_BLOCKS_MASK, PROMOTE};

/// An encoded [`Record::End`](super::Record::End).
///
/// Mutators keep ends in this form until there is space in the event buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct EndWord(u64);

impl EndWord {
    #[inline]
    pub(crate) fn new(end: End, blocks: BlockRun) -> EndWord {
        let kind = match end {
            End::Promote => PROMOTE,
            End::Collect => COLLECT,
        };
        let more = (blocks.count - 1) & MORE_BLOCKS_MASK;
        EndWord(kind | more | blocks.first.to_bits() << KIND_BITS)
    }

    /// One block was promoted.
    #[inline]
    pub(crate) fn promoted(block: BlockId) -> EndWord {
        EndWord::new(End::Promote, BlockRun::one(block))
    }

    /// One block was collected.
    #[inline]
    pub(crate) fn collected(block: BlockId) -> EndWord {
        EndWord::new(End::Collect, BlockRun::one(block))
    }

    /// Decodes a record's first word, whose kind is at least [`PROMOTE`].
    #[inline]
    pub(super) fn from_word(word: u64) -> EndWord {
        EndWord(word)
    }

    /// The word as it goes into an event buffer.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }

    #[inline]
    pub(crate) fn end(self) -> End {
        if self.0 & COLLECT == PROMOTE { End::Promote } else { End::Collect }
    }

    #[inline]
    pub(crate) fn blocks(self) -> BlockRun {
        BlockRun {
            first: BlockId::from_bits(self.0 >> KIND_BITS),
            count: 1 + (self.0 & MORE_BLOCKS_MASK),
        }
    }
}
