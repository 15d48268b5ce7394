//! What a mutator tells the writer thread, in words of 64 bits.
//!
//! A record's first word has its kind in the low 8 bits. Times and stacks stay
//! until they are changed: the blocks of one allocation share theirs, and of a
//! backtrace only what differs from the last one is sent, unless it is so small
//! that to find out would take longer.
//!
//! | kind | rest of the first word | words behind it |
//! |---|---|---|
//! | sample | frames (8 bits), length (48 bits) | ticks since the session's start; all frames, from the allocation outwards |
//! | time | ticks since the session's start | |
//! | frames | frames to keep (32 bits), new ones (24 bits) | the new frames, towards the allocation |
//! | stack | frames | all frames, from the allocation outwards |
//! | small | length | |
//! | alloc | source (8 bits), part (8 bits), samples (40 bits) | length |
//! | promote, collect | the block | |

use core::slice::Iter;

use heaptap_trace::Source;

use super::code::Part;

/// A block's name for as long as a session lasts: the lane that sampled it, and
/// which of that lane's samples it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct BlockId(u64);

impl BlockId {
    const NUMBER_BITS: u32 = 40;

    /// How many blocks one lane can name: a year at 30,000 a second.
    pub(crate) const MAX_NUMBER: u64 = (1 << Self::NUMBER_BITS) - 1;

    /// Numbers beyond the last share it.
    pub(crate) fn new(lane: u16, number: u64) -> BlockId {
        BlockId(u64::from(lane) << Self::NUMBER_BITS | number.min(Self::MAX_NUMBER))
    }

    /// The lane that sampled it.
    pub(crate) fn lane(self) -> u16 {
        (self.0 >> Self::NUMBER_BITS) as u16
    }

    /// Which of that lane's samples it was, from 0.
    #[cfg(test)]
    pub(crate) fn number(self) -> u64 {
        self.0 & Self::MAX_NUMBER
    }

    /// At most 56 bits.
    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }

    /// Of what [`BlockId::to_bits`] gave.
    pub(crate) fn from_bits(bits: u64) -> BlockId {
        BlockId(bits & PAYLOAD)
    }
}

/// That a block was promoted or is gone, as the one word that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct EndWord(u64);

impl EndWord {
    /// As [`Record::Promote`].
    #[inline]
    pub(crate) fn promoted(block: BlockId) -> EndWord {
        EndWord(PROMOTE | block.to_bits() << 8)
    }

    /// As [`Record::Collect`].
    #[inline]
    pub(crate) fn collected(block: BlockId) -> EndWord {
        EndWord(COLLECT | block.to_bits() << 8)
    }

    #[inline]
    pub(crate) fn is_promotion(self) -> bool {
        self.0 & 0xff == PROMOTE
    }

    /// What goes into an event buffer.
    #[inline]
    pub(crate) fn word(self) -> u64 {
        self.0
    }
}

/// A time, a small stack and a small block under it, told in one: as most are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// As in [`Record::Time`].
    pub(crate) ticks: u64,
    /// As in [`Record::Stack`].
    pub(crate) inner_first: &'a [u64],
    /// As in [`Record::Small`].
    pub(crate) length: u64,
}

impl<'a> Sample<'a> {
    /// The most frames it can have.
    pub(crate) const MAX_FRAMES: usize = 0xff;

    /// Its first word, before the ticks and so many frames.
    #[inline]
    pub(crate) fn head(frames: usize, length: u64) -> u64 {
        SAMPLE | (frames as u64) << 8 | length << 16
    }

