//! Which frame a slot of a bytecode stack belongs to, through all fibers.

use super::stack_slot::{MOST_EMPTY_FIBERS, SlotPlace, StackTop};
use crate::runtimes::ocaml::bytecode::{Addresses, BytecodeStack, Code, HandlerLink};
use crate::runtimes::ocaml::five::layout::{HANDLER_PARENT, HANDLER_WORDS};
use crate::runtimes::ocaml::five::walkers::bytecode_stack;
use crate::runtimes::ocaml::heap::{BytecodeFrame, BytecodeFrames, Words};
use crate::tracer::WORD;

/// Finds the frames of slots in the order in which `caml_scan_stack` reports them
/// (`runtime/fiber.c`, 5.3.0): of each stack its words at ascending addresses, then its
/// `stack_handler`, then its parent.
pub(super) struct FiberFrames {
    words: Words,
    addresses: Addresses,
    /// The `stack_info`; 0 if there is none.
    stack: usize,
    /// Where it begins and ends. Its handler follows.
    bounds: (usize, usize),
    frames: BytecodeFrames,
    /// The number of the stack; 0 is the newest.
    fiber: u32,
}

impl FiberFrames {
    pub(super) fn new(words: Words, code: Code, top: StackTop) -> FiberFrames {
        let addresses = code.now();
        let (bounds, frames) = begin(words, addresses, top, 0);
        FiberFrames { words, addresses, stack: top.stack, bounds, frames, fiber: 0 }
    }

    /// Where a slot is, if it has this number.
    pub(super) fn of(&mut self, slot: usize, index: u32) -> SlotPlace {
        let in_frame = |frame: BytecodeFrame, is_handler| SlotPlace {
            depth: frame.depth,
            return_address: frame.return_address,
            index,
            is_handler,
        };
        while self.stack != 0 {
            let (sp, high) = self.bounds;
            if (sp..high).contains(&slot) {
                return in_frame(self.frames.of(slot), false);
            }
            if (high..high + HANDLER_WORDS * WORD).contains(&slot) {
                let return_address = self.frame_below(high);
                return in_frame(BytecodeFrame { depth: self.fiber, return_address }, true);
            }
            // All frames of this stack are newer than those of its parent.
            self.frames.of(high);
            self.stack = self.words.field(high, HANDLER_PARENT);
            self.fiber += 1;
            if self.stack != 0 {
                let top = StackTop { stack: self.stack, gc_regs: 0, handler_offset: None };
                (self.bounds, self.frames) =
                    begin(self.words, self.addresses, top, self.frames.count());
            }
        }
        in_frame(BytecodeFrame::default(), false)
    }

    /// The return address of the newest frame below a stack; 0 if it is not near.
    fn frame_below(&self, high: usize) -> u64 {
        let mut high = high;
        for _ in 0..MOST_EMPTY_FIBERS {
            let stack = self.words.field(high, HANDLER_PARENT);
            if stack == 0 {
                break;
            }
            let top = StackTop { stack, gc_regs: 0, handler_offset: None };
            let ((sp, end), mut frames) = begin(self.words, self.addresses, top, 0);
            let frame = frames.of(sp);
            if frame.return_address != 0 {
                return frame.return_address;
            }
            high = end;
        }
        0
    }
}

/// The bounds of a stack, and its frames below `depth` others.
fn begin(
    words: Words,
    addresses: Addresses,
    top: StackTop,
    depth: u32,
) -> ((usize, usize), BytecodeFrames) {
    let stack = if top.stack == 0 {
        BytecodeStack { sp: 0, high: 0, handler: 0, link: HandlerLink::FromEnd }
    } else {
        // SAFETY: `words` stands for a heap at rest, of which the stack is a part.
        unsafe { bytecode_stack(top.stack, top.handler_offset) }
    };
    ((stack.sp, stack.high), BytecodeFrames::new(words, addresses, stack, depth))
}
