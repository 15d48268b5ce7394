//! What is known about each release: where things are in the state of the runtime and in its
//! heap.
//!
//! `Caml_state` points to words in the order of `runtime/caml/domain_state.tbl`. To
//! support a release that moved a word, add a row to [`KNOWN`]; `prove` checks it.

use crate::runtimes::ocaml::releases::layout;
use crate::runtimes::ocaml::values::Header;
use crate::runtimes::ocaml::{MajorVersion, Releases};

/// All that depends on the release. `prove` checks that the runtime is as one of them says, and
/// whatever depends on the release is read from that one.
#[derive(Debug)]
pub(super) struct KnownRelease {
    pub(super) releases: Releases,
    pub(super) state: StateLayout,
    /// What a chunk of the heap may begin with: which it is shows when the heap is walked.
    pub(super) chunk_heads: &'static [ChunkHead],
}

/// Words of the state, at least: the table has 54 entries.
pub(super) const STATE_WORDS: usize = 54;

layout! {
    /// Indices of words in the state, by their names in `domain_state.tbl`.
    pub(super) struct StateLayout, const STATE_4_13 {
        young_limit = 0,
        young_ptr = 1,
        young_start = 4,
        young_end = 5,
        young_alloc_start = 6,
        young_alloc_end = 7,
        young_trigger = 9,
        minor_heap_wsz = 10,
        /// Of bytecode's stack, as are the next two.
        stack_high = 18,
        extern_sp = 20,
        trapsp = 21,
        /// Of native code's stack, as is the next.
        bottom_of_stack = 26,
        last_return_address = 27,
        gc_regs = 28,
        backtrace_active = 29,
        requested_minor_gc = 35,
        local_roots = 36,
        stat_major_collections = 41,
        stat_heap_wsz = 42,
        stat_heap_chunks = 46,
    }
}

/// `heap_chunk_head` (`runtime/caml/major_gc.h`): where size and next chunk are, in words in
/// front of a chunk.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChunkHead {
    pub(super) size: usize,
    pub(super) next: usize,
}

/// It has grown by a word in 4.14.
const HEAD_4_14: ChunkHead = ChunkHead { size: 5, next: 4 };
const HEAD_4_12: ChunkHead = ChunkHead { size: 4, next: 3 };

/// All releases that changed the state, the newest first. That of 4.13.1 is also that of 4.14.1.
pub(super) static KNOWN: [KnownRelease; 2] = [
    KnownRelease {
        releases: minors(13, 14),
        state: STATE_4_13,
        chunk_heads: &[HEAD_4_14, HEAD_4_12],
    },
    KnownRelease {
        releases: minors(12, 12),
        state: StateLayout { young_ptr: 0, young_limit: 1, ..STATE_4_13 },
        chunk_heads: &[HEAD_4_12],
    },
];

const _: () = assert!(KNOWN[1].releases.are_older_than(KNOWN[0].releases) && KNOWN.len() == 2);

const fn minors(first: u8, last: u8) -> Releases {
    Releases::new(MajorVersion::Four, first, last)
}

/// Whether a header is white (`Caml_white`, `runtime/caml/gc.h`).
pub(super) fn is_white(header: Header) -> bool {
    header.colour() == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_is_no_colour() {
        assert!(is_white(Header(2 << 10 | 245)));
        assert!(!is_white(Header(2 << 10 | 3 << 8)));
    }
}
