//! Blocks that are about to be freed or resized, by a runtime that learns only afterwards whether
//! that has worked, when the address may be another thread's already. Hooks.

use crate::blocks::TrackedId;
use crate::queue::EndWord;
use crate::stack::native::Registers;
use crate::tracer::mutator::Mutator;

/// A sampled block that has no address at the moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DetachedBlock(TrackedId);

impl Mutator {
    /// Takes the block at this address, if it was sampled. Costs one table lookup.
    #[inline]
    pub(crate) fn detach(&self, address: usize) -> Option<DetachedBlock> {
        self.recorder.by_address.take(address).map(DetachedBlock)
    }

    /// The block is still at its address.
    pub(crate) fn reattach(&self, address: usize, block: DetachedBlock) {
        // Without memory it stays alive in the trace.
        self.recorder.by_address.add(address, block.0);
    }

    /// The block was freed. In a forked child, which has none of its parent's blocks, nothing
    /// happens.
    pub(crate) fn end_detached(&mut self, block: DetachedBlock) {
        if self.is_live() && !self.has_forked() {
            let mut hook = self.enter(Registers::NONE);
            self.recorder.record_end(&mut hook, EndWord::collected(block.0.block()));
            self.leave(&hook);
        }
    }
}
