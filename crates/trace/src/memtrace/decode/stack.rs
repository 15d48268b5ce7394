//! One domain's backtraces: the cache of codes, and the last backtrace.

use crate::memtrace::cache::Cache;
use crate::memtrace::decode::frames::{CHUNK, FrameBudget, Padded};
use crate::memtrace::decode::known_slots::KnownSlots;
use crate::memtrace::header::CacheCheck;
use crate::model::event::{Backtrace, Code, LOST_FRAME};

/// One domain's cache and last backtrace.
pub(crate) struct Stack {
    cache: Cache,
    known: Option<Box<KnownSlots>>,
    /// `frames[..depth]` is the last backtrace handed out, the rest is room.
    frames: Vec<Code>,
    depth: usize,
}

impl Stack {
    pub(crate) fn new() -> Self {
        Stack { cache: Cache::new(), known: None, frames: Vec::new(), depth: 0 }
    }

    /// Whether a packet was lost and the cache is only partly known since.
    #[inline(always)]
    pub(crate) fn is_after_loss(&self) -> bool {
        self.known.is_some()
    }

    /// Forgets what a lost packet may have changed.
    pub(crate) fn lose(&mut self) {
        self.known = Some(KnownSlots::new());
        self.depth = 0;
    }

    /// Compares a packet's cache check with the cache.
    pub(crate) fn check(&mut self, check: CacheCheck) -> bool {
        match &mut self.known {
            Some(known) => known.learn(&mut self.cache, check),
            None => self.cache.check(check.slot) == check,
        }
    }

    /// The cache, and what is in doubt of it.
    pub(crate) fn parts(&mut self) -> (&mut Cache, Option<&mut KnownSlots>) {
        (&mut self.cache, self.known.as_deref_mut())
    }

    /// Puts the next backtrace together: `prefix` frames of the last one and
    /// the new ones. `budget` is what all domains together may keep.
    #[inline(always)]
    pub(crate) fn advance<'a>(
        &'a mut self,
        prefix: u32,
        new: Padded<'a>,
        budget: &mut FrameBudget,
    ) -> Backtrace<'a> {
        let shared = prefix as usize;
        if shared <= self.depth && new.copy_chunk(&mut self.frames, shared) {
            self.depth = shared + new.frames.len();
        } else {
            self.advance_slowly(shared, new.frames, budget);
        }
        let frames = self.frames.get(..self.depth).unwrap_or(&[]);
        Backtrace { frames, common_prefix: u64::from(prefix), new: new.frames }
    }

    #[inline(never)]
    fn advance_slowly(&mut self, shared: usize, new: &[Code], budget: &mut FrameBudget) {
        if shared > self.depth {
            // The last backtrace was cut short, by its writer or by our limit:
            // what we have of it is all there is of this one. Unless it is
            // only unknown, and not so deep that a few bytes fill the memory.
            let unknown = if self.known.is_some() { shared.min(MAX_UNKNOWN) } else { 0 };
            self.lengthen(unknown, budget);
        }
        if shared > self.depth {
            return;
        }
        let wanted = shared + new.len();
        let granted = if self.frames.len() < wanted + CHUNK {
            budget.grow(&mut self.frames, wanted)
        } else {
            wanted
        };
        let kept = granted.saturating_sub(shared).min(new.len());
        let room = self.frames.get_mut(shared..shared + kept);
        if let (Some(room), Some(new)) = (room, new.get(..kept)) {
            room.copy_from_slice(new);
        }
        self.depth = shared + kept;
    }

    /// Makes the last backtrace `depth` frames deep, with lost ones.
    fn lengthen(&mut self, depth: usize, budget: &mut FrameBudget) {
        let granted = budget.grow(&mut self.frames, depth);
        if let Some(unknown) = self.frames.get_mut(self.depth..granted) {
            unknown.fill(LOST_FRAME);
            self.depth = granted;
        }
    }
}

/// No more frames than this are taken for lost only because a common prefix
/// claims them: a few bytes can claim any number.
const MAX_UNKNOWN: usize = 1 << 15;
