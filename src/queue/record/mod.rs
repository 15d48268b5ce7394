//! Records: what a mutator sends to the writer thread, in 64-bit words.
//!
//! # Layout
//! The low 8 bits of a record's first word are its kind, the other 56 its
//! payload:
//!
//! ```text
//! bit  63                                                8 7      0
//!     +---------------------------------------------------+--------+
//!     | payload                                           |  kind  |
//!     +---------------------------------------------------+--------+
//! ```
//!
//! The payload's fields are listed from its low bits up, with their widths:
//!
//! | record | kind | payload | words that follow |
//! |---|---|---|---|
//! | [`Time`](Record::Time) | 1 | ticks 56 | |
//! | [`Frames`](Record::Frames) | 2 | new frames 24, kept frames 32 | the new frames, outermost first |
//! | [`Alloc`](Record::Alloc) | 3 | source 8, part 8, samples 40 | length |
//! | [`SmallAlloc`](Record::SmallAlloc) | 4 | length 56 | |
//! | [`Stack`](Record::Stack) | 5 | frames 56 | the frames, innermost first |
//! | [`RepeatFrame`](Record::RepeatFrame) | 6 | times 56 | |
//! | [`Sample`](Record::Sample) | 7 | frames 8, length 48 | ticks; the frames, innermost first |
//! | [`Rate`](Record::Rate) | 8 | | the bits of the rate |
//! | [`End`](Record::End) by promotion | 0x80–0xbf | first block 56 | |
//! | [`End`](Record::End) by collection | 0xc0–0xff | first block 56 | |
//!
//! Blocks that are sampled in succession often end together, so one end covers a
//! [run](BlockRun) of them: the low 6 bits of its kind are the number of blocks
//! after the first.
//!
//! What writes a record is `inline(always)`: with plain `inline` a hook takes 4.8 % more
//! instructions at 15 frames, 2.4 % at 190 (`benches/overhead --only hooks`).
//!
//! # State
//! The time and the stack of a lane hold until a record changes them. The blocks
//! of one allocation share both, and [`Frames`](Record::Frames) sends only the
//! part of a stack that differs from the last one. A small stack is sent whole:
//! comparing it would cost more.
//!
//! Encoding runs inside hooks. Nothing here allocates or panics; decoding accepts
//! any words.
//!
//! Functions are `inline(always)` so that a record whose kind is known to the caller
//! becomes a few stores, or loads. `benches/overhead --only hooks` counts the
//! instructions of encoding, `benches/writer.rs` times decoding.

mod alloc_words;
mod block_id;
mod end_word;
mod layout;
mod sample;
#[cfg(test)]
mod tests;

use core::slice::Iter;

use heaptap_trace::{End, Source};

use super::code::Part;
use alloc_words::{alloc_word, small_alloc_word};
use layout::{
    ALLOC, FRAMES, KEPT_FRAMES_SHIFT, KIND_BITS, KIND_MASK, MAX_NEW_FRAMES, PART_SHIFT, PROMOTE,
    RATE, REPEAT_FRAME, SAMPLE, SAMPLES_SHIFT, SMALL_ALLOC, STACK, TIME,
};

pub(crate) use alloc_words::AllocWords;
pub(crate) use block_id::{BlockId, BlockRun};
pub(crate) use end_word::EndWord;
pub(crate) use sample::Sample;

