//! The backtrace cache's slots, on both sides of the format.
//!
//! A code is in one of two slots that its value determines. Each slot also
//! remembers which slot followed it last: its prediction. The arrays are kept
//! apart because the decoder's critical path is the chain of predictions, and
//! 32 KiB of those stay in the first-level data cache.

use crate::memtrace::header::CacheCheck;
use crate::memtrace::rules::SLOTS;
use crate::memtrace::zeroed::boxed;
use crate::model::event::Code;

/// A slot's number, below [`SLOTS`].
pub(crate) type Slot = u16;

/// What both sides keep of each slot. Readers count the memory they take; writers,
/// who have few domains, want what they do not use untouched: see [`UNTOUCHED`].
pub(crate) struct Cache<const ROOM: usize = SLOTS> {
    pub(crate) codes: Box<[Code; SLOTS]>,
    /// The slot that last followed. Only the first [`SLOTS`] are used.
    pub(crate) predictions: Box<[Slot; ROOM]>,
}

impl<const ROOM: usize> Cache<ROOM> {
    pub(crate) fn new() -> Self {
        Cache { codes: boxed(), predictions: boxed() }
    }

    /// A slot's content, as a packet header states it.
    pub(crate) fn check(&self, slot: Slot) -> CacheCheck {
        let at = index(slot);
        CacheCheck { slot, prediction: self.predictions[at], code: self.codes[at] }
    }
}

/// An index that cannot be out of range, so the compiler leaves out the check.
#[inline(always)]
pub(crate) fn index(slot: Slot) -> usize {
    usize::from(slot) & (SLOTS - 1)
}

/// The two slots a code can be in. The products are those of 63-bit integers,
/// whose upper bits do not reach the result.
#[inline(always)]
pub(crate) fn homes(code: Code) -> (Slot, Slot) {
    let first = code.wrapping_mul(0x498_3723) >> 11;
    let second = code.wrapping_mul(0xfde_a731) >> 21;
    (first as u16 & (SLOTS as u16 - 1), second as u16 & (SLOTS as u16 - 1))
}
