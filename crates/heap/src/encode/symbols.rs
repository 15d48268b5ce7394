//! What is predicted of blocks: gaps, shapes and targets, through the range coder and as plain bits.

use heaptap_codec::range::{BitEncoder, RangeEncoder};
use heaptap_codec::{Buffer, varint::fold};

use crate::block_model::{BlockModel, Expectation};
use crate::chunk::Stream;
use crate::shape::MAX_SMALL_WORDS;
use crate::target::{FAR, PointerSlot};

const CODED: usize = 96 << 10;
const BITS: usize = 96 << 10;

/// What a call may add to a stream at most: that much room is made before it. A bit costs at
/// most 11 in the range coder; a target has 9 of them, a head 10.
const CODED_OF_A_CALL: usize = (MAX_SMALL_WORDS as usize * 9 + 10) * 11 / 8 + 16;
const BITS_OF_A_CALL: usize = MAX_SMALL_WORDS as usize * 4 + 8;

/// What is predicted, and the streams that hold it.
#[repr(C)]
pub(super) struct Symbols {
    coded: Buffer<CODED>,
    bits: Buffer<BITS>,
    range: RangeEncoder,
    waiting_bits: BitEncoder,
    model: BlockModel,
}

impl Symbols {
    pub(super) const EMPTY: Symbols = Symbols {
        coded: Buffer::EMPTY,
        bits: Buffer::EMPTY,
        range: RangeEncoder::START,
        waiting_bits: BitEncoder::EMPTY,
        model: BlockModel::EMPTY,
    };

    pub(super) fn clear(&mut self) {
        self.coded.clear();
        self.bits.clear();
        self.range = RangeEncoder::START;
        self.waiting_bits = BitEncoder::EMPTY;
        self.model.clear();
    }

    /// Whether there is room for whatever one call may add.
    pub(super) fn has_room(&self) -> bool {
        self.coded.has_room(CODED_OF_A_CALL) && self.bits.has_room(BITS_OF_A_CALL)
    }

    pub(super) fn overflowed(&self) -> bool {
        self.coded.overflowed() || self.bits.overflowed()
    }

    /// The predicted ones, and plain bits.
    pub(super) fn streams(&self) -> [Stream<'_>; 2] {
        [Stream::dense(self.coded.bytes()), Stream::dense(self.bits.bytes())]
    }

    pub(super) fn finish(&mut self) {
        self.range.finish(&mut self.coded);
        self.waiting_bits.finish(&mut self.bits);
    }

    #[inline]
    pub(super) fn put_gap(&mut self, has_gap: bool) {
        if let Some(probability) = self.model.gap() {
            self.range.bit(&mut self.coded, probability, has_gap);
        }
    }

    #[inline]
    pub(super) fn put_head(&mut self, code: u8) {
        if let Some(expectation) = self.model.head() {
            put_symbol(&mut self.range, &mut self.coded, expectation, code);
        }
        self.model.saw_head(code);
    }

    /// Whether a big block's next pointer is in the next field.
    pub(super) fn put_is_next_field(&mut self, is_next: bool) {
        self.range.bit(&mut self.coded, &mut self.model.is_next_field, is_next);
    }

    /// Returns the distance to be written if it is too far for a symbol.
    #[inline]
    pub(super) fn put_target(&mut self, slot: PointerSlot, target: u64) -> Option<u64> {
        let coded = self.model.targets.code(slot, target);
        if let Some(expectation) = self.model.target(slot) {
            put_symbol(&mut self.range, &mut self.coded, expectation, coded.symbol);
        }
        self.waiting_bits.put(&mut self.bits, coded.bits, coded.width);
        (coded.symbol == FAR).then(|| fold(target.wrapping_sub(slot.own)))
    }
}

#[inline]
fn put_symbol(
    range: &mut RangeEncoder,
    coded: &mut Buffer<CODED>,
    expectation: Expectation<'_>,
    symbol: u8,
) {
    let Expectation { symbol: expected, is_right, tree } = expectation;
    let is_wrong = *expected != symbol;
    range.bit(coded, is_right, is_wrong);
    if is_wrong {
        range.symbol(coded, tree, symbol);
        *expected = symbol;
    }
}
