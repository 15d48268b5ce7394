//! From entries to frames, in two stages that overlap.
//!
//! The frames of an entry are found slot by slot: the next slot is what the last
//! one predicts, a load that must complete before the next can begin. The end of
//! an entry is found byte by byte, and the numbers of entries and predictions are
//! as good as random, so the branch predictor misses once per backtrace. Each
//! stage alone would mostly wait. So the event loop turns entries into *steps*,
//! one for each frame, and the chain follows them somewhat later, a fixed number
//! at a time and without branches: while one stage waits, the other proceeds.
//! Bench: `decode` in `benches/trace.rs`.

use std::hint::select_unpredictable;

use crate::memtrace::cache::{Cache, Slot, index};
use crate::memtrace::decode::frames::NewFrames;
use crate::memtrace::decode::step::Step;
use crate::memtrace::rules::SLOTS;
use crate::model::event::Code;

/// The number of steps followed for each allocation: somewhat more than it has
/// on average, so that few are left at the end.
const BLOCK: usize = 10;

/// How far a packet's steps are followed.
#[derive(Clone, Copy)]
pub(crate) struct Chain {
    /// The last frame's slot.
    slot: usize,
    /// The number of frames found.
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

    /// Follows a block of the first `count` steps, if that many are left.
    #[inline(always)]
    pub(crate) fn advance(&mut self, cache: &mut Cache, new: &mut NewFrames, count: usize) {
        if count - self.done >= BLOCK {
            self.block(cache, new);
        }
    }

    #[inline(never)]
    fn block(&mut self, cache: &mut Cache, new: &mut NewFrames) {
        if let Some((steps, frames)) = new.block::<BLOCK>(self.done) {
            self.walk(cache, steps, frames);
            self.done += BLOCK;
        }
    }

    /// Follows the rest of the first `count` steps.
    #[inline(never)]
    pub(crate) fn finish(&mut self, cache: &mut Cache, new: &mut NewFrames, count: usize) {
        let left = count.saturating_sub(self.done);
        let (steps, frames) = new.from(self.done);
        if let Some(steps) = steps.get(..left) {
            self.walk(cache, steps, frames);
            self.done += left;
        }
    }

    /// A miss after the first `count` steps. It changes the cache, so the steps
    /// before it are followed first.
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

    /// Each step sets the prediction of the previous slot; a step that follows the
    /// prediction sets it to what it was. Stops at an empty slot: a packet with
    /// such a frame is rejected.
    #[inline(always)]
    fn walk(&mut self, cache: &mut Cache, steps: &[Step], frames: &mut [Code]) {
        let (codes, predictions) = (&*cache.codes, &mut *cache.predictions);
        let mut slot = self.slot;
        for (&step, frame) in steps.iter().zip(frames) {
            let predicted = predictions[slot % SLOTS];
            let next = select_unpredictable(step == 0, predicted, step as Slot);
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
