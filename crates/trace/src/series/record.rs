//! The records of a sidecar, and how each is coded.
//!
//! A record is a tag and its fields, of which most are varints. Names, codes and nodes are
//! numbered in the order of their records, each from 0, and are defined before they are used.
//! Node 0 is the empty stack. Times and ids are differences to those of the record before.

use heaptap_codec::Cursor;
use heaptap_codec::varint::{fold, put_varint};

use crate::model::{Code, End, Source};
use crate::series::SeriesHead;

/// The version of the format in a [`SeriesHead`].
const VERSION: u64 = 1;

mod tag {
    pub(super) const HEAD: u8 = 1;
    pub(super) const RATE: u8 = 2;
    pub(super) const NAME: u8 = 3;
    pub(super) const CODE: u8 = 4;
    pub(super) const NODE: u8 = 5;
    pub(super) const BLOCK: u8 = 6;
    pub(super) const ENDS: u8 = 7;
    pub(super) const BASE_COMPLETE: u8 = 8;
    pub(super) const BASE_LEFT_OUT: u8 = 9;
    pub(super) const PART_COMPLETE: u8 = 10;
    pub(super) const RESTARTED: u8 = 11;
    pub(super) const NODES_FORGOTTEN: u8 = 12;
}

/// The most locations of a code, as in a trace.
pub(super) const MAX_LOCATIONS: u64 = 255;

/// A block that is not in the part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedBlock {
    /// Its id in the series.
    pub id: u64,
    /// When it was allocated, in microseconds since the epoch.
    pub birth: u64,
    /// When it was promoted, if it was promoted before the part began.
    pub promotion: Option<u64>,
    /// Words, without the header.
    pub length: u64,
    /// Samples in it.
    pub samples: u64,
    /// Where it was allocated.
    pub source: Source,
    /// The domain that allocated it.
    pub domain: u16,
    /// The number of its stack's innermost node.
    pub node: u32,
    /// The number of the rate at which it was sampled.
    pub rate: u32,
    /// For a block that was allocated after the part began: the id of the domain's next
    /// allocation in the part.
    pub position: u64,
}

/// The promotion or collection of blocks that are not in the part, and whose ids follow each
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CarriedEnds {
    /// What became of them.
    pub end: End,
    /// When, in microseconds since the epoch.
    pub time: u64,
    /// The domain that reported it.
    pub domain: u16,
    /// The id of that domain's next allocation in the part.
    pub position: u64,
    /// The first id.
    pub first: u64,
    /// How many there are.
    pub count: u64,
}

/// A record.
#[derive(Clone, Copy, Debug)]
pub enum SeriesRecord<'a> {
    /// Always the first.
    Head(SeriesHead),
    /// The next rate: the probability with which a word was sampled.
    Rate(f64),
    /// The next name: of a file or of a function.
    Name(&'a [u8]),
    /// The next code, and how many locations follow in the record.
    Code {
        /// As in backtraces.
        code: Code,
        /// Its locations, still coded.
        locations: CodeLocations<'a>,
    },
    /// The next node: a frame, and the node of the frames outside it.
    Node {
        /// The outer frames.
        outer: u32,
        /// The number of the code.
        code: u32,
    },
    /// A block.
    Block(CarriedBlock),
    /// Ends of blocks.
    Ends(CarriedEnds),
    /// All blocks that were alive when the part began have been listed.
    BaseComplete,
    /// The blocks that were alive when the part began are not listed: they would take too many
    /// bytes.
    BaseLeftOut {
        /// How many they are.
        blocks: u64,
    },
    /// Somebody has truncated the trace of the part, and it has begun again.
    Restarted {
        /// As in [`SeriesHead`], from then on.
        first_id: u64,
    },
    /// Nodes are numbered from 1 again: those so far do not occur any more.
    NodesForgotten,
    /// The part is complete: whatever happened until then is in it or here.
    PartComplete {
        /// Microseconds since the epoch.
        time: u64,
    },
}

/// The locations of a code.
#[derive(Clone, Copy, Debug)]
pub struct CodeLocations<'a> {
    left: u64,
    bytes: Cursor<'a>,
}

/// A location whose names are numbers of [`SeriesRecord::Name`]s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CodeLocation {
    pub(super) file: u32,
    pub(super) definition: u32,
    pub(super) line: u32,
    pub(super) start_char: u32,
    pub(super) end_char: u32,
}

