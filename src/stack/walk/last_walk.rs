//! What is kept of the last walk.

use core::ops::Range;

use super::super::memory::Memory;
use super::records::{Link, MAX_STREAKS, Record as _, Records, Streak};
use super::{End, MARKERS};

use crate::SMALL_LIMITS;
use crate::sys::prefetch::prefetch;

/// Set in the witness of an indirect frame: one whose stack pointer is not its
/// witness + 8.
pub(super) const INDIRECT: u64 = 1;

/// A last walk of fewer frames is not rejoined: to walk them takes no longer.
const WORTH_REJOINING: usize = if SMALL_LIMITS { 2 } else { 16 };

/// How far ahead of the link that is verified the memory of others is prefetched. Each
/// fiber has three links, in as many cache lines. With 30,000 nested fibers a walk takes
/// half the time (`benches/fibers`).
const PREFETCHED: usize = 48;

/// Places of the index.
const INDEX: usize = if SMALL_LIMITS { 16 } else { 2048 };

/// The innermost frames of a walk that are entered in the index.
const INDEXED: usize = if SMALL_LIMITS { 6 } else { 32 };

/// The place of a witness in the index. Frames are at least 16 bytes apart, mostly.
#[inline]
const fn place_of(witness: u64) -> usize {
    (witness / 16) as usize % INDEX
}

/// Which frames of the last walk may have a given witness: a direct-mapped table of
/// their numbers. An entry may be stale, so what it says is to be checked.
pub(super) type Index = [u64; INDEX];

/// The frames of the last walk, outermost first, and what proves that they are still
/// there. Until [`Self::forget`], there is a witness for each code.
pub(super) struct LastWalk<S> {
    index: S,
    /// The frames from here on were entered in the index when they were found.
    first_indexed: usize,
    /// Where the return address of each frame was read, [`INDIRECT`] perhaps.
    pub(super) witnesses: S,
    /// [`MARKERS`], then the return address of each frame.
    pub(super) codes: S,
    /// The outermost first.
    pub(super) links: Records<S, Link>,
    /// The outermost first; they do not overlap.
    pub(super) streaks: Records<S, Streak>,
    /// Frames with a witness.
    pub(super) frames: usize,
    /// Frames with a code: `frames`, or more when the witnesses are forgotten.
    pub(super) code_count: usize,
    /// How the walk ended.
    pub(super) end: End,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> LastWalk<S> {
    pub(super) fn new(
        max_frames: usize,
        max_links: usize,
        storage: &mut impl FnMut(usize) -> Option<S>,
    ) -> Option<Self> {
        Some(Self {
            index: storage(INDEX)?,
            first_indexed: 0,
            witnesses: storage(max_frames)?,
            codes: storage(MARKERS + max_frames)?,
            links: Records::new(max_links, storage)?,
            streaks: Records::new(MAX_STREAKS, storage)?,
            frames: 0,
            code_count: 0,
            end: End::Complete,
        })
    }

    /// Drops the witnesses. The codes stay, to be compared with the next walk's.
    #[inline]
    pub(super) fn forget(&mut self) {
        self.frames = 0;
        self.links.truncate(0);
        self.streaks.truncate(0);
    }

    /// How many frames can be rejoined.
    pub(super) fn candidates(&self) -> usize {
        if self.frames > WORTH_REJOINING { self.frames } else { 0 }
    }

    #[inline]
    pub(super) fn index(&self) -> Option<&Index> {
        self.index.as_ref().first_chunk()
    }

    #[inline]
    pub(super) fn witness(&self, frame: usize) -> u64 {
        self.witnesses.as_ref().get(frame).copied().unwrap_or(0)
    }

    #[inline]
    pub(super) fn code(&self, frame: usize) -> u64 {
        self.codes.as_ref().get(frame + MARKERS).copied().unwrap_or(0)
    }

    /// The codes of these frames.
    #[inline]
    pub(super) fn codes_of(&self, frames: Range<usize>) -> &[u64] {
        self.codes.as_ref().get(frames.start + MARKERS..frames.end + MARKERS).unwrap_or(&[])
    }

    /// Enters the innermost frames in the index, but for the `kept` outermost, which
    /// are there already.
    pub(super) fn enter_in_index(&mut self, kept: usize) {
        let from = kept.max(self.frames.saturating_sub(INDEXED));
        self.first_indexed = if from > kept { from } else { self.first_indexed.min(kept) };
        let Some(index) = self.index.as_mut().first_chunk_mut::<INDEX>() else { return };
        let witnesses = self.witnesses.as_ref().get(from..self.frames).unwrap_or(&[]);
        for (witness, frame) in witnesses.iter().zip(from as u64..) {
            index[place_of(*witness)] = frame;
        }
    }

    /// Whether a frame with this witness is further out than those in the index.
    #[inline]
    pub(super) fn is_outside_of_index(&self, witness: u64) -> bool {
        self.first_indexed.checked_sub(1).is_some_and(|outside| witness >= self.witness(outside))
    }

    /// How many links have at most `frames` frames outside of them.
    pub(super) fn links_up_to(&self, frames: usize) -> usize {
        let mut count = self.links.len();
        while self.links.before(count).is_some_and(|link| link.frames > frames) {
            count -= 1;
        }
        count
    }

    /// The frames that a frame at `address` and those outside of it may rejoin: those
    /// at or above it in the chunk around it, or in the nearest chunk above. Looks at
    /// the `candidates` outermost frames only.
    pub(super) fn chunk_around(&self, candidates: usize, address: u64) -> Range<usize> {
        /// Chunks that are looked at. More would matter only to a walk after the return
        /// from that many callbacks.
        const CHUNKS: usize = 16;
        let (mut nearest, mut chunk) = (u64::MAX, 0..0);
        let mut end = candidates;
        let mut links = self.links.len();
        for _ in 0..CHUNKS {
            while self.links.before(links).is_some_and(|link| link.frames >= end) {
                links -= 1;
            }
            if end == 0 {
                break;
            }
            let start = self.links.before(links).map_or(0, |link| link.frames);
            let distance = self.witness(end - 1).saturating_sub(address);
            if self.witness(start) >= address && distance < nearest {
                (nearest, chunk) = (distance, start..end);
            }
            if nearest == 0 || start == 0 {
                break;
            }
            end = start;
        }
        chunk.start..chunk.start + self.at_or_above(chunk, address)
    }

    /// How many frames of a chunk are at or above `address`. A few that are below it
    /// may be counted, when a search would take longer than to pass them.
    fn at_or_above(&self, chunk: Range<usize>, address: u64) -> usize {
        const FEW: usize = 8;
        let chunk = self.witnesses.as_ref().get(chunk).unwrap_or(&[]);
        match chunk.len().checked_sub(FEW).and_then(|few| chunk.get(few)) {
            Some(&witness) if witness < address => {
                chunk.partition_point(|&witness| witness >= address)
            }
            _ => chunk.len(),
        }
    }
}

/// Looks a frame up in the index.
#[inline]
pub(super) fn indexed(index: &Index, witness: u64) -> usize {
    index[place_of(witness)] as usize
}

/// What a verification found to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    /// This frame and those inside of it are the same; what is outside is not.
    pub(super) same_from: usize,
}

