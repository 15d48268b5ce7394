//! The walks of one mutator, from a stack to what the receiver is sent of it.

#![allow(unsafe_code, reason = "hands out the reader of the live stack")]

use super::super::memory::{Live, Memory};
use super::super::table::FrameTables;
use super::last_walk::LastWalk;
use super::new_frames::NewFrames;
use super::outward::{Outcome, OutwardWalk};
use super::parked::ParkedWalks;
use super::records::{longest_repetition, max_links};
use super::small::{SMALL_STACK, walk_small};
use super::step_cache::{CACHE_WORDS, cache_in};
use super::{End, MARKERS, Markers, Start, Walk};
use crate::SMALL_LIMITS;

/// With fewer new frames, repetitions among them are not reported.
const WORTH_REPEATING: usize = if SMALL_LIMITS { 4 } else { 64 };

/// A stack of few frames that is not small, because of a callback from C for instance,
/// may remain so for long or become small at once. After this many walks it is tried
/// as a small one again.
pub(super) const SMALL_RETRY: u8 = 16;

/// The walks of one mutator.
pub(crate) struct Walker<S> {
    cache: S,
    pub(super) last: LastWalk<S>,
    parked: ParkedWalks<S>,
    pub(super) new: NewFrames<S>,
    /// The codes in front of the frames of the last walk; 0 for none.
    last_markers: [u64; MARKERS],
    /// How many of its outermost codes the receiver has, at most; markers included.
    received: usize,
    /// Of the tables, at the last walk.
    generation: u64,
    /// Walks of few frames until one is tried as of a small stack.
    until_small: u8,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> Walker<S> {
    /// Calls `storage` several times for a number of words; `None` if one is refused.
    /// The first are the cache and must be zeros; the others may hold anything. None
    /// are touched here: pages that are not used cost nothing.
    ///
    /// Walks call `parked_storage` when the mutator changes to another stack.
    pub(crate) fn new(
        max_frames: usize,
        mut storage: impl FnMut(usize) -> Option<S>,
        parked_storage: fn(usize) -> Option<S>,
    ) -> Option<Self> {
        let mut storage = |count| storage(count).filter(|words| words.as_ref().len() >= count);
        Some(Self {
            cache: storage(CACHE_WORDS)?,
            last: LastWalk::new(max_frames, max_links(max_frames), &mut storage)?,
            parked: ParkedWalks::new(parked_storage),
            new: NewFrames::new(max_frames, &mut storage)?,
            last_markers: [0; MARKERS],
            received: 0,
            generation: 0,
            until_small: 0,
        })
    }

    /// The cache: few pages, all of which the first walks touch.
    pub(crate) fn step_cache(&self) -> &S {
        &self.cache
    }

    /// Walks the stack of the calling thread's mutator.
    ///
    /// # Safety
    /// `start` is the innermost frame of a managed stack, `tables` describe the frames
    /// on it, and the stack does not change during the call.
    ///
    /// Not inlined: the search for C frames before it needs much of the stack.
    #[inline(never)]
    pub(crate) unsafe fn walk(
        &mut self,
        tables: &FrameTables,
        start: Start,
        markers: Markers,
    ) -> Walk<'_> {
        // SAFETY: the caller guarantees that `start` and `tables` lead along a stack
        // that stands still, so every word a walk reaches is one of that stack.
        let live = unsafe { Live::new() };
        self.walk_in(&live, tables, start, markers)
    }

    /// Whether to try [`Self::walk_small`] for the next stack. It is tried until a stack
    /// is not small, and again after a large one has become small, or some walks later.
    pub(crate) fn expects_small(&self) -> bool {
        self.until_small == 0 && self.new.max_frames >= SMALL_STACK
    }

    /// Walks a small stack, writes its codes, innermost first, and returns their number;
    /// `None` if it is not small. Nothing of it is kept. The receiver has this stack now,
    /// so the next walk that is not of a small stack shares nothing with it.
    ///
    /// # Safety
    /// As for [`Walker::walk`].
    #[inline(always)]
    pub(crate) unsafe fn walk_small(
        &mut self,
        tables: &FrameTables,
        start: Start,
        codes: &mut [u64; SMALL_STACK],
    ) -> Option<usize> {
        // SAFETY: the caller guarantees that `start` and `tables` lead along a stack
        // that stands still, so every word a walk reaches is one of that stack.
        let live = unsafe { Live::new() };
        self.walk_small_in(&live, tables, start, codes)
    }

