//! Writing a sidecar.

use std::collections::HashMap;

use heaptap_codec::crc::crc32c;
use heaptap_codec::seeded::Seeded;

use crate::model::{Code, Locate, LocationList, kind_name_code, kind_of};
use crate::series::record::{
    self, CarriedBlock, CarriedEnds, CodeLocation, Last, MAX_LOCATIONS, put_code, put_name,
    put_node, put_rate,
};
use crate::series::{CHUNK_HEADER, SERIES_MAGIC, SeriesHead};

/// A chunk is due when its records have this many bytes. One record more fits the limit.
const FULL: usize = 32 << 10;

/// The longest name that is written; longer ones are cut.
const MAX_NAME: usize = 4096;

/// Codes records of one sidecar into chunks.
pub struct SeriesEncoder {
    /// The chunk under construction, with room for its header; the first one comes after the
    /// magic number.
    chunk: Vec<u8>,
    /// Where the chunk's records begin.
    records: usize,
    last: Last,
    rates: u32,
    nodes: u32,
    names: HashMap<Box<[u8]>, u32, Seeded>,
    codes: HashMap<Code, u32, Seeded>,
    list: LocationList,
}

impl SeriesEncoder {
    /// Begins the sidecar of a part.
    pub fn new(head: &SeriesHead) -> SeriesEncoder {
        let mut encoder = SeriesEncoder {
            chunk: SERIES_MAGIC.to_vec(),
            records: 0,
            last: Last::default(),
            rates: 0,
            nodes: 0,
            names: HashMap::default(),
            codes: HashMap::default(),
            list: LocationList::default(),
        };
        encoder.begin_chunk();
        encoder.last.put_head(head, &mut encoder.chunk);
        encoder
    }

    fn begin_chunk(&mut self) {
        self.chunk.extend_from_slice(&[0; CHUNK_HEADER]);
        self.records = self.chunk.len();
    }

    /// Adds a rate, and returns its number.
    pub fn rate(&mut self, rate: f64) -> u32 {
        put_rate(rate, &mut self.chunk);
        self.rates += 1;
        self.rates - 1
    }

    /// The number of a code, whose locations are asked for if it is new.
    pub fn code(&mut self, code: Code, locate: &mut impl Locate) -> u32 {
        if let Some(&known) = self.codes.get(&code) {
            return known;
        }
        // A kind's name first, unless this is it.
        let name = kind_of(code).map(kind_name_code).filter(|&name| name != code);
        name.map(|name| self.code(name, locate));
        let mut list = std::mem::take(&mut self.list);
        list.clear();
        locate.locate(code, &mut list);
        let mut locations = Vec::with_capacity(list.len());
        for location in list.iter().take(MAX_LOCATIONS as usize) {
            let (file, definition) = (self.name(location.file), self.name(location.definition));
            let (line, start_char, end_char) =
                (location.line, location.start_char, location.end_char);
            locations.push(CodeLocation { file, definition, line, start_char, end_char });
        }
        self.list = list;
        put_code(code, &locations, &mut self.chunk);
        let number = self.codes.len() as u32;
        self.codes.insert(code, number);
        number
    }

    fn name(&mut self, name: &[u8]) -> u32 {
        let name = name.get(..MAX_NAME).unwrap_or(name);
        if let Some(&known) = self.names.get(name) {
            return known;
        }
        put_name(name, &mut self.chunk);
        let number = self.names.len() as u32;
        self.names.insert(name.into(), number);
        number
    }

    /// Adds a stack: the frames of another node, and one inside them. Returns its number.
    pub fn node(&mut self, outer: u32, code: u32) -> u32 {
        put_node(outer, code, &mut self.chunk);
        self.nodes += 1;
        self.nodes
    }

    /// Nodes are numbered from 1 again.
    pub fn forget_nodes(&mut self) {
        record::put_nodes_forgotten(&mut self.chunk);
        self.nodes = 0;
    }

    /// Adds a block. Its node and its rate were added before.
    pub fn block(&mut self, block: &CarriedBlock) {
        self.last.put_block(block, &mut self.chunk);
    }

    /// Adds ends of blocks.
    pub fn ends(&mut self, ends: &CarriedEnds) {
        self.last.put_ends(ends, &mut self.chunk);
    }

    /// All blocks that were alive when the part began have been added.
    pub fn base_complete(&mut self) {
        record::put_base_complete(&mut self.chunk);
    }

    /// So many blocks were alive, and are not listed.
    pub fn base_left_out(&mut self, blocks: u64) {
        record::put_base_left_out(blocks, &mut self.chunk);
    }

    /// The trace of the part was truncated, and has begun again with ids from 0 on: in the series
    /// they are from `first_id` on.
    pub fn restarted(&mut self, first_id: u64) {
        record::put_restarted(first_id, &mut self.chunk);
    }

    /// The part ends at this time, in microseconds since the epoch.
    pub fn part_complete(&mut self, time: u64) {
        record::put_part_complete(time, &mut self.chunk);
    }

    /// Whether the chunk under construction is to be written soon.
    pub fn is_full(&self) -> bool {
        self.chunk.len() >= FULL
    }

    /// The bytes of the chunk under construction.
    pub fn pending(&self) -> usize {
        if self.chunk.len() == self.records { 0 } else { self.chunk.len() }
    }

    /// Completes the chunk: bytes to write at once, so that the file always ends with a whole
    /// one. `None` if nothing was added.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.pending() == 0 {
            return None;
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        let records = chunk.get(self.records..).unwrap_or_default();
        let (length, sum) = (records.len() as u32, crc32c(&[records]));
        let header = self.records - CHUNK_HEADER;
        for (at, number) in [(header, length), (header + 4, sum)] {
            if let Some(place) = chunk.get_mut(at..at + 4) {
                place.copy_from_slice(&number.to_le_bytes());
            }
        }
        self.begin_chunk();
        Some(chunk)
    }
}
