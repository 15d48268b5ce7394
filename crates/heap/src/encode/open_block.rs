//! The block that is being described.

use crate::shape::MAX_SMALL_WORDS;

/// No block is open.
pub(super) const CLOSED: u8 = 0;
/// One that is gathered until it ends.
pub(super) const SMALL: u8 = 1;
/// One that is written field by field.
pub(super) const BIG: u8 = 2;

/// The block that is being described.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct OpenBlock {
    /// [`CLOSED`], [`SMALL`] or [`BIG`].
    pub(super) state: u8,
    pub(super) has_extras: bool,
    pub(super) has_custom: bool,
    pub(super) has_string: bool,
    pub(super) tag: u32,
    /// Its address in words.
    pub(super) word: u64,
    pub(super) words: u64,
    /// The least field that may come next.
    pub(super) next_field: u64,
    /// The least field that may hold the next code address.
    pub(super) next_code: u64,
    /// Bit `n`: field `n` is a pointer. Of small blocks.
    pub(super) pointers: u32,
    /// How many targets a small block has so far.
    pub(super) count: u32,
    pub(super) targets: [u64; MAX_SMALL_WORDS as usize],
}

impl OpenBlock {
    pub(super) const NONE: OpenBlock = OpenBlock {
        state: CLOSED,
        has_extras: false,
        has_custom: false,
        has_string: false,
        tag: 0,
        word: 0,
        words: 0,
        next_field: 0,
        next_code: 0,
        pointers: 0,
        count: 0,
        targets: [0; MAX_SMALL_WORDS as usize],
    };
}