impl CodeLocations<'_> {
    pub(super) fn next(&mut self) -> Option<CodeLocation> {
        self.left = self.left.checked_sub(1)?;
        location(&mut self.bytes)
    }
}

fn location(bytes: &mut Cursor<'_>) -> Option<CodeLocation> {
    let mut number = || bytes.varint_u32();
    let (file, definition, line) = (number()?, number()?, number()?);
    let (start_char, end_char) = (number()?, number()?);
    Some(CodeLocation { file, definition, line, start_char, end_char })
}

/// What the fields of a record are relative to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Last {
    time: u64,
    id: u64,
    position: u64,
}

impl Last {
    pub(super) fn put_head(&mut self, head: &SeriesHead, out: &mut Vec<u8>) {
        out.push(tag::HEAD);
        put_varint(out, VERSION);
        out.extend_from_slice(&head.series);
        put_varint(out, head.part);
        out.extend_from_slice(&head.rate.to_le_bytes());
        for number in [head.start_time, head.series_start, head.first_id] {
            put_varint(out, number);
        }
        *self = Last { time: head.start_time, id: head.first_id, position: head.first_id };
    }

    pub(super) fn put_block(&mut self, block: &CarriedBlock, out: &mut Vec<u8>) {
        out.push(tag::BLOCK);
        out.push(block.source as u8 | u8::from(block.promotion.is_some()) << 2);
        self.put_id(block.id, out);
        self.put_time(block.birth, out);
        if let Some(promotion) = block.promotion {
            put_varint(out, fold(promotion.wrapping_sub(block.birth)));
        }
        put_varint(out, block.length);
        put_varint(out, block.samples);
        put_varint(out, u64::from(block.domain));
        put_varint(out, u64::from(block.node));
        put_varint(out, u64::from(block.rate));
        self.put_position(block.position, out);
    }

    pub(super) fn put_ends(&mut self, ends: &CarriedEnds, out: &mut Vec<u8>) {
        out.push(tag::ENDS);
        out.push(ends.end as u8);
        self.put_time(ends.time, out);
        put_varint(out, u64::from(ends.domain));
        self.put_position(ends.position, out);
        self.put_id(ends.first, out);
        put_varint(out, ends.count);
        self.id = ends.first.wrapping_add(ends.count);
    }

    fn put_time(&mut self, time: u64, out: &mut Vec<u8>) {
        put_varint(out, fold(time.wrapping_sub(self.time)));
        self.time = time;
    }

    fn put_id(&mut self, id: u64, out: &mut Vec<u8>) {
        put_varint(out, fold(id.wrapping_sub(self.id)));
        self.id = id;
    }

    fn put_position(&mut self, position: u64, out: &mut Vec<u8>) {
        put_varint(out, fold(position.wrapping_sub(self.position)));
        self.position = position;
    }

