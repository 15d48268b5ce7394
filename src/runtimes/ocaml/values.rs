//! How the runtime represents values, in every version.

use crate::sampling::WORD;

/// `Val_unit` (`runtime/caml/mlvalues.h`).
pub(super) const UNIT: usize = 1;

/// The words of a block with this header, header included (`Whsize_hd`,
/// `runtime/caml/mlvalues.h`): the size is above tag and colour.
pub(super) fn words(header: usize) -> usize {
    (header >> 10) + 1
}

/// The words of a part of a combined allocation, header included
/// (`Wosize_encoded_alloc_len`, `runtime/caml/stack.h`).
pub(super) fn part_words(encoded: u8) -> usize {
    usize::from(encoded) + 2
}

/// The word in front of a block.
///
/// # Safety
/// A block of the runtime's is there.
pub(super) unsafe fn header(block: usize) -> usize {
    // SAFETY: the caller's promise.
    unsafe { ((block - WORD) as *const usize).read() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        let pair = [2usize << 10, 1, 1];
        // SAFETY: a block of two fields.
        let header = unsafe { header(&raw const pair[1] as usize) };
        assert_eq!(words(header), 3);
        assert_eq!(part_words(0), 2);
    }
}
