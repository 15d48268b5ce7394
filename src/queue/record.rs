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
//! | again | how often | |
//! | stack | frames | all frames, from the allocation outwards |
//! | small | length | |
//! | alloc | source (8 bits), part (8 bits), samples (40 bits) | length |
//! | promote, collect (64 kinds each) | the first block | |
//!
//! Blocks that are sampled one after the other often end together. The low 6 bits
//! of the kind of a promotion or collection are how many blocks behind the first
//! have shared its fate.

use core::slice::Iter;

use heaptap_trace::{End, Source};

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

/// Blocks that one lane sampled one after the other, as many as one word can tell of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRun {
    pub(crate) first: BlockId,
    /// At least 1.
    pub(crate) count: u64,
}

impl BlockRun {
    pub(crate) const MAX: u64 = MORE + 1;

    pub(crate) fn one(block: BlockId) -> BlockRun {
        BlockRun { first: block, count: 1 }
    }

    /// Adds a block if it comes next and there is room; false if not.
    #[inline(always)]
    pub(crate) fn grow(&mut self, block: BlockId) -> bool {
        let grows = block.0 == self.first.0 + self.count && self.count < Self::MAX;
        self.count += u64::from(grows);
        grows
    }

    /// The last of them.
    pub(crate) fn last(self) -> BlockId {
        BlockId::from_bits(self.first.to_bits() + (self.count - 1))
    }

    /// All of them.
    pub(crate) fn blocks(self) -> impl Iterator<Item = BlockId> {
        let first = self.first.to_bits();
        (first..first + self.count).map(BlockId::from_bits)
    }
}

/// That blocks were promoted or are gone, as the one word that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct EndWord(u64);

impl EndWord {
    /// As [`Record::End`] of some blocks.
    #[inline]
    pub(crate) fn new(end: End, blocks: BlockRun) -> EndWord {
        let kind = match end {
            End::Promote => PROMOTE,
            End::Collect => COLLECT,
        };
        EndWord(kind | (blocks.count - 1) & MORE | blocks.first.to_bits() << 8)
    }

    /// Of one block.
    #[inline]
    pub(crate) fn promoted(block: BlockId) -> EndWord {
        EndWord::new(End::Promote, BlockRun::one(block))
    }

    /// Of one block.
    #[inline]
    pub(crate) fn collected(block: BlockId) -> EndWord {
        EndWord::new(End::Collect, BlockRun::one(block))
    }

    /// What goes into an event buffer.
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
        BlockRun { first: BlockId::from_bits(self.0 >> 8), count: 1 + (self.0 & MORE) }
    }
}

/// A time, a small stack and a small block under it, told in one: as most are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sample<'a> {
    /// As [`Sample::header`] gives it. Not what is in it, for which a [`Record`] would
    /// have to be larger.
    pub(crate) head: &'a [u64; 2],
    /// As in [`Record::Stack`].
    pub(crate) inner_first: &'a [u64],
}

impl<'a> Sample<'a> {
    /// The most frames it can have.
    pub(crate) const MAX_FRAMES: usize = 0xff;

    /// What comes before so many frames.
    #[inline(always)]
    pub(crate) fn header(ticks: u64, frames: usize, length: u64) -> [u64; 2] {
        [SAMPLE | (frames as u64) << 8 | length << 16, ticks]
    }

    /// The next record, if it is one.
    #[inline(always)]
    pub(crate) fn decode(words: &mut Iter<'a, u64>) -> Option<Sample<'a>> {
        let (head, behind) = words.as_slice().split_first_chunk()?;
        let [first, _] = head;
        if first & 0xff != SAMPLE {
            return None;
        }
        let frames = (first >> 8) as usize & Self::MAX_FRAMES;
        let (inner_first, behind) = behind.split_at_checked(frames)?;
        *words = behind.iter();
        Some(Sample { head, inner_first })
    }

    /// As in [`Record::Time`].
    #[inline(always)]
    pub(crate) fn ticks(&self) -> u64 {
        let [_, ticks] = self.head;
        *ticks
    }

    /// As in [`Record::SmallAlloc`].
    #[inline(always)]
    pub(crate) fn length(&self) -> u64 {
        let [first, _] = self.head;
        first >> 16
    }
}

/// That a block was allocated, as the words that tell it: which of its two records
/// that is makes no difference to who puts it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AllocWords {
    words: [u64; 2],
    count: usize,
}

impl AllocWords {
    /// The most words.
    pub(crate) const MAX: usize = 2;

    /// As [`Record::SmallAlloc`] where that will do, else [`Record::Alloc`].
    #[inline(always)]
    pub(crate) fn new(source: Source, part: Part, samples: u64, length: u64) -> AllocWords {
        if source == Source::Minor && part == Part::NONE && samples == 1 && length <= MAX_SMALL {
            AllocWords { words: [small_word(length), 0], count: 1 }
        } else {
            AllocWords { words: [alloc_word(source, part, samples), length], count: 2 }
        }
    }

