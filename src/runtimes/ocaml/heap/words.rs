//! Reads of the runtime's memory while its heap stands still.

use crate::runtimes::ocaml::values::{Header, header};
use crate::tracer::WORD;

/// The permission to read the memory of a runtime whose heap stands still.
#[derive(Clone, Copy)]
pub(crate) struct Words(());

impl Words {
    /// # Safety
    /// No thread of this process runs OCaml code or the collector until the value is
    /// dropped, and its methods are called with addresses only that the runtime itself would
    /// read now: variables of the runtime, words of blocks in its heap, its stacks and
    /// its lists.
    pub(crate) unsafe fn at_rest() -> Words {
        Words(())
    }

    /// The word at an address.
    #[inline]
    pub(crate) fn word(self, address: usize) -> usize {
        // SAFETY: `at_rest` requires that this is memory of the runtime that nobody changes.
        unsafe { (address as *const usize).read() }
    }

    /// Field `index` of a block, or of any structure of words.
    #[inline]
    pub(crate) fn field(self, block: usize, index: usize) -> usize {
        self.word(block.wrapping_add(index.wrapping_mul(WORD)))
    }

    /// A 32-bit number, such as a C `int`.
    pub(crate) fn int(self, address: usize) -> i32 {
        // SAFETY: `at_rest` requires that this is memory of the runtime that nobody changes.
        unsafe { (address as *const i32).read() }
    }

    /// The header of a block.
    #[inline]
    pub(crate) fn header(self, block: usize) -> Header {
        // SAFETY: `at_rest` requires that a block is there.
        unsafe { header(block) }
    }

    /// `count` bytes.
    pub(crate) fn bytes<'a>(self, address: usize, count: usize) -> &'a [u8] {
        // SAFETY: `at_rest` requires that this is memory of the runtime that nobody changes.
        unsafe { std::slice::from_raw_parts(address as *const u8, count) }
    }

    /// The bytes of a C string, at most `limit`.
    pub(crate) fn c_string<'a>(self, address: usize, limit: usize) -> &'a [u8] {
        let is_end = |at: &usize| self.bytes(address.wrapping_add(*at), 1) == [0];
        let length = (0..limit).find(is_end).unwrap_or(limit);
        self.bytes(address, length)
    }
}

/// Whether a value is a pointer (`Is_block`).
#[inline]
pub(crate) fn is_pointer(value: usize) -> bool {
    value & 1 == 0
}