/// Verification.
impl<S: AsMut<[u64]> + AsRef<[u64]>> LastWalk<S> {
    /// Whether the chain from the frame `from` outwards, whose own witness holds, is
    /// unchanged.
    ///
    /// Goes outwards, and reads no word before all inside of it were found unchanged:
    /// memory further out may be gone if the chain to it has changed.
    pub(super) fn verify<M: Memory>(&self, memory: &M, from: usize) -> Result<(), Changed> {
        let mut links = self.links.first(self.links_up_to(from));
        let mut streaks = self.streaks.len();
        let mut end = from;
        loop {
            let start = links.last().map_or(0, |link| Link::read(link).frames);
            if let Some(changed) = self.changed_in_chunk(memory, start..end, &mut streaks) {
                return Err(Changed { same_from: changed + 1 });
            }
            while let [outer @ .., link] = links
                && let Link { frames, address, value } = Link::read(link)
                && frames == start
            {
                if let Some(ahead) =
                    links.len().checked_sub(PREFETCHED).and_then(|at| links.get(at))
                {
                    prefetch(Link::read(ahead).address as usize);
                }
                if memory.again(address) != value {
                    return Err(Changed { same_from: start });
                }
                links = outer;
            }
            if start == 0 {
                return Ok(());
            }
            end = start;
        }
    }

    /// The innermost frame of part of a chunk whose witness does not hold. The first
    /// `streaks` streaks are those that are not inside of the part; afterwards, those
    /// outside of it.
    fn changed_in_chunk<M: Memory>(
        &self,
        memory: &M,
        part: Range<usize>,
        streaks: &mut usize,
    ) -> Option<usize> {
        let innermost = part.end.checked_sub(1).filter(|innermost| part.contains(innermost))?;
        // Only the innermost frame of a chunk can be indirect.
        if memory.again(self.witness(innermost) & !INDIRECT) != self.code(innermost) {
            return Some(innermost);
        }
        if part.len() == 1 {
            // Most chunks of nested fibers.
            return None;
        }
        let mut end = innermost;
        while let Some(streak) = self.streaks.before(*streaks)
            && streak.end > part.start
        {
            let (outer, inner) = (streak.outer.max(part.start), streak.end.min(end));
            if outer < inner {
                let changed = self
                    .changed_one_by_one(memory, inner..end)
                    .or_else(|| self.changed_in_streak(memory, outer..inner, streak.stride));
                if changed.is_some() {
                    return changed;
                }
                end = outer;
            }
            if streak.outer < part.start {
                break;
            }
            *streaks -= 1;
        }
        self.changed_one_by_one(memory, part.start..end)
    }

    /// The same for frames of one streak.
    fn changed_in_streak<M: Memory>(
        &self,
        memory: &M,
        part: Range<usize>,
        stride: u64,
    ) -> Option<usize> {
        let innermost = part.end - 1;
        let (first, end) = (self.witness(innermost), self.witness(part.start).wrapping_add(1));
        let same = memory.repeats(first, stride, end, self.code(part.start));
        (same < part.len()).then(|| innermost - same)
    }

    /// The same for frames that are in no streak nor the innermost of their chunk.
    ///
    /// In batches: one by one takes half as many instructions again (`benches/stack.rs:
    /// unchanged/190`).
    fn changed_one_by_one<M: Memory>(&self, memory: &M, part: Range<usize>) -> Option<usize> {
        const BATCH: usize = 8;
        let witnesses = self.witnesses.as_ref().get(part.clone())?;
        let codes = self.codes_of(part.clone());
        let (outer_witnesses, witnesses) = witnesses.as_rchunks::<BATCH>();
        let (outer_codes, codes) = codes.as_rchunks::<BATCH>();
        let mut frame = part.end;
        for (witnesses, codes) in witnesses.iter().zip(codes).rev() {
            for (witness, code) in witnesses.iter().zip(codes).rev() {
                frame -= 1;
                if memory.again(*witness) != *code {
                    return Some(frame);
                }
            }
        }
        for (witness, code) in outer_witnesses.iter().zip(outer_codes).rev() {
            frame -= 1;
            if memory.again(*witness) != *code {
                return Some(frame);
            }
        }
        None
    }
}
