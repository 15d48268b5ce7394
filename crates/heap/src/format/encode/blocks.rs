//! Blocks, column by column.
//!
//! Heads, fields, targets and extras go to streams of their own, which compress better
//! apart. A small block is gathered until it ends, since its shape is one code. A
//! big one is written field by field, and goes on in the next chunk where one is full.

use crate::format::codes::{extra, field, head};
use crate::format::model::MAX_STRING;
use crate::format::shape::{MAX_SMALL_WORDS, Shape, ShapeCodes};
use crate::format::wire::{Lane, MAX_VARINT, fold};

const HEADS: usize = 56 << 10;
const FIELDS: usize = 48 << 10;
const TARGETS: usize = 112 << 10;
const EXTRAS: usize = 40 << 10;

/// What a call may add to a stream at most, so much room is made before.
const FIELDS_OF_A_CALL: usize = 8 * MAX_VARINT;
const TARGETS_OF_A_CALL: usize = MAX_SMALL_WORDS as usize * MAX_VARINT;
/// A code address for each word, a custom block, a string and the end.
const EXTRAS_OF_A_BLOCK: usize =
    MAX_SMALL_WORDS as usize * (1 + 2 * MAX_VARINT) + 4 * (1 + 2 * MAX_VARINT) + MAX_STRING;

/// Misuse by the caller, which the encoder reports as `EINVAL`.
pub(super) struct Misuse;

/// What the columns answer to a call that they cannot take now.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    /// Write the chunk, clear the columns and call again.
    Full,
    Misuse,
}

/// The block that is being described.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct OpenBlock {
    /// 0: no block is open. 1: a small one. 2: a big one.
    state: u8,
    has_extras: bool,
    has_custom: bool,
    has_string: bool,
    tag: u32,
    /// Its address in words.
    word: u64,
    words: u64,
    /// The least field that may come next.
    next_field: u64,
    /// The least field that may hold the next code address.
    next_code: u64,
    /// Bit `n`: field `n` is a pointer. Of small blocks.
    pointers: u32,
    /// How many targets a small block has so far.
    count: u32,
    targets: [u64; MAX_SMALL_WORDS as usize],
}

const CLOSED: u8 = 0;
const SMALL: u8 = 1;
const BIG: u8 = 2;

/// The streams of a chunk of blocks. All zeros is valid.
#[repr(C)]
pub(super) struct BlockColumns {
    heads: Lane<HEADS>,
    fields: Lane<FIELDS>,
    targets: Lane<TARGETS>,
    extras: Lane<EXTRAS>,
    shapes: ShapeCodes,
    open: OpenBlock,
    /// Where a block without a gap would begin, in words. 0 at the beginning of a chunk.
    expected: u64,
    /// The code address and the operations before.
    last_code: u64,
    last_operations: u64,
    /// The words of a header.
    header_words: u64,
}

impl BlockColumns {
    pub(super) const EMPTY: BlockColumns = BlockColumns {
        heads: Lane::EMPTY,
        fields: Lane::EMPTY,
        targets: Lane::EMPTY,
        extras: Lane::EMPTY,
        shapes: ShapeCodes::EMPTY,
        open: OpenBlock {
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
        },
        expected: 0,
        last_code: 0,
        last_operations: 0,
        header_words: 0,
    };

    /// Forgets whatever the workspace was used for before.
    pub(super) fn reset(&mut self, header_words: u32) {
        self.open.state = CLOSED;
        self.header_words = u64::from(header_words);
        self.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.heads.is_empty()
    }

    pub(super) fn overflowed(&self) -> bool {
        let Self { heads, fields, targets, extras, .. } = self;
        heads.overflowed() || fields.overflowed() || targets.overflowed() || extras.overflowed()
    }

    pub(super) fn streams(&self) -> [&[u8]; 4] {
        [self.heads.bytes(), self.fields.bytes(), self.targets.bytes(), self.extras.bytes()]
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.state != CLOSED
    }

    /// Begins a new chunk. A big block that is open goes on in it.
    pub(super) fn clear(&mut self) {
        self.heads.clear();
        self.fields.clear();
        self.targets.clear();
        self.extras.clear();
        self.shapes.clear();
        self.expected = 0;
        self.last_code = 0;
        self.last_operations = 0;
        self.fields.put_varint(self.header_words);
        if self.open.state == BIG {
            self.put_big_head(head::CONTINUED);
            self.fields.put_varint(self.open.next_field);
        }
    }

    /// Before a chunk is written. A small block is not in the streams before it ends, except
    /// for its extras, for which there is room in any case.
    pub(super) fn break_off(&mut self) {
        if self.open.state == BIG {
            self.fields.put_varint(field::BROKEN_OFF);
            self.extras.put_byte(extra::LAST);
        }
    }

    fn has_room(&self) -> bool {
        self.heads.has_room(2)
            && self.fields.has_room(FIELDS_OF_A_CALL)
            && self.targets.has_room(TARGETS_OF_A_CALL)
            && self.extras.has_room(EXTRAS_OF_A_BLOCK)
    }

