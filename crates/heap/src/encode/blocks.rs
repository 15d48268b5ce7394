//! Blocks, column by column.
//!
//! What repeats is predicted and goes through the range coder, what cannot be predicted goes
//! to plain bits (`symbols`), the rare rest to varints (`fields`, `extras`).
//! A small block is gathered until it ends, since its shape is one symbol. A big one is
//! written field by field, and goes on in the next chunk where one is full.

use heaptap_codec::{
    Buffer,
    varint::{MAX_VARINT, fold},
};

use super::extras::Extras;
use super::open_block::{BIG, CLOSED, OpenBlock, SMALL};
use super::symbols::Symbols;
use crate::chunk::{MAX_PARTS, MAX_POINTERS, Stream};
use crate::codes::{field, head};
use crate::shape::{MAX_SMALL_WORDS, Shape, ShapeCodes};
use crate::target::PointerSlot;

const PARAMETERS: usize = 2 * MAX_VARINT;
const FIELDS: usize = 24 << 10;

/// What a call may add to the fields at most: that much room is made before it.
const FIELDS_OF_A_CALL: usize = (MAX_SMALL_WORDS as usize + 8) * MAX_VARINT;

/// Misuse by the caller, which the encoder reports as `EINVAL`.
pub(super) struct Misuse;

/// What the columns answer to a call that they cannot take now.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    /// Write the chunk, clear the columns and call again.
    Full,
    Misuse,
}

/// The streams of a chunk of blocks. All zeros is valid memory, to be `reset`.
#[repr(C)]
pub(super) struct BlockColumns {
    parameters: Buffer<PARAMETERS>,
    fields: Buffer<FIELDS>,
    extras: Extras,
    symbols: Symbols,
    shapes: ShapeCodes,
    open: OpenBlock,
    /// Blocks and parts of blocks in the chunk, and their pointers.
    parts: u64,
    pointers: u64,
    /// Where a block without a gap would begin, in words. 0 at the beginning of a chunk.
    expected: u64,
    /// The words of a header.
    header_words: u64,
}

impl BlockColumns {
    pub(super) const EMPTY: BlockColumns = BlockColumns {
        parameters: Buffer::EMPTY,
        fields: Buffer::EMPTY,
        extras: Extras::EMPTY,
        symbols: Symbols::EMPTY,
        shapes: ShapeCodes::EMPTY,
        open: OpenBlock::NONE,
        parts: 0,
        pointers: 0,
        expected: 0,
        header_words: 0,
    };

    /// Forgets whatever the workspace was used for before.
    pub(super) fn reset(&mut self, header_words: u32) {
        self.open.state = CLOSED;
        self.header_words = u64::from(header_words);
        self.clear();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts == 0
    }

    pub(super) fn overflowed(&self) -> bool {
        self.symbols.overflowed() || self.fields.overflowed() || self.extras.overflowed()
    }

    pub(super) fn streams(&self) -> [Stream<'_>; 5] {
        let [coded, bits] = self.symbols.streams();
        let parameters = Stream::new(self.parameters.bytes());
        [parameters, coded, bits, Stream::new(self.fields.bytes()), self.extras.stream()]
    }

    pub(super) fn is_open(&self) -> bool {
        self.open.state != CLOSED
    }

    /// Begins a new chunk. A big block that is open goes on in it.
    pub(super) fn clear(&mut self) {
        self.parameters.clear();
        self.fields.clear();
        self.extras.clear();
        self.symbols.clear();
        self.shapes.clear();
        self.parts = 0;
        self.pointers = 0;
        self.expected = 0;
        if self.open.state == BIG {
            self.put_big_head(head::CONTINUED);
            self.fields.put_varint(self.open.next_field);
        }
    }

    /// Ends the streams, before they are written. A small block is not in them before it ends.
    pub(super) fn finish(&mut self) {
        if self.open.state == BIG {
            self.symbols.put_is_next_field(false);
            self.fields.put_varint(field::BROKEN_OFF);
            self.extras.put_last();
        }
        self.symbols.finish();
        self.parameters.put_varint(self.header_words);
        self.parameters.put_varint(self.parts);
    }

    fn has_room(&self) -> bool {
        self.symbols.has_room()
            && self.fields.has_room(FIELDS_OF_A_CALL)
            && self.extras.has_room()
            && self.parts < MAX_PARTS
            && self.pointers < MAX_POINTERS - MAX_SMALL_WORDS
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
        self.symbols.put_gap(gap != 0);
        if gap != 0 {
            self.fields.put_varint(fold(gap));
        }
        self.expected =
            self.open.word.wrapping_add(self.open.words).wrapping_add(self.header_words);
        self.parts += 1;
    }

    fn put_big_head(&mut self, code: u8) {
        self.put_gap();
        self.symbols.put_head(code);
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
        let skipped = field - self.open.next_field;
        self.symbols.put_is_next_field(skipped == 0);
        if skipped > 0 {
            // Differs from `LAST` and `BROKEN_OFF`.
            self.fields.put_varint(skipped + 2);
        }
        let slot = PointerSlot { shape: head::BIG, ordinal: 0, own: self.open.word };
        if let Some(far) = self.symbols.put_target(slot, target >> 3) {
            self.fields.put_varint(far);
        }
        self.pointers += 1;
        self.open.next_field = field + 1;
        Ok(())
    }

    /// Makes room for an extra. A small block has it since it began.
    fn make_room_for_extra(&mut self) -> Result<(), Refusal> {
        if self.open.state == CLOSED {
            return Err(Refusal::Misuse);
        }
        if self.open.state == BIG && !self.has_room() {
            return Err(Refusal::Full);
        }
        self.open.has_extras = true;
        Ok(())
    }

    pub(super) fn code(&mut self, field: u64, address: u64) -> Result<(), Refusal> {
        if field < self.open.next_code || field >= self.open.words {
            return Err(Refusal::Misuse);
        }
        self.make_room_for_extra()?;
        self.extras.put_code(field, address);
        self.open.next_code = field + 1;
        Ok(())
    }

    pub(super) fn custom(&mut self, operations: u64, outside: u64) -> Result<(), Refusal> {
        if self.open.has_custom {
            return Err(Refusal::Misuse);
        }
        self.make_room_for_extra()?;
        self.open.has_custom = true;
        self.extras.put_custom(operations, outside);
        Ok(())
    }

    pub(super) fn string(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        if self.open.has_string {
            return Err(Refusal::Misuse);
        }
        self.make_room_for_extra()?;
        self.open.has_string = true;
        self.extras.put_string(bytes);
        Ok(())
    }

    /// Ends the block.
    #[inline]
    pub(super) fn end(&mut self) -> Result<(), Misuse> {
        match self.open.state {
            SMALL => self.end_small(),
            BIG => {
                self.symbols.put_is_next_field(false);
                self.fields.put_varint(field::LAST);
                self.extras.put_last();
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
        let code = match self.shapes.code(shape.key()) {
            Ok(code) => {
                self.symbols.put_head(code);
                code
            }
            Err(code) => {
                self.symbols.put_head(head::NEW_SHAPE);
                self.fields.put_varint(words << 1 | u64::from(has_extras));
                self.fields.put_varint(u64::from(tag));
                self.fields.put_varint(u64::from(pointers));
                code
            }
        };
        for (ordinal, &target) in self.open.targets.iter().take(count as usize).enumerate() {
            let slot = PointerSlot { shape: code, ordinal, own: word };
            if let Some(far) = self.symbols.put_target(slot, target) {
                self.fields.put_varint(far);
            }
        }
        self.pointers += u64::from(count);
        if has_extras {
            self.extras.put_last();
        }
    }
}
