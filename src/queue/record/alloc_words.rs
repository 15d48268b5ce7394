//! The words that record an allocation under the current stack.

use heaptap_trace::Source;

use super::layout::{
    ALLOC, KIND_BITS, MAX_SAMPLES, MAX_SMALL_LENGTH, PART_SHIFT, SAMPLES_SHIFT, SMALL_ALLOC,
    SOURCE_SHIFT,
};
use crate::queue::code::Part;

/// An encoded [`Record::SmallAlloc`](super::Record::SmallAlloc) where that
/// suffices, else [`Record::Alloc`](super::Record::Alloc).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocWords {
    /// The second word is 0 and not part of the record if `count` is 1.
    words: [u64; 2],
    /// 1 or 2.
    count: usize,
}

impl AllocWords {
    /// The most words an allocation takes.
    pub(crate) const MAX: usize = 2;

    #[inline(always)]
    pub(crate) fn new(source: Source, part: Part, samples: u64, length: u64) -> AllocWords {
        let is_plain = source == Source::Minor && part == Part::NONE && samples == 1;
        if is_plain && length <= MAX_SMALL_LENGTH {
            AllocWords { words: [small_alloc_word(length), 0], count: 1 }
        } else {
            AllocWords { words: [alloc_word(source, part, samples), length], count: 2 }
        }
    }

    /// The block's length if the allocation is a small one.
    #[inline(always)]
    pub(crate) fn small_length(self) -> Option<u64> {
        let [first, _] = self.words;
        (self.count == 1).then_some(first >> KIND_BITS)
    }

    /// How many words the record has.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.count
    }

    /// Writes [`MAX`](Self::MAX) words, of which [`len`](Self::len) are the
    /// record: one unconditional store is cheaper than a choice. `None`, and
    /// nothing written, if `out` is shorter.
    #[inline(always)]
    pub(crate) fn write_to(self, out: &mut [u64]) -> Option<()> {
        *out.first_chunk_mut()? = self.words;
        Some(())
    }
}

#[inline(always)]
pub(super) fn small_alloc_word(length: u64) -> u64 {
    SMALL_ALLOC | length << KIND_BITS
}

/// The first of two words; the length follows.
#[inline(always)]
pub(super) fn alloc_word(source: Source, part: Part, samples: u64) -> u64 {
    let source = (source as u64) << SOURCE_SHIFT;
    let part = u64::from(part.to_bits()) << PART_SHIFT;
    ALLOC | source | part | samples.min(MAX_SAMPLES) << SAMPLES_SHIFT
}
