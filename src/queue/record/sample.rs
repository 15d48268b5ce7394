//! The record of most samples: time, whole stack and block in one.

use core::slice::Iter;

use super::layout::{KIND_BITS, KIND_MASK, SAMPLE, SAMPLE_FRAMES_BITS};

/// A small block with one sample, the time of its allocation, and its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// Two words as [`Sample::header`] encodes them. Borrowed, not decoded: the
    /// decoded fields would make [`Record`](super::Record) larger.
    pub(crate) header: &'a [u64; 2],
    /// The whole stack, from the allocation outwards.
    pub(crate) inner_first: &'a [u64],
}

impl<'a> Sample<'a> {
    pub(crate) const MAX_FRAMES: usize = (1 << SAMPLE_FRAMES_BITS) - 1;

    /// The words that precede the frames.
    #[inline(always)]
    pub(crate) fn header(ticks: u64, frames: usize, length: u64) -> [u64; 2] {
        let length = length << (KIND_BITS + SAMPLE_FRAMES_BITS);
        [SAMPLE | (frames as u64) << KIND_BITS | length, ticks]
    }

    /// Decodes the next record if it is a sample, and moves `words` past it.
    #[inline(always)]
    pub(crate) fn decode(words: &mut Iter<'a, u64>) -> Option<Sample<'a>> {
        let (header, rest) = words.as_slice().split_first_chunk()?;
        let [first, _] = header;
        if first & KIND_MASK != SAMPLE {
            return None;
        }
        let frames = (first >> KIND_BITS) as usize & Self::MAX_FRAMES;
        let (inner_first, rest) = rest.split_at_checked(frames)?;
        *words = rest.iter();
        Some(Sample { header, inner_first })
    }

    /// Ticks since the session's start.
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        let [_, ticks] = self.header;
        *ticks
    }

    /// The block's length in words.
    #[inline(always)]
    pub(crate) fn length(&self) -> u64 {
        let [first, _] = self.header;
        first >> (KIND_BITS + SAMPLE_FRAMES_BITS)
    }
}
