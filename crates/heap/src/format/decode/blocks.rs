//! Decodes a chunk of blocks.

use crate::format::codes::{extra, field, head};
use crate::format::model::{Block, Code, CustomBlock, Pointer};
use crate::format::shape::{MAX_SMALL_WORDS, Shape, Shapes};
use crate::format::wire::Cursor;

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
    /// How many bytes of each stream have been decoded.
    done: [usize; 4],
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

/// The streams of a chunk from where decoding is.
struct Columns<'a> {
    heads: Cursor<'a>,
    fields: Cursor<'a>,
    targets: Cursor<'a>,
    extras: Cursor<'a>,
}

impl BlockDecoder {
    pub(super) fn new() -> BlockDecoder {
        BlockDecoder {
            done: [0; 4],
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
        let mut fields = Cursor::new(streams.get(1)?);
        self.header_words = fields.varint_u32()?.into();
        self.done = [0, streams.get(1)?.len() - fields.rest(), 0, 0];
        *self.shapes = Shapes::new();
        self.expected = 0;
        self.last_code = 0;
        self.last_operations = 0;
        Some(())
    }

    /// Whether all blocks of the chunk have been decoded. Then nothing may be left of the other
    /// streams.
    pub(super) fn is_done(&self, streams: &[Vec<u8>]) -> Option<bool> {
        let lengths = streams.iter().map(Vec::len);
        let mut left = self.done.iter().zip(lengths).map(|(done, length)| length - done);
        let no_heads = left.next()? == 0;
        if no_heads && left.any(|left| left > 0) {
            return None;
        }
        Some(no_heads)
    }

    /// Decodes the next block. `None` if it makes no sense.
    pub(super) fn next<'a>(&'a mut self, streams: &'a [Vec<u8>]) -> Option<Block<'a>> {
        let [heads, fields, targets, extras, ..] = streams else { return None };
        let all = [heads, fields, targets, extras];
        let cursor = |index: usize| -> Option<Cursor<'a>> {
            Some(Cursor::new(all.get(index)?.get(*self.done.get(index)?..)?))
        };
        let mut columns = Columns {
            heads: cursor(0)?,
            fields: cursor(1)?,
            targets: cursor(2)?,
            extras: cursor(3)?,
        };
        self.pointers.clear();
        self.codes.clear();

        let mut code = columns.heads.byte()?;
        let mut word = self.expected;
        if code == head::GAP {
            word = columns.fields.difference(word)?;
            code = columns.heads.byte()?;
        }
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
                let shape = self.shape(&mut columns, code)?;
                let words = u64::from(shape.words);
                let block = BlockHead { word, words, tag: shape.tag };
                self.small(&mut columns, shape, word)?;
                (block, shape.has_extras)
            }
        };
        let end = word.checked_add(block.words).filter(|end| *end <= WORDS_LIMIT)?;
        self.expected = end + self.header_words;
        let (custom, string) =
            if has_extras { self.extras(&mut columns, block.words)? } else { (None, None) };
        if !is_last {
            self.broken_off = Some(block);
            if !columns.heads.is_empty() {
                return None;
            }
        }
        let rests = [columns.heads, columns.fields, columns.targets, columns.extras];
        for ((done, stream), rest) in self.done.iter_mut().zip(all).zip(rests) {
            *done = stream.len() - rest.rest();
        }
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

    fn shape(&mut self, columns: &mut Columns<'_>, code: u8) -> Option<Shape> {
        if code != head::NEW_SHAPE {
            return self.shapes.get(code);
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
        self.shapes.add(shape);
        Some(shape)
    }

    fn small(&mut self, columns: &mut Columns<'_>, shape: Shape, word: u64) -> Option<()> {
        let mut fields = shape.pointers;
        while fields != 0 {
            let field = fields.trailing_zeros().into();
            let target = address(columns.targets.difference(word)?)?;
            self.pointers.push(Pointer { field, target });
            fields &= fields - 1;
        }
        Some(())
    }

    /// The pointers of a big block; returns whether they were the last.
    fn big(&mut self, columns: &mut Columns<'_>, block: BlockHead, goes_on: bool) -> Option<bool> {
        let mut next_field = if goes_on { columns.fields.varint()? } else { 0 };
        loop {
            match columns.fields.varint()? {
                field::LAST => return Some(true),
                field::BROKEN_OFF => return Some(false),
                distance => {
                    let field = next_field.checked_add(distance - 2)?;
                    if field >= block.words {
                        return None;
                    }
                    let target = address(columns.targets.difference(block.word)?)?;
                    self.pointers.push(Pointer { field, target });
                    next_field = field + 1;
                }
            }
        }
    }

    fn extras<'a>(
        &mut self,
        columns: &mut Columns<'a>,
        words: u64,
    ) -> Option<(Option<CustomBlock>, Option<&'a [u8]>)> {
        let (mut custom, mut string) = (None, None);
        loop {
            match columns.extras.byte()? {
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
                extra::STRING if string.is_none() => string = Some(columns.extras.string()?),
                _ => return None,
            }
        }
    }
}

/// An address from its number of words.
pub(super) fn address(word: u64) -> Option<u64> {
    (word < WORDS_LIMIT).then_some(word << 3)
}
