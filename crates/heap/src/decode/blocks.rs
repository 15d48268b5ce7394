//! Decodes a chunk of blocks.

use heaptap_codec::Cursor;
use heaptap_codec::range::{BitDecoder, RangeDecoder};

use crate::block_model::{BlockModel, Expectation};
use crate::chunk::{MAX_PARTS, MAX_POINTERS};
use crate::codes::{extra, field, head};
use crate::model::{Block, Code, CustomBlock, MAX_STRING, Pointer};
use crate::shape::{MAX_SMALL_WORDS, Shape, Shapes};
use crate::target::{self, Coded, PointerSlot};

/// Numbers of words stay below this, so that addresses fit 64 bits.
const WORDS_LIMIT: u64 = 1 << 61;

/// Size, tag and address of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct BlockHead {
    word: u64,
    words: u64,
    tag: u32,
}

/// Where decoding is in a chunk, and what lasts beyond it.
#[derive(Debug)]
pub(super) struct BlockDecoder {
    /// Blocks and parts of blocks that are left.
    parts: u64,
    /// Pointers that the chunk may still hold.
    pointers_left: u64,
    range: RangeDecoder,
    bits: BitDecoder,
    model: Box<BlockModel>,
    /// How many bytes of the streams of fields and extras have been decoded.
    done: [usize; 2],
    shapes: Box<Shapes>,
    expected: u64,
    header_words: u64,
    last_code: u64,
    last_operations: u64,
    /// The block that the chunk before broke off.
    broken_off: Option<BlockHead>,
    pointers: Vec<Pointer>,
    codes: Vec<Code>,
}

/// The streams of a chunk, some of them from where decoding is.
struct Columns<'a> {
    coded: &'a [u8],
    bits: &'a [u8],
    fields: Cursor<'a>,
    extras: Cursor<'a>,
}

impl BlockDecoder {
    pub(super) fn new() -> BlockDecoder {
        BlockDecoder {
            parts: 0,
            pointers_left: 0,
            range: RangeDecoder::IDLE,
            bits: BitDecoder::default(),
            model: Box::new(BlockModel::EMPTY),
            done: [0; 2],
            shapes: Box::new(Shapes::new()),
            expected: 0,
            header_words: 0,
            last_code: 0,
            last_operations: 0,
            broken_off: None,
            pointers: Vec::new(),
            codes: Vec::new(),
        }
    }

    /// Begins a chunk.
    pub(super) fn begin(&mut self, streams: &[Vec<u8>]) -> Option<()> {
        let [parameters, coded, ..] = streams else { return None };
        let mut parameters = Cursor::new(parameters);
        self.header_words = parameters.varint_u32()?.into();
        self.parts = parameters.varint().filter(|parts| *parts <= MAX_PARTS)?;
        self.pointers_left = MAX_POINTERS;
        self.range = RangeDecoder::new(coded)?;
        self.bits = BitDecoder::default();
        self.model.clear();
        self.done = [0; 2];
        *self.shapes = Shapes::new();
        self.expected = 0;
        self.last_code = 0;
        self.last_operations = 0;
        Some(())
    }

    /// Whether all blocks of the chunk have been decoded. Then nothing may be left of the
    /// streams.
    pub(super) fn is_done(&self, streams: &[Vec<u8>]) -> Option<bool> {
        if self.parts > 0 {
            return Some(false);
        }
        let [_, coded, bits, fields, extras, ..] = streams else { return None };
        let is_used_up = self.range.is_done(coded)
            && self.bits.is_done(bits)
            && self.done == [fields.len(), extras.len()];
        is_used_up.then_some(true)
    }

    /// Decodes the next block. `None` if it makes no sense.
    pub(super) fn next<'a>(&'a mut self, streams: &'a [Vec<u8>]) -> Option<Block<'a>> {
        let [_, coded, bits, fields, extras, ..] = streams else { return None };
        let mut columns = Columns {
            coded,
            bits,
            fields: Cursor::new(fields.get(self.done[0]..)?),
            extras: Cursor::new(extras.get(self.done[1]..)?),
        };
        self.parts = self.parts.checked_sub(1)?;
        self.pointers.clear();
        self.codes.clear();

        let mut word = self.expected;
        if self.range.bit(columns.coded, self.model.gap()?)? {
            word = columns.fields.difference(word)?;
        }
        let code = take_symbol(&mut self.range, columns.coded, self.model.head()?)?;
        self.model.saw_head(code);
        let was_broken_off = self.broken_off.take();
        if was_broken_off.is_some() != (code == head::CONTINUED) {
            return None;
        }
        let mut is_last = true;
        let (block, has_extras) = match code {
            head::BIG | head::CONTINUED => {
                let words = columns.fields.varint()?;
                let block = BlockHead { word, words, tag: columns.fields.varint_u32()? };
                if was_broken_off.is_some_and(|before| before != block) {
                    return None;
                }
                is_last = self.big(&mut columns, block, code == head::CONTINUED)?;
                (block, true)
            }
            code => {
                let (code, shape) = self.shape(&mut columns, code)?;
                let words = u64::from(shape.words);
                let block = BlockHead { word, words, tag: shape.tag };
                self.small(&mut columns, code, shape, word)?;
                (block, shape.has_extras)
            }
        };
        let end = word.checked_add(block.words).filter(|end| *end <= WORDS_LIMIT)?;
        self.expected = end + self.header_words;
        let (custom, string) =
            if has_extras { self.extras(&mut columns, block.words)? } else { (None, None) };
        if !is_last {
            self.broken_off = Some(block);
            if self.parts > 0 {
                return None;
            }
        }
        self.done =
            [fields.len() - columns.fields.remaining(), extras.len() - columns.extras.remaining()];
        Some(Block {
            address: word << 3,
            words: block.words,
            tag: block.tag,
            is_first: code != head::CONTINUED,
            is_last,
            pointers: &self.pointers,
            codes: &self.codes,
            custom,
            string,
        })
    }

