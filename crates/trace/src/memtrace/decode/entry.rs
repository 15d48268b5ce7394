//! One entry of a backtrace: tag and slot in its first two bytes, then what the
//! tag calls for.

use std::hint::select_unpredictable;

use crate::memtrace::cache::Slot;
use crate::memtrace::decode::step::Step;
use crate::memtrace::rules::{MAX_ENTRY, MAX_PREDICTED};
use crate::model::event::Code;

/// The most frames in one entry.
pub(crate) const ENTRY_FRAMES: usize = 1 + MAX_PREDICTED;

/// What went wrong with one backtrace's entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryFault {
    /// The bytes end.
    Overrun,
    /// The packet has more frames than the limit allows.
    TooMany,
}

/// An entry's first two bytes, tag in the low bits and slot above, and the third.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry {
    head: u16,
    third: u8,
}

impl Entry {
    /// The entry at `at`. It may reach beyond the packet; callers check that
    /// afterwards.
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Entry> {
        let bytes: &[u8; 3] = bytes.get(at..)?.first_chunk()?;
        let head = u16::from_le_bytes(*bytes.first_chunk()?);
        Some(Entry { head, third: bytes[2] })
    }

    #[inline(always)]
    fn tag(self) -> usize {
        usize::from(self.head & 3)
    }

    #[inline(always)]
    pub(crate) fn slot(self) -> Slot {
        self.head >> 2
    }

    /// Whether it fills the slot with a code.
    #[inline(always)]
    pub(crate) fn is_miss(self) -> bool {
        self.tag() == 3
    }

    /// The step to its slot, with these marks.
    #[inline(always)]
    pub(crate) fn step(self, marks: Step) -> Step {
        self.slot() as Step | marks
    }

    /// The number of predictions to follow after a hit: none, one, or the third
    /// byte. Without a branch, since the tag is unpredictable.
    #[inline(always)]
    pub(crate) fn predicted(self) -> usize {
        select_unpredictable(self.tag() == 2, usize::from(self.third), self.tag())
    }

    /// Its size in bytes.
    pub(crate) fn size(self) -> usize {
        if self.is_miss() { MAX_ENTRY } else { self.hit_size() }
    }

    /// The size of a hit in bytes.
    #[inline(always)]
    pub(crate) fn hit_size(self) -> usize {
        2 + (self.tag() >> 1)
    }
}

/// The code of the miss at `at`.
#[inline(always)]
pub(crate) fn miss_code(bytes: &[u8], at: usize) -> Option<Code> {
    let code = bytes.get(at..)?.first_chunk::<MAX_ENTRY>()?.last_chunk()?;
    Some(u64::from_le_bytes(*code))
}

/// The entries at the start of `bytes`, each with its position.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (usize, Entry)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let entry = Entry::read(bytes, at)?;
        let position = at;
        at += entry.size();
        Some((position, entry))
    })
}

/// The size of the first `count` entries in bytes, if there are that many.
pub(crate) fn entries_size(bytes: &[u8], count: u16) -> Option<usize> {
    match count.checked_sub(1) {
        None => Some(0),
        Some(last) => entries(bytes).nth(last.into()).map(|(at, entry)| at + entry.size()),
    }
}

/// The number of frames of the first `count` entries, if there are that many.
pub(crate) fn entries_frames(bytes: &[u8], count: u16) -> Option<usize> {
    let mut entries = entries(bytes);
    (0..count).try_fold(0, |frames, _| {
        let (_, entry) = entries.next()?;
        Some(frames + 1 + if entry.is_miss() { 0 } else { entry.predicted() })
    })
}
