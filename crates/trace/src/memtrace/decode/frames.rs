//! Memory for frames: those of a packet, and the bound on all that are kept.

use crate::memtrace::decode::entry::{ENTRY_FRAMES, EntryFault};
use crate::memtrace::decode::step::Step;
use crate::model::event::Code;

/// Frames are copied this many at a time: that is enough for nine backtraces in
/// ten, and the exit of a loop over so few would be mispredicted.
pub(crate) const CHUNK: usize = 16;

/// The initial capacity: enough for most packets.
const FIRST: usize = 1 << 13;

/// A packet may exceed the limit by this many frames.
const SLACK: usize = 4 * ENTRY_FRAMES;

/// The new frames of a whole packet's allocations, one after the other.
pub(crate) struct NewFrames {
    /// `codes[..len]` are frames. At least a chunk of room follows, so that whole
    /// chunks can be copied.
    codes: Vec<Code>,
    pub(crate) len: usize,
    /// The steps that lead to the frames; unused after a loss. As long as `codes`
    /// less that chunk, and 0 after the packet's last step.
    pub(crate) steps: Vec<Step>,
    /// The bound on `len`, give or take [`SLACK`]: a packet can contain 2.8 million.
    pub(crate) limit: usize,
}

impl NewFrames {
    pub(crate) fn new(limit: usize) -> Self {
        NewFrames { codes: vec![0; CHUNK], len: 0, steps: Vec::new(), limit }
    }

    /// The steps and the frames from one on.
    #[inline(always)]
    pub(crate) fn from(&mut self, start: usize) -> (&[Step], &mut [Code]) {
        let steps = self.steps.get(start..).unwrap_or(&[]);
        (steps, self.codes.get_mut(start..).unwrap_or(&mut []))
    }

    /// `N` of them, if there are that many.
    #[inline(always)]
    pub(crate) fn block<const N: usize>(
        &mut self,
        start: usize,
    ) -> Option<(&[Step; N], &mut [Code; N])> {
        let steps = self.steps.get(start..)?.first_chunk()?;
        Some((steps, self.codes.get_mut(start..)?.first_chunk_mut()?))
    }

    pub(crate) fn clear(&mut self) {
        if let Some(steps) = self.steps.get_mut(..self.len) {
            steps.fill(0);
        }
        self.len = 0;
    }

    #[inline(always)]
    pub(crate) fn get(&self, start: usize, count: usize) -> Option<Padded<'_>> {
        let codes = self.codes.get(start..)?;
        Some(Padded { frames: codes.get(..count)?, chunk: codes.first_chunk()? })
    }

    /// The first of `count` frames that is 0, which is the content of an empty slot.
    pub(crate) fn first_zero(&self, count: usize) -> Option<usize> {
        self.codes.get(..count)?.iter().position(|&code| code == 0)
    }

    /// The room after the frames.
    #[inline(always)]
    pub(crate) fn room(&mut self) -> &mut [Code] {
        let end = self.codes.len().saturating_sub(CHUNK);
        self.codes.get_mut(self.len..end).unwrap_or(&mut [])
    }

    /// Makes room for `more` steps and frames.
    #[cold]
    #[inline(never)]
    pub(crate) fn grow(&mut self, more: usize) -> Result<(), EntryFault> {
        let most = self.limit.saturating_add(SLACK);
        if self.len + more > most {
            return Err(EntryFault::TooMany);
        }
        let doubled = (2 * self.steps.len()).max(FIRST).min(most);
        let size = doubled.max(self.len + more);
        lengthen(&mut self.steps, size, self.len);
        lengthen(&mut self.codes, size + CHUNK, self.len);
        Ok(())
    }

    pub(crate) fn push(&mut self, code: Code) -> Result<(), EntryFault> {
        if self.room().is_empty() {
            self.grow(1)?;
        }
        if let Some(frame) = self.room().first_mut() {
            *frame = code;
            self.len += 1;
        }
        Ok(())
    }
}

/// Makes it `size` long and keeps the first `used`. Zeroed memory is touched only
/// where it is used.
fn lengthen<T: Copy + Default>(values: &mut Vec<T>, size: usize, used: usize) {
    let mut longer = vec![T::default(); size];
    for (to, from) in longer.iter_mut().zip(values.iter()).take(used) {
        *to = *from;
    }
    *values = longer;
}

/// Frames, and the chunk of memory that begins with them.
#[derive(Clone, Copy)]
pub(crate) struct Padded<'a> {
    pub(crate) frames: &'a [Code],
    chunk: &'a [Code; CHUNK],
}

impl Padded<'_> {
    /// Copies the frames as part of a whole chunk; false if they are more than one
    /// or the destination is too short.
    #[inline(always)]
    pub(crate) fn copy_chunk(&self, frames: &mut [Code], start: usize) -> bool {
        match frames.get_mut(start..start + CHUNK) {
            Some(room) if self.frames.len() <= CHUNK => {
                room.copy_from_slice(self.chunk);
                true
            }
            _ => false,
        }
    }
}

/// The bound on the frames in the last backtraces of all domains together.
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