    /// The next record, if it is one.
    #[inline(always)]
    pub(crate) fn take(words: &mut Iter<'a, u64>) -> Option<Sample<'a>> {
        let [head, ticks, rest @ ..] = words.as_slice() else { return None };
        let (kind, frames) = (head & 0xff, (head >> 8) as usize & Self::MAX_FRAMES);
        if kind != SAMPLE {
            return None;
        }
        let (inner_first, behind) = rest.split_at_checked(frames)?;
        *words = behind.iter();
        Some(Sample { ticks: *ticks, inner_first, length: head >> 16 })
    }
}

/// One thing told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    /// A block was allocated, at a time and under a stack that are new.
    Sample(Sample<'a>),
    /// What follows happened so many ticks after the session's start.
    Time(u64),
    /// The stack is now its outermost `keep` frames and the new ones.
    Frames { keep: usize, new: &'a [u64] },
    /// The stack's innermost frame is there so many times more.
    Again { times: usize },
    /// The stack is now this one, from the allocation outwards.
    Stack { inner_first: &'a [u64] },
    /// A minor block of `length` words with one sample was allocated under that
    /// stack, at a place of which no part is told: as most are.
    Small { length: u64 },
    /// A block of `length` words was allocated under that stack.
    Alloc { source: Source, part: Part, samples: u64, length: u64 },
    /// The block is a major one now.
    Promote(BlockId),
    /// The block is gone.
    Collect(BlockId),
}

const TIME: u64 = 1;
const FRAMES: u64 = 2;
const ALLOC: u64 = 3;
const PROMOTE: u64 = 4;
const COLLECT: u64 = 5;
const SMALL: u64 = 6;
const STACK: u64 = 7;
const AGAIN: u64 = 8;
const SAMPLE: u64 = 9;

/// What fits beside the kind.
const PAYLOAD: u64 = u64::MAX >> 8;
const MAX_SAMPLES: u64 = (1 << 40) - 1;

/// What fits beside a sample's kind and number of frames.
const MAX_SMALL: u64 = (1 << 48) - 1;

/// The most new frames in one record.
pub(crate) const MAX_NEW_FRAMES: usize = (1 << 24) - 1;

impl<'a> Record<'a> {
    /// A block was allocated.
    #[inline]
    pub(crate) fn alloc(source: Source, part: Part, samples: u64, length: u64) -> Record<'a> {
        if source == Source::Minor && part == Part::NONE && samples == 1 && length <= MAX_SMALL {
            Record::Small { length }
        } else {
            Record::Alloc { source, part, samples, length }
        }
    }

    /// How many words it takes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Record::Sample(Sample { inner_first, .. }) => 2 + inner_first.len(),
            Record::Frames { new, .. } => 1 + new.len(),
            Record::Stack { inner_first } => 1 + inner_first.len(),
            Record::Alloc { .. } => 2,
            Record::Time(_)
            | Record::Again { .. }
            | Record::Small { .. }
            | Record::Promote(_)
            | Record::Collect(_) => 1,
        }
    }

