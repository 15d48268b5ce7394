//! Where things are in the runtime's state.
//!
//! `Caml_state` points to words in the order of `runtime/caml/domain_state.tbl`.
//! The order below is that of 4.13.1 and 4.14.1; 4.12.1 has the first two the
//! other way round.

/// Words of the state, at least: the table has 54 entries.
pub(super) const STATE_WORDS: usize = 54;

/// Indices of words in the state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// `young_limit`
    pub(super) limit: usize,
    /// `young_ptr`
    pub(super) pointer: usize,
    /// Whether there is native code: else `bottom_of_stack` and
    /// `last_return_address` mean nothing.
    pub(super) native: bool,
}

impl Layout {
    /// Of 4.13 and 4.14.
    pub(super) const LIMIT_FIRST: Layout = Layout { limit: 0, pointer: 1, native: true };
    /// Of 4.12.
    pub(super) const POINTER_FIRST: Layout = Layout { limit: 1, pointer: 0, native: true };
}

/// `young_start`
pub(super) const YOUNG_START: usize = 4;
/// `young_end`
pub(super) const YOUNG_END: usize = 5;
/// `young_alloc_start`
pub(super) const ALLOC_START: usize = 6;
/// `young_alloc_end`
pub(super) const ALLOC_END: usize = 7;
/// `young_trigger`
pub(super) const TRIGGER: usize = 9;
/// `stack_high`, of bytecode's stack
pub(super) const STACK_HIGH: usize = 18;
/// `extern_sp`, of bytecode's stack
pub(super) const EXTERN_SP: usize = 20;
/// `trapsp`, of bytecode's stack
pub(super) const TRAP_SP: usize = 21;
/// `bottom_of_stack`
pub(super) const BOTTOM_OF_STACK: usize = 26;
/// `last_return_address`
pub(super) const LAST_RETURN_ADDRESS: usize = 27;

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
