//! From entries to frames, in two steps that run side by side.
//!
//! What an entry stands for is known only slot by slot: which slot comes next is
//! what the last one predicts, a load from memory that must end before the next
//! can begin. Where an entry ends is known only byte by byte, and how many
//! entries and predictions there are is as good as random, so that the processor
//! guesses wrongly once in each backtrace. Either alone takes most of its time
//! waiting. So the packet's loop turns entries into *steps*, one for each frame,
//! and the chain follows them somewhat later, a fixed number at a time and
//! without a branch: while the loop waits for one, the chain gets on with the
//! other.

use std::hint::select_unpredictable;

use crate::memtrace::cache::{Cache, Slot, index};
use crate::memtrace::decode::frames::NewFrames;
use crate::memtrace::decode::step::Step;
use crate::memtrace::rules::SLOTS;
use crate::model::event::Code;

/// So many steps are followed for each allocation: rather more than it has, so
/// that few are left at the end.
const BLOCK: usize = 10;

/// How far a packet's steps are followed.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    /// The last frame's slot.
    slot: usize,
    /// How many frames are there.
    done: usize,
    /// Whether some frame comes from a slot that was never filled.
    met_empty_slot: bool,
}

impl Chain {
    pub(crate) fn new() -> Self {
        Chain { slot: 0, done: 0, met_empty_slot: false }
    }

    /// Whether some frame so far comes from a slot that was never filled.
    pub(crate) fn met_empty_slot(self) -> bool {
        self.met_empty_slot
    }

    /// Follows some of the first `count` steps, if they are enough.
    #[inline(always)]
    pub(crate) fn advance(&mut self, cache: &mut Cache, new: &mut NewFrames, count: usize) {
        if count - self.done >= BLOCK {
            self.block(cache, new);
        }
    }

    #[inline(never)]
    fn block(&mut self, cache: &mut Cache, new: &mut NewFrames) {
        if let Some((steps, frames)) = new.block::<BLOCK>(self.done) {
            self.follow(cache, steps, frames);
            self.done += BLOCK;
        }
    }

    /// Follows what is left of the first `count` steps.
    #[inline(never)]
    pub(crate) fn finish(&mut self, cache: &mut Cache, new: &mut NewFrames, count: usize) {
        let left = count.saturating_sub(self.done);
        let (steps, frames) = new.from(self.done);
        if let Some(steps) = steps.get(..left) {
            self.follow(cache, steps, frames);
            self.done += left;
        }
    }

    /// A miss behind the first `count` steps: what depends on the cache as it
    /// was before has to come first.
    #[inline(never)]
    pub(crate) fn miss(
        &mut self,
        cache: &mut Cache,
        new: &mut NewFrames,
        count: usize,
        step: Step,
        code: Code,
    ) {
        self.finish(cache, new, count);
        let chain = self;
        let before = if step < 0 { 0 } else { chain.slot };
        chain.slot = index(step as Slot);
        cache.predictions[before % SLOTS] = chain.slot as Slot;
        cache.codes[chain.slot] = code;
        if let [frame, ..] = new.from(count).1 {
            *frame = code;
        }
        chain.done = count + 1;
    }

    /// Each step sets the prediction of the slot before, where it goes by that
    /// prediction to what it was. Ends at an empty slot: no packet with such a
    /// frame is handed out.
    #[inline(always)]
    fn follow(&mut self, cache: &mut Cache, steps: &[Step], frames: &mut [Code]) {
        let (codes, predictions) = (&*cache.codes, &mut *cache.predictions);
        let mut slot = self.slot;
        for (&step, frame) in steps.iter().zip(frames) {
            let foretold = predictions[slot % SLOTS];
            let next = select_unpredictable(step == 0, foretold, step as Slot);
            let before = select_unpredictable(step < 0, 0, slot);
            slot = index(next);
            predictions[before % SLOTS] = slot as Slot;
            let code = codes[slot];
            *frame = code;
            if code == 0 {
                self.met_empty_slot = true;
                break;
            }
        }
        self.slot = slot;
    }
}