    /// Writes it and returns the room behind it; `None` if there is not enough.
    #[inline(always)]
    pub(crate) fn put<'b>(&self, room: &'b mut [u64]) -> Option<&'b mut [u64]> {
        let (first, rest) = room.split_first_mut()?;
        match *self {
            Record::Sample(Sample { ticks, inner_first, length }) => {
                *first = Sample::head(inner_first.len(), length);
                let (second, rest) = rest.split_first_mut()?;
                *second = ticks;
                let (frames, rest) = rest.split_at_mut_checked(inner_first.len())?;
                frames.copy_from_slice(inner_first);
                return Some(rest);
            }
            Record::Time(ticks) => *first = TIME | ticks << 8,
            Record::Small { length } => *first = SMALL | length << 8,
            Record::Again { times } => *first = AGAIN | (times as u64) << 8,
            Record::Promote(block) => *first = EndWord::promoted(block).word(),
            Record::Collect(block) => *first = EndWord::collected(block).word(),
            Record::Alloc { source, part, samples, length } => {
                let (source, part) = ((source as u64) << 8, u64::from(part.to_bits()) << 16);
                *first = ALLOC | source | part | samples.min(MAX_SAMPLES) << 24;
                let (second, rest) = rest.split_first_mut()?;
                *second = length;
                return Some(rest);
            }
            Record::Frames { keep, new } => {
                *first = FRAMES | (new.len() as u64) << 8 | (keep as u64) << 32;
                let (frames, rest) = rest.split_at_mut_checked(new.len())?;
                frames.copy_from_slice(new);
                return Some(rest);
            }
            Record::Stack { inner_first } => {
                *first = Self::stack_of(inner_first.len());
                let (frames, rest) = rest.split_at_mut_checked(inner_first.len())?;
                frames.copy_from_slice(inner_first);
                return Some(rest);
            }
        }
        Some(rest)
    }

    /// The first word of a whole stack, whose frames are behind it already.
    #[inline]
    pub(crate) fn stack_of(frames: usize) -> u64 {
        STACK | (frames as u64) << 8
    }

    /// The next record, whose words are then behind. `None` at the end of the
    /// words, or if they are no record.
    #[inline(always)]
    pub(crate) fn take(words: &mut Iter<'a, u64>) -> Option<Record<'a>> {
        let all = words.clone();
        let first = *words.next()?;
        let payload = first >> 8;
        Some(match first & 0xff {
            SAMPLE => {
                *words = all;
                Record::Sample(Sample::take(words)?)
            }
            TIME => Record::Time(payload),
            SMALL => Record::Small { length: payload },
            PROMOTE => Record::Promote(BlockId::from_bits(payload)),
            COLLECT => Record::Collect(BlockId::from_bits(payload)),
            ALLOC => {
                let source = match payload & 0xff {
                    0 => Source::Minor,
                    1 => Source::Major,
                    _ => Source::External,
                };
                let part = Part::from_bits((first >> 16) as u8);
                Record::Alloc { source, part, samples: first >> 24, length: *words.next()? }
            }
            FRAMES => {
                let count = payload as usize & MAX_NEW_FRAMES;
                let (new, behind) = words.as_slice().split_at_checked(count)?;
                *words = behind.iter();
                Record::Frames { keep: (first >> 32) as usize, new }
            }
            STACK => {
                let (inner_first, behind) = words.as_slice().split_at_checked(payload as usize)?;
                *words = behind.iter();
                Record::Stack { inner_first }
            }
            AGAIN => Record::Again { times: payload as usize },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn ids_keep_lane_and_number() {
        let id = BlockId::new(65_535, BlockId::MAX_NUMBER);
        assert_eq!((id.lane(), id.number()), (65_535, BlockId::MAX_NUMBER));
        assert_eq!(BlockId::from_bits(id.to_bits()), id);
        assert!(id.to_bits() <= PAYLOAD);
    }

    #[derive(Clone, Debug)]
    enum Told {
        Sample(u64, Vec<u64>, u64),
        Time(u64),
        Frames(usize, Vec<u64>),
        Again(usize),
        Stack(Vec<u64>),
        Alloc(Source, u8, u64, u64),
        End(bool, u16, u64),
    }

    fn told() -> impl Strategy<Value = Told> {
        let source = prop_oneof![Just(Source::Minor), Just(Source::Major), Just(Source::External)];
        let part = prop_oneof![Just(0), any::<u8>()];
        let samples = prop_oneof![Just(1), 1..=MAX_SAMPLES];
        prop_oneof![
            (any::<u64>(), prop::collection::vec(any::<u64>(), 0..40), 0..=MAX_SMALL)
                .prop_map(|(ticks, frames, length)| Told::Sample(ticks, frames, length)),
            (0..=PAYLOAD).prop_map(Told::Time),
            (0..u32::MAX as usize, prop::collection::vec(any::<u64>(), 0..40))
                .prop_map(|(keep, new)| Told::Frames(keep, new)),
            (0..=PAYLOAD as usize).prop_map(Told::Again),
            prop::collection::vec(any::<u64>(), 0..40).prop_map(Told::Stack),
            (source, part, samples, prop_oneof![0..20u64, any::<u64>()])
                .prop_map(|(source, part, n, l)| Told::Alloc(source, part, n, l)),
            (any::<bool>(), any::<u16>(), 0..=BlockId::MAX_NUMBER)
                .prop_map(|(promote, lane, number)| Told::End(promote, lane, number)),
        ]
    }

    fn record(told: &Told) -> Record<'_> {
        match told {
            Told::Sample(ticks, inner_first, length) => {
                Record::Sample(Sample { ticks: *ticks, inner_first, length: *length })
            }
            Told::Time(ticks) => Record::Time(*ticks),
            Told::Frames(keep, new) => Record::Frames { keep: *keep, new },
            Told::Again(times) => Record::Again { times: *times },
            Told::Stack(inner_first) => Record::Stack { inner_first },
            &Told::Alloc(source, part, samples, length) => {
                Record::alloc(source, Part::from_bits(part), samples, length)
            }
            &Told::End(true, lane, number) => Record::Promote(BlockId::new(lane, number)),
            &Told::End(false, lane, number) => Record::Collect(BlockId::new(lane, number)),
        }
    }

    proptest! {
        #[test]
        fn what_is_put_is_taken(told in prop::collection::vec(told(), 0..30)) {
            let len = told.iter().map(|told| record(told).len()).sum();
            let mut words = vec![0; len];
            let mut room = &mut words[..];
            for told in &told {
                room = record(told).put(room).unwrap();
            }
            prop_assert!(room.is_empty());
            let mut rest = words.iter();
            for told in &told {
                prop_assert_eq!(Record::take(&mut rest), Some(record(told)));
            }
            prop_assert_eq!(Record::take(&mut rest), None);
        }

        #[test]
        fn any_words_are_read_without_harm(words in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut rest = words.iter();
            while let Some(record) = Record::take(&mut rest) {
                prop_assert!(record.len() + rest.len() <= words.len());
            }
        }

        #[test]
        fn too_little_room_is_no_room(told in told(), short in 1..50usize) {
            let record = record(&told);
            let len = record.len().saturating_sub(short);
            prop_assert!(record.put(&mut vec![0; len]).is_none());
        }
    }
}
