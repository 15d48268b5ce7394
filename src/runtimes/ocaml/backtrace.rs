//! A backtrace that is being made. Inside hooks.

use super::bytecode::{Addresses, BytecodeStack, ReturnAddresses};

/// The codes of frames, the innermost first.
pub(super) struct Backtrace<'a> {
    room: &'a mut [u64],
    /// How many frames there are, more than there is room for perhaps.
    pub(super) depth: usize,
}

impl Backtrace<'_> {
    pub(super) fn new(room: &mut [u64]) -> Backtrace<'_> {
        Backtrace { room, depth: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, frame: u64) {
        if let Some(place) = self.room.get_mut(self.depth) {
            *place = frame;
        }
        self.depth += 1;
    }

    /// Adds the frames of a bytecode stack.
    ///
    /// # Safety
    /// The stack is that of the thread that runs the hook.
    pub(super) unsafe fn push_bytecode(&mut self, addresses: Addresses, stack: BytecodeStack) {
        // SAFETY: nobody else changes that stack, by the contract.
        let found = unsafe { ReturnAddresses::new(addresses, stack) };
        found.for_each(|found| self.push(found.frame));
    }
}