    /// The length, if it is a small block.
    #[inline(always)]
    pub(crate) fn small_length(self) -> Option<u64> {
        let [first, _] = self.words;
        (self.count == 1).then_some(first >> 8)
    }

    /// How many words it takes, which may be fewer than are put.
    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.count
    }

    /// Writes all words; `None` if there is no room for so many.
    #[inline(always)]
    pub(crate) fn write_to(self, room: &mut [u64]) -> Option<()> {
        *room.first_chunk_mut()? = self.words;
        Some(())
    }
}

#[inline(always)]
fn small_word(length: u64) -> u64 {
    SMALL | length << 8
}

#[inline(always)]
fn alloc_word(source: Source, part: Part, samples: u64) -> u64 {
    let (source, part) = ((source as u64) << 8, u64::from(part.to_bits()) << 16);
    ALLOC | source | part | samples.min(MAX_SAMPLES) << 24
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
    RepeatFrame { times: usize },
    /// The stack is now this one, from the allocation outwards.
    Stack { inner_first: &'a [u64] },
    /// A minor block of `length` words with one sample was allocated under that
    /// stack, at a place of which no part is told: as most are.
    SmallAlloc { length: u64 },
    /// A block of `length` words was allocated under that stack.
    Alloc { source: Source, part: Part, samples: u64, length: u64 },
    /// The blocks are major ones now or are gone.
    End(End, BlockRun),
}

const TIME: u64 = 1;
const FRAMES: u64 = 2;
const ALLOC: u64 = 3;
const SMALL: u64 = 4;
const STACK: u64 = 5;
const AGAIN: u64 = 6;
const SAMPLE: u64 = 7;

/// The first of their kinds. From the smaller one on, all are ends.
const PROMOTE: u64 = 0x80;
const COLLECT: u64 = 0xc0;

/// Where in the kind of an end the number of further blocks is.
const MORE: u64 = 0x3f;

/// What fits beside the kind.
const PAYLOAD: u64 = u64::MAX >> 8;
const MAX_SAMPLES: u64 = (1 << 40) - 1;

/// What fits beside a sample's kind and number of frames.
const MAX_SMALL: u64 = (1 << 48) - 1;

/// The most new frames in one record.
pub(crate) const MAX_NEW_FRAMES: usize = (1 << 24) - 1;

impl<'a> Record<'a> {
    /// How many words it takes.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Record::Sample(Sample { inner_first, .. }) => 2 + inner_first.len(),
            Record::Frames { new, .. } => 1 + new.len(),
            Record::Stack { inner_first } => 1 + inner_first.len(),
            Record::Alloc { .. } => 2,
            Record::Time(_)
            | Record::RepeatFrame { .. }
            | Record::SmallAlloc { .. }
            | Record::End(..) => 1,
        }
    }

    /// Writes it and returns the room behind it; `None` if there is not enough.
    #[inline(always)]
    pub(crate) fn encode<'b>(&self, room: &'b mut [u64]) -> Option<&'b mut [u64]> {
        let (first, rest) = room.split_first_mut()?;
        match *self {
            Record::Sample(Sample { head, inner_first }) => {
                let (second, rest) = rest.split_first_mut()?;
                [*first, *second] = *head;
                let (frames, rest) = rest.split_at_mut_checked(inner_first.len())?;
                frames.copy_from_slice(inner_first);
                return Some(rest);
            }
            Record::Time(ticks) => *first = TIME | ticks << 8,
            Record::SmallAlloc { length } => *first = small_word(length),
            Record::RepeatFrame { times } => *first = AGAIN | (times as u64) << 8,
            Record::End(end, blocks) => *first = EndWord::new(end, blocks).word(),
            Record::Alloc { source, part, samples, length } => {
                *first = alloc_word(source, part, samples);
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
                *first = Self::stack_header(inner_first.len());
                let (frames, rest) = rest.split_at_mut_checked(inner_first.len())?;
                frames.copy_from_slice(inner_first);
                return Some(rest);
            }
        }
        Some(rest)
    }

    /// The first word of a whole stack, whose frames are behind it already.
    #[inline]
    pub(crate) fn stack_header(frames: usize) -> u64 {
        STACK | (frames as u64) << 8
    }

    /// The next record, whose words are then behind. `None` at the end of the
    /// words, or if they are no record.
    #[inline(always)]
    pub(crate) fn decode(words: &mut Iter<'a, u64>) -> Option<Record<'a>> {
        let all = words.clone();
        let first = *words.next()?;
        let payload = first >> 8;
        Some(match first & 0xff {
            SAMPLE => {
                *words = all;
                Record::Sample(Sample::decode(words)?)
            }
            TIME => Record::Time(payload),
            SMALL => Record::SmallAlloc { length: payload },
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
            AGAIN => Record::RepeatFrame { times: payload as usize },
            PROMOTE.. => Record::End(EndWord(first).end(), EndWord(first).blocks()),
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
        Sample([u64; 2], Vec<u64>),
        Time(u64),
        Frames(usize, Vec<u64>),
        Again(usize),
        Stack(Vec<u64>),
        Small(u64),
        Alloc(Source, Part, u64, u64),
        End(End, BlockRun),
    }

    fn block() -> impl Strategy<Value = (Source, Part, u64, u64)> {
        let source = prop_oneof![Just(Source::Minor), Just(Source::Major), Just(Source::External)];
        let part = prop_oneof![Just(0), any::<u8>()].prop_map(Part::from_bits);
        let samples = prop_oneof![Just(1), 1..=MAX_SAMPLES];
        (source, part, samples, prop_oneof![0..20u64, any::<u64>()])
    }

    fn told() -> impl Strategy<Value = Told> {
        let end = prop_oneof![Just(End::Promote), Just(End::Collect)];
        prop_oneof![
            (any::<u64>(), prop::collection::vec(any::<u64>(), 0..40), 0..=MAX_SMALL).prop_map(
                |(ticks, frames, length)| {
                    Told::Sample(Sample::header(ticks, frames.len(), length), frames)
                }
            ),
            (0..=PAYLOAD).prop_map(Told::Time),
            (0..u32::MAX as usize, prop::collection::vec(any::<u64>(), 0..40))
                .prop_map(|(keep, new)| Told::Frames(keep, new)),
            (0..=PAYLOAD as usize).prop_map(Told::Again),
            prop::collection::vec(any::<u64>(), 0..40).prop_map(Told::Stack),
            (0..=PAYLOAD).prop_map(Told::Small),
            block().prop_map(|(source, part, n, l)| Told::Alloc(source, part, n, l)),
            (end, any::<u16>(), 0..=BlockId::MAX_NUMBER, 1..=BlockRun::MAX).prop_map(
                |(end, lane, number, count)| {
                    Told::End(end, BlockRun { first: BlockId::new(lane, number), count })
                }
            ),
        ]
    }

    fn record(told: &Told) -> Record<'_> {
        match told {
            Told::Sample(head, inner_first) => Record::Sample(Sample { head, inner_first }),
            Told::Time(ticks) => Record::Time(*ticks),
            Told::Frames(keep, new) => Record::Frames { keep: *keep, new },
            Told::Again(times) => Record::RepeatFrame { times: *times },
            Told::Stack(inner_first) => Record::Stack { inner_first },
            &Told::Small(length) => Record::SmallAlloc { length },
            &Told::Alloc(source, part, samples, length) => {
                Record::Alloc { source, part, samples, length }
            }
            &Told::End(end, blocks) => Record::End(end, blocks),
        }
    }

    proptest! {
        #[test]
        fn the_words_of_an_allocation_are_one_of_its_records(
            (source, part, samples, length) in block(),
        ) {
            let alloc = AllocWords::new(source, part, samples, length);
            let mut words = [7; AllocWords::MAX];
            alloc.write_to(&mut words).unwrap();
            let told = words.get(..alloc.len()).unwrap();
            let mut rest = told.iter();
            let taken = match Record::decode(&mut rest).unwrap() {
                Record::SmallAlloc { length } => (Source::Minor, Part::NONE, 1, length),
                Record::Alloc { source, part, samples, length } => (source, part, samples, length),
                other => panic!("{other:?}"),
            };
            prop_assert_eq!(taken, (source, part, samples, length));
            prop_assert!(rest.as_slice().is_empty());
            prop_assert_eq!(alloc.small_length(), (told.len() == 1).then_some(length));
        }

        #[test]
        fn what_is_put_is_taken(told in prop::collection::vec(told(), 0..30)) {
            let len = told.iter().map(|told| record(told).len()).sum();
            let mut words = vec![0; len];
            let mut room = &mut words[..];
            for told in &told {
                room = record(told).encode(room).unwrap();
            }
            prop_assert!(room.is_empty());
            let mut rest = words.iter();
            for told in &told {
                prop_assert_eq!(Record::decode(&mut rest), Some(record(told)));
            }
            prop_assert_eq!(Record::decode(&mut rest), None);
        }

        #[test]
        fn a_run_is_of_blocks_that_follow(number in 0..=BlockId::MAX_NUMBER / 2, other in 0..9u64) {
            let block = |at| BlockId::new(7, number + at);
            let mut run = BlockRun::one(block(0));
            for count in 1..BlockRun::MAX {
                prop_assert!(other == count || !run.grow(block(other)));
                prop_assert!(run.grow(block(count)));
                prop_assert_eq!(run.last(), block(count));
            }
            prop_assert!(!run.grow(block(BlockRun::MAX)));
            let told = EndWord::new(End::Collect, run).blocks().blocks();
            prop_assert!(told.eq((0..BlockRun::MAX).map(block)));
        }

        #[test]
        fn any_words_are_read_without_harm(words in prop::collection::vec(any::<u64>(), 0..20)) {
            let mut rest = words.iter();
            while let Some(record) = Record::decode(&mut rest) {
                prop_assert!(record.len() + rest.len() <= words.len());
            }
        }

        #[test]
        fn too_little_room_is_no_room(told in told(), short in 1..50usize) {
            let record = record(&told);
            let len = record.len().saturating_sub(short);
            prop_assert!(record.encode(&mut vec![0; len]).is_none());
        }
    }
}