    /// A shape and its code.
    fn shape(&mut self, columns: &mut Columns<'_>, code: u8) -> Option<(u8, Shape)> {
        if code != head::NEW_SHAPE {
            return Some((code, self.shapes.get(code)?));
        }
        let words_and_extras = columns.fields.varint()?;
        let words = words_and_extras >> 1;
        let tag = columns.fields.varint_u32()?;
        let pointers = columns.fields.varint_u32()?;
        if words > MAX_SMALL_WORDS || u64::from(pointers) >> words != 0 {
            return None;
        }
        let has_extras = words_and_extras & 1 == 1;
        let shape = Shape { words: words as u8, tag, pointers, has_extras };
        Some((self.shapes.add(shape), shape))
    }

    /// A target, and thereby a pointer.
    #[inline]
    fn pointer(&mut self, columns: &mut Columns<'_>, slot: PointerSlot, field: u64) -> Option<()> {
        self.pointers_left = self.pointers_left.checked_sub(1)?;
        let expectation = self.model.target(slot)?;
        let symbol = take_symbol(&mut self.range, columns.coded, expectation)?;
        let width = target::width(symbol);
        let bits = self.bits.take(columns.bits, width)?;
        let far = if symbol == target::FAR { columns.fields.difference(0)? } else { 0 };
        let coded = Coded { symbol, bits, width };
        let word = self.model.targets.resolve(slot, coded, far)?;
        self.pointers.push(Pointer { field, target: address(word)? });
        Some(())
    }

    fn small(
        &mut self,
        columns: &mut Columns<'_>,
        code: u8,
        shape: Shape,
        word: u64,
    ) -> Option<()> {
        let mut fields = shape.pointers;
        let mut ordinal = 0;
        while fields != 0 {
            let slot = PointerSlot { shape: code, ordinal, own: word };
            self.pointer(columns, slot, fields.trailing_zeros().into())?;
            ordinal += 1;
            fields &= fields - 1;
        }
        Some(())
    }

    /// The pointers of a big block; returns whether they were the last.
    fn big(&mut self, columns: &mut Columns<'_>, block: BlockHead, goes_on: bool) -> Option<bool> {
        let mut next_field = if goes_on { columns.fields.varint()? } else { 0 };
        loop {
            let mut field = next_field;
            if !self.range.bit(columns.coded, &mut self.model.is_next_field)? {
                match columns.fields.varint()? {
                    field::LAST => return Some(true),
                    field::BROKEN_OFF => return Some(false),
                    code => field = field.checked_add(code - 2)?,
                }
            }
            if field >= block.words {
                return None;
            }
            let slot = PointerSlot { shape: head::BIG, ordinal: 0, own: block.word };
            self.pointer(columns, slot, field)?;
            next_field = field + 1;
        }
    }

    fn extras<'a>(
        &mut self,
        columns: &mut Columns<'a>,
        words: u64,
    ) -> Option<(Option<CustomBlock>, Option<&'a [u8]>)> {
        let (mut custom, mut string) = (None, None);
        loop {
            match columns.extras.u8()? {
                extra::LAST => return Some((custom, string)),
                extra::CODE => {
                    let field = columns.extras.varint().filter(|field| *field < words)?;
                    self.last_code = columns.extras.difference(self.last_code)?;
                    self.codes.push(Code { field, address: self.last_code });
                }
                extra::CUSTOM if custom.is_none() => {
                    self.last_operations = columns.extras.difference(self.last_operations)?;
                    let outside_bytes = columns.extras.varint()?;
                    custom = Some(CustomBlock { operations: self.last_operations, outside_bytes });
                }
                extra::STRING if string.is_none() => {
                    string = Some(columns.extras.counted(MAX_STRING)?);
                }
                _ => return None,
            }
        }
    }
}

/// An address from its number of words.
pub(super) fn address(word: u64) -> Option<u64> {
    (word < WORDS_LIMIT).then_some(word << 3)
}

#[inline]
fn take_symbol(range: &mut RangeDecoder, coded: &[u8], expectation: Expectation<'_>) -> Option<u8> {
    let Expectation { symbol: expected, is_right, tree } = expectation;
    if range.bit(coded, is_right)? {
        *expected = range.symbol(coded, tree)?;
    }
    Some(*expected)
}
