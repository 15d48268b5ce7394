//! Which frame a slot of a bytecode stack belongs to.
//!
//! A stack is an array of words. A call pushes the return address, the environment and the
//! number of extra arguments (`PUSH_RETADDR`, `runtime/interp.c`, 4.14.1 and 5.3.0), and the
//! interpreter pushes its own program counter before it calls C or the collector
//! (`Setup_for_c_call`, `Setup_for_gc`). So the words from a return address up to the next one
//! belong to the function that it leads back to, and those before the first one to the same function as
//! the first. Addresses of exception handlers look alike, but are linked to each other.

use super::words::{Words, is_pointer};
use crate::runtimes::ocaml::bytecode::Addresses;
use crate::tracer::WORD;

/// How an exception handler on a stack refers to the next one: by its second word, a number of
/// words as an OCaml integer.
#[derive(Clone, Copy)]
pub(crate) enum HandlerLink {
    /// From the handler: OCaml 4.
    FromHandler,
    /// From the end of the stack: OCaml 5.
    FromEnd,
}

/// A bytecode stack.
#[derive(Clone, Copy)]
pub(crate) struct BytecodeStack {
    pub(crate) sp: usize,
    /// Past its last word.
    pub(crate) high: usize,
    /// The address of the innermost exception handler.
    pub(crate) handler: usize,
    pub(crate) link: HandlerLink,
}

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
    words: Words,
    addresses: Addresses,
    stack: BytecodeStack,
    /// The next word to be looked at.
    at: usize,
    /// How many frames were found.
    count: u32,
    return_address: u64,
}

impl BytecodeFrames {
    /// `depth`: how many frames are newer than those of this stack.
    pub(crate) fn new(
        words: Words,
        addresses: Addresses,
        stack: BytecodeStack,
        depth: u32,
    ) -> BytecodeFrames {
        let mut frames = BytecodeFrames {
            words,
            addresses,
            stack,
            at: stack.sp,
            count: depth,
            return_address: 0,
        };
        while frames.at < stack.high && frames.count == depth {
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
        while self.at <= slot && self.at < self.stack.high {
            self.advance();
        }
        BytecodeFrame { depth: self.count.saturating_sub(1), return_address: self.return_address }
    }

    /// Looks at one more word: as `caml_next_frame_pointer` (`runtime/backtrace_byt.c`).
    fn advance(&mut self) {
        let at = self.at;
        self.at += WORD;
        let value = self.words.word(at);
        if !is_pointer(value) {
            return;
        }
        if at == self.stack.handler {
            let distance = (self.words.field(at, 1) as isize >> 1).wrapping_mul(WORD as isize);
            let from = match self.stack.link {
                HandlerLink::FromHandler => at,
                HandlerLink::FromEnd => self.stack.high,
            };
            self.stack.handler = from.wrapping_add_signed(distance);
        } else if self.addresses.frame(value).is_some() {
            self.return_address = value as u64;
            self.count += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