    #[inline]
    pub(super) fn begin(&mut self, address: u64, words: u64, tag: u32) -> Result<(), Refusal> {
        let word = address >> 3;
        let is_within = word.checked_add(words).is_some_and(|end| end <= 1 << 61);
        if self.open.state != CLOSED || address & 7 != 0 || !is_within {
            return Err(Refusal::Misuse);
        }
        if !self.has_room() {
            return Err(Refusal::Full);
        }
        let open = &mut self.open;
        open.has_extras = false;
        open.has_custom = false;
        open.has_string = false;
        open.tag = tag;
        open.word = word;
        open.words = words;
        open.next_field = 0;
        open.next_code = 0;
        open.pointers = 0;
        open.count = 0;
        if words <= MAX_SMALL_WORDS {
            open.state = SMALL;
        } else {
            open.state = BIG;
            self.put_big_head(head::BIG);
        }
        Ok(())
    }

    /// The gap before a block, if it is not what is expected, and where the next one is.
    #[inline]
    fn put_gap(&mut self) {
        let gap = self.open.word.wrapping_sub(self.expected);
        if gap != 0 {
            self.heads.put_byte(head::GAP);
            self.fields.put_varint(fold(gap));
        }
        self.expected =
            self.open.word.wrapping_add(self.open.words).wrapping_add(self.header_words);
    }

    fn put_big_head(&mut self, code: u8) {
        self.put_gap();
        self.heads.put_byte(code);
        self.fields.put_varint(self.open.words);
        self.fields.put_varint(u64::from(self.open.tag));
    }

    #[inline]
    pub(super) fn pointer(&mut self, field: u64, target: u64) -> Result<(), Refusal> {
        let open = &mut self.open;
        if field < open.next_field || field >= open.words || target & 7 != 0 {
            return Err(Refusal::Misuse);
        }
        if open.state == SMALL {
            let slot = open.targets.get_mut(open.count as usize).ok_or(Refusal::Misuse)?;
            *slot = target >> 3;
            open.count += 1;
            open.pointers |= 1 << field;
            open.next_field = field + 1;
            return Ok(());
        }
        if open.state != BIG {
            return Err(Refusal::Misuse);
        }
        if !self.has_room() {
            return Err(Refusal::Full);
        }
        // At least 2, which differs from `LAST` and `BROKEN_OFF`.
        self.fields.put_varint(field - self.open.next_field + 2);
        self.targets.put_varint(fold((target >> 3).wrapping_sub(self.open.word)));
        self.open.next_field = field + 1;
        Ok(())
    }

    /// Makes room for an extra. A small block has it since it began.
    fn extra(&mut self, kind: u8) -> Result<(), Refusal> {
        if self.open.state == CLOSED {
            return Err(Refusal::Misuse);
        }
        if self.open.state == BIG && !self.has_room() {
            return Err(Refusal::Full);
        }
        self.open.has_extras = true;
        self.extras.put_byte(kind);
        Ok(())
    }

    pub(super) fn code(&mut self, field: u64, address: u64) -> Result<(), Refusal> {
        if field < self.open.next_code || field >= self.open.words {
            return Err(Refusal::Misuse);
        }
        self.extra(extra::CODE)?;
        self.extras.put_varint(field);
        self.extras.put_varint(fold(address.wrapping_sub(self.last_code)));
        self.last_code = address;
        self.open.next_code = field + 1;
        Ok(())
    }

    pub(super) fn custom(&mut self, operations: u64, outside: u64) -> Result<(), Refusal> {
        if self.open.has_custom {
            return Err(Refusal::Misuse);
        }
        self.extra(extra::CUSTOM)?;
        self.open.has_custom = true;
        self.extras.put_varint(fold(operations.wrapping_sub(self.last_operations)));
        self.extras.put_varint(outside);
        self.last_operations = operations;
        Ok(())
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.open.has_string {
            return Err(Refusal::Misuse);
        }
        self.extra(extra::STRING)?;
        self.open.has_string = true;
        self.extras.put_string(bytes.get(..MAX_STRING).unwrap_or(bytes));
        Ok(())
    }

    /// Ends the block.
    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Misuse> {
        match self.open.state {
            SMALL => self.end_small(),
            BIG => {
                self.fields.put_varint(field::LAST);
                self.extras.put_byte(extra::LAST);
            }
            _ => return Err(Misuse),
        }
        self.open.state = CLOSED;
        Ok(())
    }

    #[inline]
    fn end_small(&mut self) {
        self.put_gap();
        let OpenBlock { has_extras, tag, words, pointers, word, count, .. } = self.open;
        let shape = Shape { words: words as u8, tag, pointers, has_extras };
        match self.shapes.code(shape.key()) {
            Some(code) => self.heads.put_byte(code),
            None => {
                self.heads.put_byte(head::NEW_SHAPE);
                self.fields.put_varint(words << 1 | u64::from(has_extras));
                self.fields.put_varint(u64::from(tag));
                self.fields.put_varint(u64::from(pointers));
            }
        }
        for &target in self.open.targets.iter().take(count as usize) {
            self.targets.put_varint(fold(target.wrapping_sub(word)));
        }
        if has_extras {
            self.extras.put_byte(extra::LAST);
        }
    }
}
