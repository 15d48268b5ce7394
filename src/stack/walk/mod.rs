//! The walk over managed frames.
//!
//! Consecutive samples share most of their stack, and the trace format wants to
//! know how much. So a walker keeps the frames of its previous walk, outermost
//! first, each with a *witness*: the address where its return address was read.
//! A frame's size depends on its return address alone. Hence, if the witnesses
//! of a frame and of all outside of it still hold the same words, the chain from
//! there outwards is the same, and looking at them needs no table and no load
//! that waits for another.
//!
//! A walk goes outwards by the tables from the innermost frame until it meets a
//! held one, verifies those outside of it, and goes on by the tables where they
//! have changed. What it says it shares with the previous walk is exact: the
//! longest common run of codes from the outermost inwards. A small stack is not
//! worth that: it is walked whole each time, and what is shared is not asked.
//!
//! - `run`: the loop over frames, by a cache of the tables;
//! - `pass`: a walk that may meet what is `held`, `crossing` from chunk to chunk;
//!   `verify` looks whether that is still so, `settle` holds what was found;
//! - `streaks`: frames of a recursion, looked at as one;
//! - `few`: a walk over a small stack.
//!
//! Runs on the mutator, inside hooks: no malloc, no locks, no panics. A walker's
//! storage is given to it and never grows.
//!
//! A stack deeper than `max_frames` is cut at its outer end. To let such walks
//! share frames too, the cut stays where it is in the stack while between half
//! of `max_frames` and all of it are inside of it.

#![allow(unsafe_code, reason = "hands out the reader of the live stack")]

mod crossing;
mod few;
mod held;
mod pass;
mod run;
mod settle;
mod streaks;
#[cfg(test)]
mod tests;
mod verify;

use core::ops::Range;

use super::memory::{Live, Memory};
use super::table::FrameTables;
pub(crate) use few::FEW;
use few::walk_few;
use held::{Held, OUTER};
use pass::Pass;

/// Where a walk begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Of the innermost managed frame; 0 if there is none.
    pub(crate) return_address: u64,
    /// That frame's stack pointer.
    pub(crate) sp: u64,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the outermost frame.
    Complete,
    /// At the limit of frames (or of the room for crossings).
    Cut,
    /// At a return address that is in no table.
    Unknown,
    /// At a word that makes no sense.
    Broken,
}

/// Codes that go in front of the frames, as if they were frames; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outer {
    /// The outermost: what the mutator is doing.
    pub(crate) label: u64,
    /// In place of the frames beyond the limit.
    pub(crate) cut: u64,
    /// In place of frames that could not be found.
    pub(crate) unknown: u64,
}

impl Outer {
    fn codes(self, end: End) -> [u64; OUTER] {
        let mark = match end {
            End::Complete => 0,
            End::Cut => self.cut,
            End::Unknown | End::Broken => self.unknown,
        };
        [self.label, mark]
    }
}

/// A stack, as what it shares with the previous one and what is new.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    /// How many of the outermost frames are those of the previous walk.
    pub(crate) prefix: usize,
    /// The codes of the frames inside of those, outermost first.
    pub(crate) fresh: &'a [u64],
    /// Of those, many that have the code of the one outside of them, which may be
    /// the last that is shared.
    pub(crate) repeated: Range<usize>,
    #[allow(dead_code, reason = "the mark among the codes tells it too; tests and benches ask")]
    pub(crate) end: End,
}

#[cfg(test)]
impl Walk<'_> {
    /// All frames, those shared included.
    pub(crate) fn depth(&self) -> usize {
        self.prefix + self.fresh.len()
    }
}

/// Fewer frames are told one by one.
const REPEATED: usize = if cfg!(test) { 4 } else { 64 };

/// What has few frames and is not small, for a callback from C in between say, may
/// stay so for long or be over at once: it is tried again once in so many walks.
const PATIENCE: u8 = 16;

/// The walks of one mutator.
pub(crate) struct Walker<S> {
    /// With witnesses for all of the codes' frames, or none.
    held: Held<S>,
    /// Codes held, without the label.
    codes: usize,
    end: End,
    /// What was in front of the frames; 0 for nothing.
    outer: [u64; OUTER],
    /// The receiver has no more than so many of the outermost frames.
    received: usize,
    /// Of the tables, at the previous walk.
    generation: u64,
    /// So many walks over few frames until one is tried as over a small stack.
    patience: u8,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> Walker<S> {
    /// Asks for its storage, some times so many words; `None` if that is refused. The
    /// first of it is the cache of tables and begins with zeros; what is in the rest
    /// does not matter. None of it is touched here: pages that are not used cost
    /// nothing.
    pub(crate) fn new(max_frames: usize, storage: impl FnMut(usize) -> Option<S>) -> Option<Self> {
        let (outer, end) = ([0; OUTER], End::Complete);
        let (codes, received, generation, patience) = (0, 0, 0, 0);
        let held = Held::new(max_frames, storage)?;
        Some(Self { held, codes, end, outer, received, generation, patience })
    }

    /// Walks the stack of the calling thread's mutator. What `outer` asks for is
    /// in front of the frames.
    ///
    /// # Safety
    /// `start` is where the managed stack is, the tables describe the frames on
    /// it, and it does not change during the call.
    ///
    /// Not inlined: frames of C code, which need much of the stack to be found, are
    /// looked for before.
    #[inline(never)]
    pub(crate) unsafe fn walk(
        &mut self,
        tables: &FrameTables,
        start: Start,
        outer: Outer,
    ) -> Walk<'_> {
        // SAFETY: the caller's promise.
        let live = unsafe { Live::new() };
        self.walk_in(&live, tables, start, outer)
    }

