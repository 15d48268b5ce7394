//! Room for frames: those of a packet, and how many may be kept in all.

use crate::decode::entry::{ENTRY_FRAMES, EntryFault};
use crate::event::Code;

/// Frames are copied this many at a time: for nine backtraces in ten that is
/// all, and the end of a loop for so few would be mispredicted.
const CHUNK: usize = 16;

/// The new frames of a whole packet's allocations, one after the other.
pub(crate) struct NewFrames {
    /// `codes[..len]` are frames, the rest is room: always a chunk at least,
    /// so that a copy may take whole chunks.
    codes: Vec<Code>,
    pub(crate) len: usize,
    /// Not many more frames than this: a packet can stand for 2.8 million.
    pub(crate) limit: usize,
}

impl NewFrames {
    pub(crate) fn new(limit: usize) -> Self {
        NewFrames { codes: Vec::new(), len: 0, limit }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(crate) fn get(&self, start: usize, count: usize) -> Padded<'_> {
        let codes = self.codes.get(start..).unwrap_or(&[]);
        Padded { codes, count: count.min(codes.len()) }
    }

    /// The first frame whose code is 0: it comes from an empty slot. Nearly
    /// always there is none, which is found out without a branch for each.
    pub(crate) fn first_zero(&self) -> Option<usize> {
        let frames = self.codes.get(..self.len).unwrap_or(&[]);
        let any = frames.iter().fold(false, |any, &code| any | (code == 0));
        if any { frames.iter().position(|&code| code == 0) } else { None }
    }

    /// The room behind the frames there are.
    #[inline(always)]
    pub(crate) fn room(&mut self) -> &mut [Code] {
        let end = self.codes.len().saturating_sub(CHUNK);
        self.codes.get_mut(self.len..end).unwrap_or(&mut [])
    }

    /// Makes room for one entry at least.
    #[cold]
    #[inline(never)]
    pub(crate) fn grow(&mut self) -> Result<(), EntryFault> {
        if self.len >= self.limit {
            return Err(EntryFault::TooMany);
        }
        let doubled = (2 * self.codes.len()).min(self.limit.saturating_add(ENTRY_FRAMES + CHUNK));
        self.codes.resize(doubled.max(self.len + 4 * ENTRY_FRAMES), 0);
        Ok(())
    }

    pub(crate) fn push(&mut self, code: Code) -> Result<(), EntryFault> {
        if self.room().is_empty() {
            self.grow()?;
        }
        if let Some(frame) = self.room().first_mut() {
            *frame = code;
            self.len += 1;
        }
        Ok(())
    }
}

/// Frames, and what happens to lie behind them.
#[derive(Clone, Copy)]
pub(crate) struct Padded<'a> {
    codes: &'a [Code],
    pub(crate) count: usize,
}

impl<'a> Padded<'a> {
    pub(crate) fn frames(&self) -> &'a [Code] {
        self.codes.get(..self.count).unwrap_or(&[])
    }

    /// Copies the frames in whole chunks; false if there is no room.
    #[inline(always)]
    pub(crate) fn copy_to(&self, room: &mut [Code]) -> bool {
        if room.len() < self.count + CHUNK {
            return false;
        }
        let chunks = room.chunks_exact_mut(CHUNK).zip(self.codes.chunks_exact(CHUNK));
        for (to, from) in chunks.take(self.count.div_ceil(CHUNK)) {
            to.copy_from_slice(from);
        }
        true
    }
}

/// How many frames the backtraces of all domains together may take.
pub(crate) struct FrameBudget {
    limit: usize,
    used: usize,
    /// Frames were left out because of the limit.
    pub(crate) exceeded: bool,
}

impl FrameBudget {
    pub(crate) fn new(limit: usize) -> Self {
        FrameBudget { limit, used: 0, exceeded: false }
    }

    /// Makes room for `wanted` frames and a chunk, or for as many as the
    /// budget has; returns how many.
    pub(crate) fn grow(&mut self, frames: &mut Vec<Code>, wanted: usize) -> usize {
        let have = frames.len();
        let most = have.saturating_add(self.limit.saturating_sub(self.used));
        self.exceeded |= wanted > most;
        let target = wanted.saturating_add(CHUNK).max(2 * have).max(64).min(most);
        if target > have {
            self.used += target - have;
            frames.reserve_exact(target - have);
            frames.resize(target, 0);
        }
        wanted.min(frames.len())
    }
}
