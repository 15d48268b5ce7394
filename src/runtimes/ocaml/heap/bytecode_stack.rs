//! Which frame a slot of a bytecode stack belongs to.
//!
//! A stack is an array of words. A call pushes the return address, the environment and the
//! number of extra arguments (`PUSH_RETADDR`, `runtime/interp.c`, 4.14.1 and 5.3.0), and the
//! interpreter pushes its own program counter before it calls C or the collector
//! (`Setup_for_c_call`, `Setup_for_gc`). So the words from a return address up to the next one
//! belong to the function that it leads back to, and those before the first one to the same function as
//! the first.

use super::words::Words;
use crate::runtimes::ocaml::bytecode::{Addresses, BytecodeStack, ReturnAddresses};

/// The frame of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct BytecodeFrame {
    /// 0 is the newest frame.
    pub(crate) depth: u32,
    /// 0 if there is no frame.
    pub(crate) return_address: u64,
}

/// Finds the frames of slots at ascending addresses.
pub(crate) struct BytecodeFrames {
    words: ReturnAddresses,
    /// How many frames were found.
    count: u32,
    return_address: u64,
}

impl BytecodeFrames {
    /// `depth`: how many frames are newer than those of this stack.
    pub(crate) fn new(_: Words, addresses: Addresses, stack: BytecodeStack, depth: u32) -> Self {
        // SAFETY: `Words` stands for a heap at rest, of which the stack is a part.
        let words = unsafe { ReturnAddresses::new(addresses, stack) };
        let mut frames = BytecodeFrames { words, count: depth, return_address: 0 };
        while frames.words.at().is_some() && frames.count == depth {
            frames.advance();
        }
        frames
    }

    /// How many frames were found, with those of newer stacks.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// The frame of a slot. Slots ascend.
    pub(crate) fn of(&mut self, slot: usize) -> BytecodeFrame {
        while self.words.at().is_some_and(|at| at <= slot) {
            self.advance();
        }
        BytecodeFrame { depth: self.count.saturating_sub(1), return_address: self.return_address }
    }

    /// Looks at one more word.
    fn advance(&mut self) {
        if let Some(found) = self.words.step() {
            self.return_address = found.address as u64;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtimes::ocaml::bytecode::HandlerLink;
    use crate::tracer::WORD;

    fn frames(words: &[usize], handler: usize, link: HandlerLink, depth: u32) -> Vec<(u32, u64)> {
        let base = words.as_ptr() as usize;
        let high = base + words.len() * WORD;
        let stack = BytecodeStack { sp: base, high, handler: base + handler * WORD, link };
        // SAFETY: words of the tests.
        let memory = unsafe { Words::at_rest() };
        let addresses = Addresses::of_program(0x4000, 0x100);
        let mut frames = BytecodeFrames::new(memory, addresses, stack, depth);
        let frame = |index: usize| {
            let BytecodeFrame { depth, return_address } = frames.of(base + index * WORD);
            (depth, return_address)
        };
        (0..words.len()).map(frame).collect()
    }

    #[test]
    fn slots_belong_to_the_return_address_before_them() {
        let words = [0x9000, 0x4010, 0x9008, 3, 0x4020, 0x9010];
        let first = (0, 0x4010);
        let second = (1, 0x4020);
        let expected = [first, first, first, first, second, second];
        assert_eq!(frames(&words, 100, HandlerLink::FromHandler, 0), expected);
        let deeper = expected.map(|(depth, address)| (depth + 7, address));
        assert_eq!(frames(&words, 100, HandlerLink::FromHandler, 7), deeper);
    }

    #[test]
    fn handlers_are_no_frames() {
        // Handlers at 1 and 4; the second word of the first leads to the other.
        for (link, distance) in [(HandlerLink::FromHandler, 3isize), (HandlerLink::FromEnd, -2)] {
            let next = (distance << 1 | 1) as usize;
            let words = [0x4010, 0x4020, next, 0x9000, 0x4030, 1];
            assert_eq!(frames(&words, 1, link, 0), [(0, 0x4010); 6]);
        }
    }

    #[test]
    fn a_stack_without_frames_has_none() {
        assert_eq!(frames(&[3, 0x9000], 100, HandlerLink::FromEnd, 0), [(0, 0); 2]);
    }
}
