//! The return addresses on a bytecode stack.
//!
//! A stack is an array of words in which return addresses are recognised by where they point
//! (`caml_next_frame_pointer`, `runtime/backtrace_byt.c`, 4.14.1, and `get_callstack` there,
//! 5.3.0). Addresses of exception handlers look alike, but are linked to each other.

use super::Addresses;
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

/// A return address.
#[derive(Clone, Copy)]
pub(crate) struct ReturnAddress {
    pub(crate) address: usize,
    /// The code of its frame.
    pub(crate) frame: u64,
}

/// Looks at the words of a stack, from its pointer up.
pub(crate) struct ReturnAddresses {
    addresses: Addresses,
    stack: BytecodeStack,
    /// The next word to be looked at.
    at: usize,
}

impl ReturnAddresses {
    /// # Safety
    /// The stack can be read, and does not change, until this is dropped.
    #[inline]
    pub(crate) unsafe fn new(addresses: Addresses, stack: BytecodeStack) -> ReturnAddresses {
        ReturnAddresses { addresses, stack, at: stack.sp }
    }

    /// The next word to be looked at; `None` at the end of the stack.
    #[inline]
    pub(crate) fn at(&self) -> Option<usize> {
        (self.at < self.stack.high).then_some(self.at)
    }

    /// Looks at one more word. Not at the end of the stack.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<ReturnAddress> {
        let at = self.at;
        self.at += WORD;
        // SAFETY: a word of the stack, by the contracts of `new` and of this function.
        let address = unsafe { (at as *const usize).read() };
        // Most words are integers, or point into the heap.
        if address & 1 == 1 {
            return None;
        }
        if at == self.stack.handler {
            // SAFETY: the word behind a handler's address.
            let next = unsafe { (at as *const usize).wrapping_add(1).read() };
            let from = match self.stack.link {
                HandlerLink::FromHandler => at,
                HandlerLink::FromEnd => self.stack.high,
            };
            let distance = (next as isize >> 1).wrapping_mul(WORD as isize);
            self.stack.handler = from.wrapping_add_signed(distance);
            return None;
        }
        self.addresses.frame(address).map(|frame| ReturnAddress { address, frame })
    }
}

impl Iterator for ReturnAddresses {
    type Item = ReturnAddress;

    #[inline]
    fn next(&mut self) -> Option<ReturnAddress> {
        while self.at().is_some() {
            if let Some(found) = self.step() {
                return Some(found);
            }
        }
        None
    }
}