    #[inline(always)]
    pub(super) fn walk_small_in<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        start: Start,
        codes: &mut [u64; SMALL_STACK],
    ) -> Option<usize> {
        let cache = cache_in(self.cache.as_mut())?;
        let count = walk_small(memory, tables, cache, start, codes);
        if count.is_some() {
            self.received = 0;
        } else {
            self.until_small = SMALL_RETRY;
        }
        count
    }

    pub(super) fn walk_in<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        start: Start,
        markers: Markers,
    ) -> Walk<'_> {
        let generation = tables.generation();
        if generation != self.generation {
            // The last walk may have ended at an address that is in a table now.
            self.last.forget();
            self.parked.forget();
            self.generation = generation;
        }
        let was_large = self.last.frames > SMALL_STACK;
        if !self.parked.is_unused() {
            self.parked.change_stack(&mut self.last, start.sp.wrapping_sub(8));
        }
        let outcome = self.walk_outwards(memory, tables, start);
        let shared = if self.parked.have_changed_stack() {
            self.parked.shared_codes(&self.last, &self.new, outcome.kept)
        } else {
            self.last.shared_codes(&self.new, outcome.kept)
        };
        self.parked.make_room(&mut self.last, &self.new, outcome.kept);
        self.last.commit(&self.new, outcome);
        if self.last.frames <= SMALL_STACK {
            self.until_small = if was_large { 0 } else { self.until_small.saturating_sub(1) };
        }
        self.report(shared, markers)
    }

    /// Finds the new frames, how the walk ended, and how many frames of the last walk are
    /// kept.
    ///
    /// Inlined: otherwise `benches/cost` (hooks) counts 17 instructions more for each sample.
    #[inline(always)]
    pub(super) fn walk_outwards<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        start: Start,
    ) -> Outcome {
        let Self { cache, last, new, .. } = self;
        let Some(cache) = cache_in(cache.as_mut()) else {
            return Outcome { kept: 0, end: End::Broken };
        };
        let (last, candidates) = (&*last, last.candidates());
        OutwardWalk { memory, tables, cache, last, new, candidates }.run(start)
    }

    /// Takes over what the host's own walker found of a stack of `depth` frames, and
    /// reverses it. At most `max_frames` of the innermost codes are kept.
    pub(crate) fn accept(
        &mut self,
        innermost_first: &mut [u64],
        depth: usize,
        markers: Markers,
    ) -> Walk<'_> {
        let count = innermost_first.len().min(self.new.max_frames);
        self.last.end = if count < depth { End::Cut } else { End::Complete };
        let codes = innermost_first.get_mut(..count).unwrap_or(&mut []);
        codes.reverse();
        self.last.forget();
        let last = self.last.codes.as_mut().get_mut(MARKERS..).unwrap_or(&mut []);
        let old = last.get(..self.last.code_count).unwrap_or(&[]);
        let shared = old.iter().zip(&*codes).take_while(|(old, new)| old == new).count();
        last.iter_mut().zip(&*codes).skip(shared).for_each(|(to, from)| *to = *from);
        self.last.code_count = count;
        self.report(shared, markers)
    }

    /// The result, now that the walk is the last one and shares `shared` frames with the
    /// one before.
    ///
    /// Inlined into both callers: `benches/overhead --only hooks` counts 15 to 28 instructions more
    /// for each sample without it.
    #[inline(always)]
    fn report(&mut self, shared: usize, markers: Markers) -> Walk<'_> {
        let before = self.last_markers;
        self.last_markers = markers.codes(self.last.end);
        let [label, mark] = self.last_markers;
        let marks = usize::from(label != 0) + usize::from(mark != 0);
        let shared = if before == self.last_markers { shared + marks } else { 0 };
        let prefix = shared.min(self.received);
        self.received = usize::MAX;
        // Right in front of the frames, in this order.
        if marks != 0
            && let [first, second, ..] = self.last.codes.as_mut()
        {
            *second = if mark != 0 { mark } else { label };
            *first = label;
        }
        let end = MARKERS + self.last.code_count;
        let fresh = self.last.codes.as_ref().get(MARKERS - marks + prefix..end).unwrap_or(&[]);
        let repeated = if fresh.len() >= WORTH_REPEATING && prefix > marks {
            longest_repetition(self.last.streaks.iter().rev(), prefix - marks)
        } else {
            0..0
        };
        Walk {
            prefix,
            fresh,
            repeated,
            #[cfg(test)]
            end: self.last.end,
        }
    }

    /// The receiver did not get the last walk: it has at most the outermost `codes` of
    /// the codes, markers included.
    pub(crate) fn rewind(&mut self, codes: usize) {
        self.received = self.received.min(codes);
    }
}
