//! One domain's cache of codes, and its last backtrace.

use crate::memtrace::cache::Cache;
use crate::memtrace::decode::frames::{CHUNK, FrameBudget, Padded};
use crate::memtrace::decode::known_slots::KnownSlots;
use crate::memtrace::header::CacheCheck;
use crate::model::event::{Backtrace, Code, LOST_FRAME};

/// One domain's cache and last backtrace.
pub(crate) struct Stack {
    cache: Cache,
    /// What is known of the cache, once a packet was lost.
    known: Option<Box<KnownSlots>>,
    /// `frames[..depth]` is the last backtrace returned.
    frames: Vec<Code>,
    depth: usize,
}

impl Stack {
    pub(crate) fn new() -> Self {
        Stack { cache: Cache::new(), known: None, frames: Vec::new(), depth: 0 }
    }

    /// Whether a packet was lost, so that the cache is only partly known.
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

    /// The cache, and after a loss what is known of it.
    pub(crate) fn parts(&mut self) -> (&mut Cache, Option<&mut KnownSlots>) {
        (&mut self.cache, self.known.as_deref_mut())
    }

    /// Assembles the next backtrace from `prefix` frames of the last one and the
    /// new ones. `budget` bounds all domains together.
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
            // The last backtrace was cut short, by its writer or by the limit, and
            // this one is as short. After a loss it is only unknown: then the
            // frames are lost ones, within a bound.
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

    /// Extends the last backtrace to `depth` frames with lost ones.
    fn lengthen(&mut self, depth: usize, budget: &mut FrameBudget) {
        let granted = budget.grow(&mut self.frames, depth);
        if let Some(unknown) = self.frames.get_mut(self.depth..granted) {
            unknown.fill(LOST_FRAME);
            self.depth = granted;
        }
    }
}

/// At most this many frames count as lost because a common prefix claims them: a
/// few bytes can claim any number.
const MAX_UNKNOWN: usize = 1 << 15;
