//! The table of block shapes, which encoder and decoder keep in step.
//!
//! Most blocks of a heap have one of few shapes: size, tag, and which fields are
//! pointers. A shape that is in the table costs one byte. A new one replaces the
//! oldest. Each chunk begins with an empty table.

use super::codes::head;

/// Bigger blocks are coded field by field.
pub(crate) const MAX_SMALL_WORDS: u64 = 24;

/// The shape of a block of at most [`MAX_SMALL_WORDS`] words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Shape {
    pub(crate) words: u8,
    pub(crate) tag: u32,
    /// Bit `n`: field `n` is a pointer.
    pub(crate) pointers: u32,
    /// Whether there is something in the stream of extras.
    pub(crate) has_extras: bool,
}

impl Shape {
    /// Different for different shapes, and never 0.
    pub(crate) fn key(self) -> u64 {
        1 << 63
            | u64::from(self.tag) << 30
            | u64::from(self.has_extras) << 29
            | u64::from(self.words) << 24
            | u64::from(self.pointers)
    }
}

/// The number of shapes that have a code.
pub(crate) const SHAPES: usize = head::NEW_SHAPE as usize;
const SLOTS_BITS: u32 = 10;

/// The encoder's side: from shape to code. All zeros is an empty table.
#[repr(C)]
pub(crate) struct ShapeCodes {
    /// The keys of the shapes by code; 0 where there is none.
    keys: [u64; SHAPES],
    /// A code by the hash of a key; whether it is right, `keys` tells.
    slots: [u8; 1 << SLOTS_BITS],
    /// The code of the next new shape, below `SHAPES`.
    next: usize,
}

impl ShapeCodes {
    pub(crate) const EMPTY: ShapeCodes =
        ShapeCodes { keys: [0; SHAPES], slots: [0; 1 << SLOTS_BITS], next: 0 };

    pub(crate) fn clear(&mut self) {
        self.keys.fill(0);
        self.next = 0;
    }

    /// The code of a shape, or the one that it has from now on if it is new.
    #[inline]
    pub(crate) fn code(&mut self, key: u64) -> Result<u8, u8> {
        let hash = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - SLOTS_BITS)) as usize;
        let code = self.next as u8;
        if let Some(slot) = self.slots.get_mut(hash) {
            if self.keys.get(usize::from(*slot)) == Some(&key) {
                return Ok(*slot);
            }
            *slot = code;
        }
        if let Some(slot) = self.keys.get_mut(self.next) {
            *slot = key;
        }
        self.next = if self.next + 1 == SHAPES { 0 } else { self.next + 1 };
        Err(code)
    }
}

/// The decoder's side: from code to shape.
#[derive(Clone, Debug)]
pub(crate) struct Shapes {
    shapes: [Option<Shape>; SHAPES],
    next: usize,
}

impl Shapes {
    pub(crate) fn new() -> Shapes {
        Shapes { shapes: [None; SHAPES], next: 0 }
    }

    pub(crate) fn get(&self, code: u8) -> Option<Shape> {
        *self.shapes.get(usize::from(code))?
    }

    /// Adds a shape; returns its code.
    pub(crate) fn add(&mut self, shape: Shape) -> u8 {
        let code = self.next as u8;
        if let Some(slot) = self.shapes.get_mut(self.next) {
            *slot = Some(shape);
        }
        self.next = if self.next + 1 == SHAPES { 0 } else { self.next + 1 };
        code
    }
}
