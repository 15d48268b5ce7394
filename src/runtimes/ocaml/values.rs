//! How the runtime represents values and exceptions, in every version.

use std::ffi::{CStr, c_char, c_int};

use crate::runtimes::attach::symbols::function_at;
use crate::tracer::{Fate, PartSizes, WORD};

/// `Val_unit` (`runtime/caml/mlvalues.h`).
pub(super) const UNIT: usize = 1;

/// Tags (`runtime/caml/mlvalues.h`). Those from [`NO_SCAN`] on hold no pointers; continuations
/// are from OCaml 5 on.
pub(super) const CONTINUATION: u8 = 245;
pub(super) const CLOSURE: u8 = 247;
pub(super) const INFIX: u8 = 249;
pub(super) const NO_SCAN: u8 = 251;
pub(super) const STRING: u8 = 252;
pub(super) const CUSTOM: u8 = 255;

/// A block's header (`runtime/caml/mlvalues.h`): the size is above tag and colour.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Header(pub(super) usize);

impl Header {
    /// Words without the header.
    #[inline]
    pub(super) fn size(self) -> usize {
        self.0 >> 10
    }

    /// Words with the header (`Whsize_hd`).
    #[inline]
    pub(super) fn words(self) -> usize {
        self.size() + 1
    }

    #[inline]
    pub(super) fn tag(self) -> u8 {
        self.0 as u8
    }

    /// The colour, which the collector uses.
    #[inline]
    pub(super) fn colour(self) -> usize {
        self.0 & (3 << 8)
    }
}

/// The first field of the environment of a closure, whose second field this is
/// (`Start_env_closinfo`).
pub(super) fn environment(info: usize) -> usize {
    (info << 8) >> 9
}

/// The words of a part of a combined allocation, header included
/// (`Wosize_encoded_alloc_len`, `runtime/caml/stack.h`).
fn part_words(encoded: u8) -> usize {
    usize::from(encoded) + 2
}

/// The sizes of `count` blocks that are allocated in one go, by their encoded
/// lengths.
///
/// # Safety
/// `count` lengths lie there until the iterator is dropped.
pub(super) unsafe fn part_sizes(count: c_int, lengths: *const u8) -> impl PartSizes {
    (0..usize::try_from(count).unwrap_or(0)).map(move |index| {
        // SAFETY: one of `count` lengths, by the contract.
        part_words(unsafe { lengths.wrapping_add(index).read() })
    })
}

/// The word in front of a block.
///
/// # Safety
/// A block of the runtime's heap is there.
pub(super) unsafe fn header(block: usize) -> Header {
    // SAFETY: by the contract a block, which has a header in front of it.
    Header(unsafe { ((block - WORD) as *const usize).read() })
}

/// What has become of a young block, in every version: a header of 0 means that it was promoted,
/// and that its first field holds the new address.
///
/// # Safety
/// A block of a young heap that was collected and is not reused yet.
#[inline]
pub(super) unsafe fn young_fate(block: usize) -> Fate {
    // SAFETY: by the contract a block.
    if unsafe { header(block) }.0 != 0 {
        return Fate::Dead;
    }
    // SAFETY: by the contract a block; every block has a field.
    Fate::Promoted(unsafe { (block as *const usize).read() })
}

/// Raises `Failure`: jumps over the frames of its callers up to the runtime's.
///
/// # Safety
/// `failwith` is the address of `void caml_failwith (char const *)`
/// (`runtime/fail_nat.c`), which does not return; the callers own nothing.
pub(super) unsafe fn raise_failure(failwith: usize, message: &'static CStr) -> usize {
    // SAFETY: by the contract a function of this type.
    let failwith: extern "C-unwind" fn(*const c_char) = unsafe { function_at(failwith) };
    failwith(message.as_ptr());
    UNIT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let pair = [2usize << 10, 1, 1];
        // SAFETY: a block of two fields.
        let header = unsafe { header(&raw const pair[1] as usize) };
        assert_eq!((header.words(), header.size(), header.tag()), (3, 2, 0));
        // SAFETY: three lengths.
        let sizes = unsafe { part_sizes(3, [0, 5, 255].as_ptr()) };
        assert_eq!(sizes.collect::<Vec<_>>(), [2, 7, 257]);
    }
}
