//! One word that says all about a lane's current buffer.

/// `number:33 | committed:14 | index:16 | claimed:1`.
///
/// Zero, as lanes begin, is number 0, which is no buffer. 2^33 numbers last a
/// lane 512 TiB of events, so they are not meant to wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Current(u64);

const INDEX_SHIFT: u32 = 1;
const COMMITTED_SHIFT: u32 = 17;
const NUMBER_SHIFT: u32 = 31;
const CLAIMED: u64 = 1;

/// The largest buffer whose length the word can hold.
pub(super) const MAX_COMMITTED: usize = (1 << (NUMBER_SHIFT - COMMITTED_SHIFT)) - 1;

impl Current {
    /// A claimed, empty buffer.
    pub(super) fn fresh(number: u64, index: u16) -> Self {
        Self(number << NUMBER_SHIFT | u64::from(index) << INDEX_SHIFT | CLAIMED)
    }

    pub(super) fn from_word(word: u64) -> Self {
        Self(word)
    }

    pub(super) fn word(self) -> u64 {
        self.0
    }

    /// Which of the lane's buffers it is, from 1.
    pub(super) fn number(self) -> u64 {
        self.0 >> NUMBER_SHIFT
    }

    /// How many of its words may be read.
    pub(super) fn committed(self) -> usize {
        (self.0 >> COMMITTED_SHIFT) as usize & MAX_COMMITTED
    }

    /// Where in the pool it is.
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

    /// With `words` more committed, which must fit.
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
        fn fields_do_not_touch_each_other(
            number in 0_u64..1 << 33,
            index: u16,
            first in 0_usize..=MAX_COMMITTED,
            more in 0_usize..=MAX_COMMITTED,
        ) {
            let more = more.min(MAX_COMMITTED - first);
            let current = Current::fresh(number, index).grown(first).unclaimed().grown(more);
            prop_assert_eq!(current.number(), number);
            prop_assert_eq!(current.index(), index);
            prop_assert_eq!(current.committed(), first + more);
            prop_assert!(!current.is_claimed());
            prop_assert!(current.claimed().is_claimed());
            prop_assert_eq!(current.claimed().unclaimed(), current);
            prop_assert_eq!(Current::from_word(current.word()), current);
        }
    }
}
