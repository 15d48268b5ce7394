//! The backtrace cache's slots, on both sides of the format.
//!
//! A code is in one of two slots that its value determines. Each slot also
//! remembers which slot followed it last: its prediction. Codes and predictions
//! are separate arrays because the decoder's critical path is the chain of
//! predictions, whose 32 KiB stay in the first-level data cache.

use crate::memtrace::header::CacheCheck;
use crate::memtrace::rules::SLOTS;
use crate::memtrace::zeroed::boxed;
use crate::model::event::Code;

/// A slot's number, below [`SLOTS`].
pub(crate) type Slot = u16;

/// The slots. The reader's memory is bounded, so its arrays are exact. A writer
/// has few domains and makes both so large that unused pages stay untouched: see
/// [`crate::memtrace::zeroed`]. Only the first [`SLOTS`] of each are used.
pub(crate) struct Cache<const CODES: usize = SLOTS, const PREDICTIONS: usize = SLOTS> {
    pub(crate) codes: Box<[Code; CODES]>,
    /// The slot that last followed.
    pub(crate) predictions: Box<[Slot; PREDICTIONS]>,
}

impl<const CODES: usize, const PREDICTIONS: usize> Cache<CODES, PREDICTIONS> {
    pub(crate) fn new() -> Self {
        Cache { codes: boxed(), predictions: boxed() }
    }

    /// A slot's content in the form of a packet's cache check.
    pub(crate) fn check(&self, slot: Slot) -> CacheCheck {
        let at = index(slot);
        CacheCheck { slot, prediction: self.predictions[at], code: self.codes[at] }
    }
}

/// The slot as an index that is in range, so that the bounds check is elided.
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