    /// The next record; `None` if the bytes are none.
    pub(super) fn record<'a>(&mut self, bytes: &mut Cursor<'a>) -> Option<SeriesRecord<'a>> {
        Some(match bytes.u8()? {
            tag::HEAD => SeriesRecord::Head(self.head(bytes)?),
            tag::RATE => {
                let rate = bytes.f64()?;
                SeriesRecord::Rate((rate > 0.0 && rate <= 1.0).then_some(rate)?)
            }
            tag::NAME => SeriesRecord::Name(bytes.counted(super::MAX_CHUNK)?),
            tag::CODE => {
                let code = bytes.varint()?;
                let left = bytes.varint().filter(|&count| count <= MAX_LOCATIONS)?;
                let locations = CodeLocations { left, bytes: *bytes };
                for _ in 0..left {
                    location(bytes)?;
                }
                SeriesRecord::Code { code, locations }
            }
            tag::NODE => {
                let (outer, code) = (bytes.varint_u32()?, bytes.varint_u32()?);
                SeriesRecord::Node { outer, code }
            }
            tag::BLOCK => SeriesRecord::Block(self.block(bytes)?),
            tag::ENDS => SeriesRecord::Ends(self.ends(bytes)?),
            tag::BASE_COMPLETE => SeriesRecord::BaseComplete,
            tag::NODES_FORGOTTEN => SeriesRecord::NodesForgotten,
            tag::BASE_LEFT_OUT => SeriesRecord::BaseLeftOut { blocks: bytes.varint()? },
            tag::PART_COMPLETE => SeriesRecord::PartComplete { time: bytes.varint()? },
            tag::RESTARTED => SeriesRecord::Restarted { first_id: bytes.varint()? },
            _ => return None,
        })
    }

    fn head(&mut self, bytes: &mut Cursor<'_>) -> Option<SeriesHead> {
        bytes.varint().filter(|&version| version == VERSION)?;
        let series = bytes.take(16)?.try_into().ok()?;
        let part = bytes.varint()?;
        let rate = bytes.f64().filter(|&rate| rate > 0.0 && rate <= 1.0)?;
        let (start_time, series_start, first_id) =
            (bytes.varint()?, bytes.varint()?, bytes.varint()?);
        *self = Last { time: start_time, id: first_id, position: first_id };
        Some(SeriesHead { series, part, rate, start_time, series_start, first_id })
    }

    fn block(&mut self, bytes: &mut Cursor<'_>) -> Option<CarriedBlock> {
        let flags = bytes.u8().filter(|&flags| flags < 8)?;
        let source = *Source::ALL.get(usize::from(flags & 3))?;
        let id = self.id(bytes)?;
        let birth = self.time(bytes)?;
        let promotion = if flags & 4 == 0 { None } else { Some(bytes.difference(birth)?) };
        let (length, samples) = (bytes.varint()?, bytes.varint()?);
        let domain = u16::try_from(bytes.varint()?).ok()?;
        let (node, rate) = (bytes.varint_u32()?, bytes.varint_u32()?);
        let position = self.position(bytes)?;
        let is_possible = (1..=length.saturating_add(1)).contains(&samples);
        is_possible.then_some(CarriedBlock {
            id,
            birth,
            promotion,
            length,
            samples,
            source,
            domain,
            node,
            rate,
            position,
        })
    }

    fn ends(&mut self, bytes: &mut Cursor<'_>) -> Option<CarriedEnds> {
        let end = match bytes.u8()? {
            0 => End::Promote,
            1 => End::Collect,
            _ => return None,
        };
        let time = self.time(bytes)?;
        let domain = u16::try_from(bytes.varint()?).ok()?;
        let position = self.position(bytes)?;
        let (first, count) = (self.id(bytes)?, bytes.varint()?);
        self.id = first.checked_add(count)?;
        Some(CarriedEnds { end, time, domain, position, first, count })
    }

    fn time(&mut self, bytes: &mut Cursor<'_>) -> Option<u64> {
        self.time = bytes.difference(self.time)?;
        Some(self.time)
    }

    fn id(&mut self, bytes: &mut Cursor<'_>) -> Option<u64> {
        self.id = bytes.difference(self.id)?;
        Some(self.id)
    }

    fn position(&mut self, bytes: &mut Cursor<'_>) -> Option<u64> {
        self.position = bytes.difference(self.position)?;
        Some(self.position)
    }
}

pub(super) fn put_rate(rate: f64, out: &mut Vec<u8>) {
    out.push(tag::RATE);
    out.extend_from_slice(&rate.to_le_bytes());
}

pub(super) fn put_name(name: &[u8], out: &mut Vec<u8>) {
    out.push(tag::NAME);
    put_varint(out, name.len() as u64);
    out.extend_from_slice(name);
}

pub(super) fn put_code(code: Code, locations: &[CodeLocation], out: &mut Vec<u8>) {
    out.push(tag::CODE);
    put_varint(out, code);
    put_varint(out, locations.len() as u64);
    for location in locations {
        let &CodeLocation { file, definition, line, start_char, end_char } = location;
        for number in [file, definition, line, start_char, end_char] {
            put_varint(out, u64::from(number));
        }
    }
}

pub(super) fn put_node(outer: u32, code: u32, out: &mut Vec<u8>) {
    out.push(tag::NODE);
    put_varint(out, u64::from(outer));
    put_varint(out, u64::from(code));
}

pub(super) fn put_base_complete(out: &mut Vec<u8>) {
    out.push(tag::BASE_COMPLETE);
}

pub(super) fn put_nodes_forgotten(out: &mut Vec<u8>) {
    out.push(tag::NODES_FORGOTTEN);
}

pub(super) fn put_base_left_out(blocks: u64, out: &mut Vec<u8>) {
    out.push(tag::BASE_LEFT_OUT);
    put_varint(out, blocks);
}

pub(super) fn put_restarted(first_id: u64, out: &mut Vec<u8>) {
    out.push(tag::RESTARTED);
    put_varint(out, first_id);
}

pub(super) fn put_part_complete(time: u64, out: &mut Vec<u8>) {
    out.push(tag::PART_COMPLETE);
    put_varint(out, time);
}
