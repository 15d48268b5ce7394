//! The state of a lane's current buffer, in one atomic word.

/// ```text
/// bit  63              31 30         17 16        1    0
///     +------------------+-------------+-----------+---------+
///     | sequence      33 | committed 14 | index 16 | claimed |
///     +------------------+-------------+-----------+---------+
/// ```
///
/// Zero, the initial state, is sequence number 0: no buffer. 2^33 sequence numbers
/// are 512 TiB of events per lane, so they do not wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CurrentBuffer(u64);

const INDEX_SHIFT: u32 = 1;
const COMMITTED_SHIFT: u32 = 17;
const SEQUENCE_SHIFT: u32 = 31;
const CLAIMED: u64 = 1;

/// The longest buffer whose length fits the word.
pub(super) const MAX_COMMITTED: usize = (1 << (SEQUENCE_SHIFT - COMMITTED_SHIFT)) - 1;

impl CurrentBuffer {
    /// A claimed, empty buffer.
    pub(super) fn fresh(sequence: u64, index: u16) -> Self {
        Self(sequence << SEQUENCE_SHIFT | u64::from(index) << INDEX_SHIFT | CLAIMED)
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// The buffer's position in the lane's sequence, from 1.
    pub(super) fn sequence(self) -> u64 {
        self.0 >> SEQUENCE_SHIFT
    }

    /// How many of its words may be read.
    pub(super) fn committed(self) -> usize {
        (self.0 >> COMMITTED_SHIFT) as usize & MAX_COMMITTED
    }

    /// The buffer's index in the pool.
    pub(super) fn index(self) -> u16 {
        (self.0 >> INDEX_SHIFT) as u16
    }

    pub(super) fn is_claimed(self) -> bool {
        self.0 & CLAIMED != 0
    }

    pub(super) fn claimed(self) -> Self {
        Self(self.0 | CLAIMED)
    }

    pub(super) fn unclaimed(self) -> Self {
        Self(self.0 & !CLAIMED)
    }

    /// The same buffer with `words` more committed. They must fit.
    pub(super) fn grown(self, words: usize) -> Self {
        debug_assert!(self.committed() + words <= MAX_COMMITTED);
        Self(self.0 + ((words as u64) << COMMITTED_SHIFT))
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn fields_do_not_overlap(
            sequence in 0_u64..1 << 33,
            index: u16,
            first in 0_usize..=MAX_COMMITTED,
            more in 0_usize..=MAX_COMMITTED,
        ) {
            let more = more.min(MAX_COMMITTED - first);
            let current = CurrentBuffer::fresh(sequence, index).grown(first).unclaimed().grown(more);
            prop_assert_eq!(current.sequence(), sequence);
            prop_assert_eq!(current.index(), index);
            prop_assert_eq!(current.committed(), first + more);
            prop_assert!(!current.is_claimed());
            prop_assert!(current.claimed().is_claimed());
            prop_assert_eq!(current.claimed().unclaimed(), current);
            prop_assert_eq!(CurrentBuffer::from_word(current.word()), current);
        }
    }
}
