//! Events: a block is allocated, promoted or collected.

/// A frame of a backtrace: an opaque number that [`crate::LocationTable`]
/// resolves. 63 bits with sign, stored in 64; never 0.
pub type Code = u64;

/// Stands for a frame that damage to the file made unknown. No writer can have
/// written it: it does not fit 63 bits.
pub const LOST_FRAME: Code = 1 << 63;

/// Whether a number is a valid code: not 0, and 63 bits with sign, so that an
/// OCaml reader gets it back whole.
#[inline(always)]
pub(crate) fn is_code(number: u64) -> bool {
    let top_bits_differ = (number ^ number << 1) >> 63 == 1;
    (number != 0) & !top_bits_differ
}

/// Where a block was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// In the young generation.
    Minor = 0,
    /// Directly in the old generation.
    Major = 1,
    /// Outside the heap, owned by a block in it.
    External = 2,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 3] = [Source::Minor, Source::Major, Source::External];

    /// Its name in text, in JSON and on the command line.
    pub fn name(self) -> &'static str {
        ["minor", "major", "external"][self as usize]
    }
}

/// The size and origin of a sampled block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// Words, without the header.
    pub length: u64,
    /// Samples in the block and its header, from 1 to `length + 1`.
    pub samples: u64,
    /// Where it was allocated.
    pub source: Source,
}

/// The stack at an allocation, from `main` to the allocation point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backtrace<'a> {
    /// The frames. They end early if the writer ran out of room.
    pub frames: &'a [Code],
    /// The number of frames at the `main` end that are shared with the domain's
    /// previous allocation, as the file states it. It exceeds `frames.len()`
    /// after an earlier backtrace was cut short.
    pub common_prefix: u64,
    /// The frames after the common prefix. They are the end of `frames`,
    /// except after a backtrace that was cut short.
    pub new: &'a [Code],
}

impl<'a> Backtrace<'a> {
    /// Whether damage to the file made frames unknown.
    pub fn is_partial(&self) -> bool {
        self.frames.contains(&LOST_FRAME)
    }

    /// All frames, to be written independently of the previous allocation.
    pub fn whole(&self) -> Frames<'a> {
        Frames::Whole(self.frames)
    }

    /// The difference from the domain's previous allocation, to be written
    /// where that one was written too.
    pub fn suffix(&self) -> Frames<'a> {
        Frames::Suffix { common_prefix: self.common_prefix, new: self.new }
    }
}

/// A backtrace to write, from `main` to the allocation point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Frames<'a> {
    /// All frames.
    Whole(&'a [Code]),
    /// The frames that differ from the domain's previous allocation.
    Suffix {
        /// The number of frames at the `main` end that are the same.
        common_prefix: u64,
        /// The frames after those.
        new: &'a [Code],
    },
}

/// A sampled allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation<'a> {
    /// The block's id: allocations are numbered.
    pub id: u64,
    /// Words, without the header.
    pub length: u64,
    /// Samples in the block and its header, at least 1.
    pub samples: u64,
    /// Where it was allocated.
    pub source: Source,
    /// The stack.
    pub backtrace: Backtrace<'a>,
}

impl Allocation<'_> {
    /// The block without its id and backtrace.
    pub fn block(&self) -> Block {
        Block { length: self.length, samples: self.samples, source: self.source }
    }
}

/// What happens to a block after its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// It moves to the old generation.
    Promote,
    /// It dies.
    Collect,
}

/// The kinds of event.
///
/// A later version may add kinds. Code outside this crate passes over a kind it
/// does not know; [`EventKind::block_id`] serves where only the block matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventKind<'a> {
    /// A sampled block was allocated.
    Alloc(Allocation<'a>),
    /// The block with this id moved to the old generation.
    Promote(u64),
    /// The block with this id died.
    Collect(u64),
}

impl EventKind<'_> {
    /// The id of the block that the event is about, if it is about one.
    pub fn block_id(&self) -> Option<u64> {
        match *self {
            EventKind::Alloc(Allocation { id, .. })
            | EventKind::Promote(id)
            | EventKind::Collect(id) => Some(id),
        }
    }

    /// The later fate of a block, and its id; `None` for other kinds.
    pub fn end(&self) -> Option<(End, u64)> {
        match *self {
            EventKind::Promote(id) => Some((End::Promote, id)),
            EventKind::Collect(id) => Some((End::Collect, id)),
            EventKind::Alloc(_) => None,
        }
    }
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Microseconds since the epoch. In a sound trace it never decreases within
    /// a domain.
    pub time: u64,
    /// The domain that recorded the event; 0 if the format has no domains.
    pub domain: u16,
    /// What happened.
    pub kind: EventKind<'a>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_63_bits_and_a_sign() {
        for code in [1, (1 << 62) - 1, u64::MAX, !((1 << 62) - 1)] {
            assert!(is_code(code), "{code:#x}");
        }
        for code in [0, 1 << 62, 1 << 63, LOST_FRAME, (1 << 63) | 1] {
            assert!(!is_code(code), "{code:#x}");
        }
    }

    #[test]
    fn every_kind_of_today_is_about_a_block() {
        let backtrace = Backtrace { frames: &[], common_prefix: 0, new: &[] };
        let source = Source::Minor;
        let allocation = Allocation { id: 7, length: 1, samples: 1, source, backtrace };
        let alloc = EventKind::Alloc(allocation);
        assert_eq!((alloc.block_id(), alloc.end()), (Some(7), None));
        let promote = EventKind::Promote(8);
        assert_eq!((promote.block_id(), promote.end()), (Some(8), Some((End::Promote, 8))));
        let collect = EventKind::Collect(9);
        assert_eq!((collect.block_id(), collect.end()), (Some(9), Some((End::Collect, 9))));
    }
}
