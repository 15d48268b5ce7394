//! Where things are in the state of the runtime, by release.
//!
//! `Caml_state` points to words in the order of `runtime/caml/domain_state.tbl`. To
//! support a release that moved a word, add a row to [`KNOWN`]; `probe` proves it.

use crate::runtimes::ocaml::version::{MajorVersion, Release};

/// Words of the state, at least: the table has 54 entries.
pub(super) const STATE_WORDS: usize = 54;

/// Indices of words in the state, by their names in `domain_state.tbl`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct StateLayout {
    pub(super) young_limit: usize,
    pub(super) young_ptr: usize,
    pub(super) young_start: usize,
    pub(super) young_end: usize,
    pub(super) young_alloc_start: usize,
    pub(super) young_alloc_end: usize,
    pub(super) young_trigger: usize,
    /// Of bytecode's stack, as are the next two.
    pub(super) stack_high: usize,
    pub(super) extern_sp: usize,
    pub(super) trapsp: usize,
    /// Of native code's stack, as is the next.
    pub(super) bottom_of_stack: usize,
    pub(super) last_return_address: usize,
    pub(super) gc_regs: usize,
    pub(super) requested_minor_gc: usize,
    pub(super) local_roots: usize,
    pub(super) stat_major_collections: usize,
    pub(super) stat_heap_wsz: usize,
    pub(super) stat_heap_chunks: usize,
}

const V4_13: StateLayout = StateLayout {
    young_limit: 0,
    young_ptr: 1,
    young_start: 4,
    young_end: 5,
    young_alloc_start: 6,
    young_alloc_end: 7,
    young_trigger: 9,
    stack_high: 18,
    extern_sp: 20,
    trapsp: 21,
    bottom_of_stack: 26,
    last_return_address: 27,
    gc_regs: 28,
    requested_minor_gc: 35,
    local_roots: 36,
    stat_major_collections: 41,
    stat_heap_wsz: 42,
    stat_heap_chunks: 46,
};

/// The layout of each release that changed it, the newest first. That of 4.13.1 is
/// also that of 4.14.1.
pub(super) static KNOWN: [(Release, StateLayout); 2] =
    [(release(13), V4_13), (release(12), StateLayout { young_ptr: 0, young_limit: 1, ..V4_13 })];

const _: () = assert!(Release::are_newest_first(&KNOWN, MajorVersion::Four));

const fn release(minor: u8) -> Release {
    Release { major: MajorVersion::Four, minor }
}

/// Whether a header is white (`Caml_white`, `runtime/caml/gc.h`).
pub(super) fn is_white(header: usize) -> bool {
    header & (3 << 8) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_is_no_colour() {
        assert!(is_white(2 << 10 | 245));
        assert!(!is_white(2 << 10 | 3 << 8));
    }
}
