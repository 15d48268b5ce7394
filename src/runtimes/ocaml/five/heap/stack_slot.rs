//! Where stacks begin, and where their slots are.

/// Where a chain of stacks begins.
#[derive(Clone, Copy)]
pub(super) struct StackTop {
    /// The address of its `stack_info`.
    pub(super) stack: usize,
    /// Of native code: where registers were saved.
    pub(super) gc_regs: usize,
    /// Of bytecode that runs: `trap_sp_off`, the innermost exception handler in words from the
    /// stack's end. A stack that is suspended has it on top.
    pub(super) handler_offset: Option<isize>,
}

/// Where a slot of a stack is.
#[derive(Clone, Copy, Default)]
pub(super) struct SlotPlace {
    /// Of its frame; 0 is the newest. Of a handler the number of the fiber; 0 is the newest.
    pub(super) depth: u32,
    /// Into the frame's function. Of a handler into that of the newest frame below the fiber. 0 if it
    /// is not known.
    pub(super) return_address: u64,
    /// Its number in the frame, or among the handlers.
    pub(super) index: u32,
    /// A function that handles the fiber's end or effects.
    pub(super) is_handler: bool,
}

/// How many fibers without a frame are passed to find who runs them.
pub(super) const MOST_EMPTY_FIBERS: usize = 16;
