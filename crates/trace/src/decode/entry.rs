//! One entry of a backtrace: tag and slot in its first two bytes, what the tag
//! calls for behind them.

use std::hint::select_unpredictable;

use crate::cache::Slot;
use crate::decode::chain::Step;
use crate::event::Code;
use crate::rules::{MAX_ENTRY, MAX_PREDICTED};

/// The most frames that one entry stands for.
pub(crate) const ENTRY_FRAMES: usize = 1 + MAX_PREDICTED;

/// What went wrong with one backtrace's entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryFault {
    /// The bytes end.
    Overrun,
    /// The packet has more frames than the limit allows.
    TooMany,
}

/// An entry's first four bytes: the entry itself, and what lies behind it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Entry(u32);

impl Entry {
    /// The entry at `at`. `bytes` reach so far beyond the packet that where
    /// they end need not be asked.
    #[inline(always)]
    pub(crate) fn read(bytes: &[u8], at: usize) -> Option<Entry> {
        let head = bytes.get(at..)?.first_chunk()?;
        Some(Entry(u32::from_le_bytes(*head)))
    }

    #[inline(always)]
    pub(crate) fn slot(self) -> Slot {
        self.0 as u16 >> 2
    }

    /// Whether it fills the slot with a code.
    #[inline(always)]
    pub(crate) fn is_miss(self) -> bool {
        self.0 & 3 == 3
    }

    /// The step to its slot, with these marks.
    #[inline(always)]
    pub(crate) fn step(self, marks: Step) -> Step {
        self.slot() | marks
    }

    /// How many predictions to follow after a hit: none, one, or what the third
    /// byte says. Without a branch, for the tag cannot be foreseen.
    #[inline(always)]
    pub(crate) fn predicted(self) -> usize {
        let tag = self.0 & 3;
        select_unpredictable(tag == 2, (self.0 >> 16) & 255, tag) as usize
    }

    /// How many bytes it takes.
    pub(crate) fn size(self) -> usize {
        if self.is_miss() { MAX_ENTRY } else { self.hit_size() }
    }

    /// How many bytes a hit takes.
    #[inline(always)]
    pub(crate) fn hit_size(self) -> usize {
        2 + ((self.0 & 3) >> 1) as usize
    }
}

/// The code of the miss at `at`.
#[inline(always)]
pub(crate) fn miss_code(bytes: &[u8], at: usize) -> Option<Code> {
    let code = bytes.get(at..)?.first_chunk::<MAX_ENTRY>()?.last_chunk()?;
    Some(u64::from_le_bytes(*code))
}

/// The entries at the start of `bytes`, each with its place.
fn entries(bytes: &[u8]) -> impl Iterator<Item = (usize, Entry)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let entry = Entry::read(bytes, at)?;
        let place = at;
        at += entry.size();
        Some((place, entry))
    })
}

/// How many bytes the first `count` entries take, if there are so many.
pub(crate) fn entries_size(bytes: &[u8], count: u16) -> Option<usize> {
    match count.checked_sub(1) {
        None => Some(0),
        Some(last) => entries(bytes).nth(last.into()).map(|(at, entry)| at + entry.size()),
    }
}

/// How many frames the first `count` entries stand for, if there are so many.
pub(crate) fn entries_frames(bytes: &[u8], count: u16) -> Option<usize> {
    let mut entries = entries(bytes);
    (0..count).try_fold(0, |frames, _| {
        let (_, entry) = entries.next()?;
        Some(frames + 1 + if entry.is_miss() { 0 } else { entry.predicted() })
    })
}