    /// Whether the next stack may be a small one: that is tried until it is not,
    /// and again when a large one has become small, or after some [`PATIENCE`].
    pub(crate) fn expects_small(&self) -> bool {
        self.patience == 0 && self.held.max_frames >= FEW
    }

    /// Walks a small stack and puts its codes into the room, innermost first;
    /// tells how many. `None` if it is not small. The next walk that is not by
    /// this shares nothing.
    ///
    /// # Safety
    /// As for [`Walker::walk`].
    #[inline]
    pub(crate) unsafe fn walk_small(
        &mut self,
        tables: &FrameTables,
        start: Start,
        codes: &mut [u64; FEW],
    ) -> Option<usize> {
        // SAFETY: the caller's promise.
        let live = unsafe { Live::new() };
        self.walk_small_in(&live, tables, start, codes)
    }

    #[inline(always)]
    fn walk_small_in<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        start: Start,
        codes: &mut [u64; FEW],
    ) -> Option<usize> {
        let count = walk_few(memory, tables, self.held.cache()?, start, codes);
        match count {
            Some(_) => {
                self.held.forget();
                (self.codes, self.received) = (0, 0);
            }
            None => self.patience = PATIENCE,
        }
        count
    }

    fn walk_in<M: Memory>(
        &mut self,
        memory: &M,
        tables: &FrameTables,
        start: Start,
        outer: Outer,
    ) -> Walk<'_> {
        let generation = tables.generation();
        if generation != self.generation {
            // A walk that ended at an unknown address might go on now.
            self.held.forget();
            self.generation = generation;
        }
        let held = &mut self.held;
        let was_large = held.frames > FEW;
        let found = Pass::new(memory, tables, held, self.end).run(start);
        let common = held.common(found.kept, self.codes);
        self.codes = found.kept + held.fresh;
        held.settle(found.kept);
        self.end = found.end;
        if held.frames <= FEW {
            self.patience = if was_large { 0 } else { self.patience.saturating_sub(1) };
        }
        self.report(common, outer)
    }

    /// Takes over what the host's own walker found of a stack of `depth` frames,
    /// and turns it around. At most `max_frames` of the innermost codes are kept.
    pub(crate) fn accept(
        &mut self,
        innermost_first: &mut [u64],
        depth: usize,
        outer: Outer,
    ) -> Walk<'_> {
        let count = innermost_first.len().min(self.held.max_frames);
        self.end = if count < depth { End::Cut } else { End::Complete };
        let codes = innermost_first.get_mut(..count).unwrap_or(&mut []);
        codes.reverse();
        self.held.forget();
        self.hold_codes(codes, outer)
    }

    /// Holds these codes, no more than `max_frames`, in place of what was held.
    #[inline]
    fn hold_codes(&mut self, codes: &[u64], outer: Outer) -> Walk<'_> {
        let held = self.held.codes.as_mut().get_mut(OUTER..).unwrap_or(&mut []);
        let old = held.get(..self.codes).unwrap_or(&[]);
        let common = old.iter().zip(codes).take_while(|(old, new)| old == new).count();
        held.iter_mut().zip(codes).skip(common).for_each(|(to, from)| *to = *from);
        self.codes = codes.len();
        self.report(common, outer)
    }

    /// The result, now that `codes` codes are held of which `common` are shared.
    #[inline(always)]
    fn report(&mut self, common: usize, outer: Outer) -> Walk<'_> {
        let before = self.outer;
        self.outer = outer.codes(self.end);
        let [label, mark] = self.outer;
        let marks = usize::from(label != 0) + usize::from(mark != 0);
        let shared = if before == self.outer { common + marks } else { 0 };
        let prefix = shared.min(self.received);
        self.received = usize::MAX;
        // In front of the frames, without holes.
        if marks != 0
            && let [first, second, ..] = self.held.codes.as_mut()
        {
            *second = if mark != 0 { mark } else { label };
            *first = label;
        }
        let codes = self.held.codes.as_ref();
        let fresh = codes.get(OUTER - marks + prefix..OUTER + self.codes).unwrap_or(&[]);
        let repeated = if fresh.len() >= REPEATED && prefix > marks {
            streaks::longest_behind(self.held.streaks(), prefix - marks)
        } else {
            0..0
        };
        Walk { prefix, fresh, repeated, end: self.end }
    }

    /// The receiver of the walks did not get the last one: of what is held, it
    /// shares only the outermost `frames`, those of [`Outer`] included.
    pub(crate) fn rewind(&mut self, frames: usize) {
        self.received = self.received.min(frames);
    }
}