/// A decoded record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// A small block was allocated, at a new time and under a new stack.
    Sample(Sample<'a>),
    /// The records that follow happened at this time, in ticks since the session's
    /// start.
    Time(u64),
    /// The stack is now its outermost `keep` frames followed by the new ones.
    Frames { keep: usize, new: &'a [u64] },
    /// The stack's innermost frame is repeated `times` more times.
    RepeatFrame { times: usize },
    /// The stack is now this one, from the allocation outwards.
    Stack { inner_first: &'a [u64] },
    /// A minor block of `length` words with one sample was allocated under the
    /// current stack, with [`Part::NONE`]. Most allocations are like this.
    SmallAlloc { length: u64 },
    /// A block of `length` words was allocated under the current stack.
    Alloc { source: Source, part: Part, samples: u64, length: u64 },
    /// The blocks that follow are sampled at the rate with these bits. Only in a session whose rate
    /// can change.
    Rate(u64),
    /// The blocks were promoted or collected.
    End(End, BlockRun),
}

impl<'a> Record<'a> {
    /// How many words the record takes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Record::Sample(Sample { inner_first, .. }) => 2 + inner_first.len(),
            Record::Frames { new, .. } => 1 + new.len(),
            Record::Stack { inner_first } => 1 + inner_first.len(),
            Record::Alloc { .. } | Record::Rate(_) => 2,
            Record::Time(_)
            | Record::RepeatFrame { .. }
            | Record::SmallAlloc { .. }
            | Record::End(..) => 1,
        }
    }

    /// Encodes the record at the start of `out` and returns the rest of `out`;
    /// `None` if the record does not fit.
    #[inline(always)]
    pub(crate) fn encode<'b>(&self, out: &'b mut [u64]) -> Option<&'b mut [u64]> {
        let (first, rest) = out.split_first_mut()?;
        match *self {
            Record::Sample(Sample { header, inner_first }) => {
                let (second, rest) = rest.split_first_mut()?;
                [*first, *second] = *header;
                return copy_frames(inner_first, rest);
            }
            Record::Time(ticks) => *first = TIME | ticks << KIND_BITS,
            Record::SmallAlloc { length } => *first = small_alloc_word(length),
            Record::RepeatFrame { times } => *first = REPEAT_FRAME | (times as u64) << KIND_BITS,
            Record::End(end, blocks) => *first = EndWord::new(end, blocks).word(),
            Record::Alloc { source, part, samples, length } => {
                *first = alloc_word(source, part, samples);
                let (second, rest) = rest.split_first_mut()?;
                *second = length;
                return Some(rest);
            }
            Record::Rate(bits) => {
                *first = RATE;
                let (second, rest) = rest.split_first_mut()?;
                *second = bits;
                return Some(rest);
            }
            Record::Frames { keep, new } => {
                let keep = (keep as u64) << KEPT_FRAMES_SHIFT;
                *first = FRAMES | (new.len() as u64) << KIND_BITS | keep;
                return copy_frames(new, rest);
            }
            Record::Stack { inner_first } => {
                *first = Self::stack_header(inner_first.len());
                return copy_frames(inner_first, rest);
            }
        }
        Some(rest)
    }

    /// The first word of a [`Record::Stack`] whose frames are in place already.
    #[inline]
    pub(crate) fn stack_header(frames: usize) -> u64 {
        STACK | (frames as u64) << KIND_BITS
    }

    /// Decodes the next record and moves `words` past it. `None` at the end of the
    /// words, or if they are not a record.
    #[inline(always)]
    pub(crate) fn decode(words: &mut Iter<'a, u64>) -> Option<Record<'a>> {
        let all = words.clone();
        let first = *words.next()?;
        let payload = first >> KIND_BITS;
        Some(match first & KIND_MASK {
            SAMPLE => {
                *words = all;
                Record::Sample(Sample::decode(words)?)
            }
            TIME => Record::Time(payload),
            SMALL_ALLOC => Record::SmallAlloc { length: payload },
            ALLOC => {
                let source = match payload & 0xff {
                    0 => Source::Minor,
                    1 => Source::Major,
                    _ => Source::External,
                };
                let part = Part::from_bits((first >> PART_SHIFT) as u8);
                let samples = first >> SAMPLES_SHIFT;
                Record::Alloc { source, part, samples, length: *words.next()? }
            }
            FRAMES => Record::Frames {
                keep: (first >> KEPT_FRAMES_SHIFT) as usize,
                new: take_frames(words, payload as usize & MAX_NEW_FRAMES)?,
            },
            STACK => Record::Stack { inner_first: take_frames(words, payload as usize)? },
            REPEAT_FRAME => Record::RepeatFrame { times: payload as usize },
            RATE => Record::Rate(*words.next()?),
            PROMOTE.. => {
                let word = EndWord::from_word(first);
                Record::End(word.end(), word.blocks())
            }
            _ => return None,
        })
    }
}

/// Copies frames to the start of `out` and returns the rest of it.
#[inline(always)]
fn copy_frames<'b>(frames: &[u64], out: &'b mut [u64]) -> Option<&'b mut [u64]> {
    let (space, rest) = out.split_at_mut_checked(frames.len())?;
    space.copy_from_slice(frames);
    Some(rest)
}

/// The next `count` words, which `words` is moved past.
#[inline(always)]
fn take_frames<'a>(words: &mut Iter<'a, u64>, count: usize) -> Option<&'a [u64]> {
    let (frames, rest) = words.as_slice().split_at_checked(count)?;
    *words = rest.iter();
    Some(frames)
}
