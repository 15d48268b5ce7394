//! Reading a sidecar.
//!
//! A sidecar is sound up to the first chunk that is not: reading ends there, and
//! [`SeriesReader::defect`] says why. Memory is bounded by the file, which has to spend bytes on
//! whatever is kept: names, locations of codes, nodes and rates.

use std::fmt;
use std::io::{self, Read};

use heaptap_codec::Cursor;
use heaptap_codec::crc::crc32c;

use crate::model::{Code, End, Location, LocationTable};
use crate::series::record::{CodeLocation, Last, SeriesRecord};
use crate::series::{CHUNK_HEADER, MAX_CHUNK, SERIES_MAGIC, SeriesHead};

/// The most nodes, names and codes: some 300 MB together.
const MOST: usize = 1 << 24;

/// The most rates.
const MOST_RATES: usize = 1 << 16;

/// The most blocks that are not listed, but may end: more than fit into the memory of a program. A
/// record of a few bytes can end any number of blocks.
const MOST_UNLISTED: u64 = 1 << 28;

/// What is wrong with a sidecar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SeriesDefect {
    /// It does not begin like one.
    NotASidecar,
    /// It ends inside a chunk: the program was killed, or still runs.
    Cut,
    /// The checksum of a chunk is wrong, or its length is.
    Checksum,
    /// A chunk has bytes that are no record, or one that refers to something unknown.
    Record,
}

impl fmt::Display for SeriesDefect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SeriesDefect::NotASidecar => "it does not begin like the sidecar of a series",
            SeriesDefect::Cut => "it ends inside a chunk",
            SeriesDefect::Checksum => "the checksum of a chunk is wrong",
            SeriesDefect::Record => "a chunk has a record that makes no sense",
        })
    }
}

impl std::error::Error for SeriesDefect {}

/// Reads the records of a sidecar.
pub struct SeriesReader<R> {
    input: R,
    head: Option<SeriesHead>,
    chunk: Vec<u8>,
    /// How much of the chunk was decoded.
    read: usize,
    /// The bytes of whole chunks that were read, the magic number included.
    offset: u64,
    last: Last,
    rates: Vec<f64>,
    names: Vec<Box<[u8]>>,
    codes: Vec<Code>,
    locations: LocationTable,
    /// The outer node and the code of each node but 0.
    nodes: Vec<(u32, Code)>,
    /// How many blocks can still be promoted and collected.
    may_end: [u64; 2],
    /// Where the ids of the part begin.
    first_id: u64,
    defect: Option<SeriesDefect>,
}

impl<R: Read> SeriesReader<R> {
    /// Reads up to the head. An input that has none has a [`SeriesReader::defect`], and no records.
    pub fn new(input: R) -> io::Result<SeriesReader<R>> {
        let mut reader = SeriesReader {
            input,
            head: None,
            chunk: Vec::new(),
            read: 0,
            offset: 0,
            last: Last::default(),
            rates: Vec::new(),
            names: Vec::new(),
            codes: Vec::new(),
            locations: LocationTable::default(),
            nodes: Vec::new(),
            may_end: [0; 2],
            first_id: 0,
            defect: None,
        };
        let mut magic = [0; SERIES_MAGIC.len()];
        if reader.fill(&mut magic)? != magic.len() || magic != SERIES_MAGIC {
            reader.defect = Some(SeriesDefect::NotASidecar);
            return Ok(reader);
        }
        reader.offset = magic.len() as u64;
        match reader.next_record()? {
            Some(SeriesRecord::Head(head)) => {
                (reader.head, reader.first_id) = (Some(head), head.first_id);
            }
            _ => reader.defect = reader.defect.or(Some(SeriesDefect::NotASidecar)),
        }
        Ok(reader)
    }

    /// What the sidecar says first; `None` if it is damaged there.
    pub fn head(&self) -> Option<&SeriesHead> {
        self.head.as_ref()
    }

    /// Why there are no more records, if the file is damaged there.
    pub fn defect(&self) -> Option<SeriesDefect> {
        self.defect
    }

    /// The offset of the chunk behind those that were read.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The locations of the codes of nodes so far.
    pub fn locations(&self) -> &LocationTable {
        &self.locations
    }

    /// A rate by its number.
    pub fn rate(&self, number: u32) -> Option<f64> {
        self.rates.get(number as usize).copied()
    }

    /// All rates so far.
    pub fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Puts the frames of a node into `frames`, from `main` inwards.
    pub fn stack(&self, mut node: u32, frames: &mut Vec<Code>) {
        frames.clear();
        // A node comes after the one outside it: this ends.
        while let Some(&(outer, code)) =
            node.checked_sub(1).and_then(|at| self.nodes.get(at as usize))
        {
            frames.push(code);
            node = outer;
        }
        frames.reverse();
    }

    /// The next record; `None` at the end, or at a defect.
    pub fn next_record(&mut self) -> io::Result<Option<SeriesRecord<'_>>> {
        if self.defect.is_some() || self.read == self.chunk.len() && !self.next_chunk()? {
            return Ok(None);
        }
        let mut bytes = Cursor::new(self.chunk.get(self.read..).unwrap_or_default());
        let record = self.last.record(&mut bytes);
        let read = self.chunk.len() - bytes.remaining();
        let is_known = match record {
            Some(SeriesRecord::Name(name)) => {
                self.names.push(name.into());
                self.names.len() < MOST
            }
            Some(SeriesRecord::Rate(rate)) => {
                self.rates.push(rate);
                self.rates.len() < MOST_RATES
            }
            Some(SeriesRecord::Code { code, mut locations }) => {
                let (names, table) = (&self.names, &mut self.locations);
                let all = std::iter::from_fn(|| locations.next());
                let located: Option<Vec<_>> = all.map(|one| named(names, &one)).collect();
                located.is_some_and(|located| {
                    self.codes.push(code);
                    table.insert(code, &located);
                    self.codes.len() < MOST
                })
            }
            Some(SeriesRecord::Node { outer, code }) => {
                let code = self.codes.get(code as usize);
                let known = outer as usize <= self.nodes.len() && self.nodes.len() < MOST;
                code.filter(|_| known).map(|&code| self.nodes.push((outer, code))).is_some()
            }
            Some(SeriesRecord::NodesForgotten) => {
                self.nodes.clear();
                true
            }
            Some(SeriesRecord::Block(block)) => {
                self.may_end = self.may_end.map(|blocks| blocks + 1);
                block.node as usize <= self.nodes.len() && self.rate(block.rate).is_some()
            }
            Some(SeriesRecord::Ends(ends)) => {
                let left = &mut self.may_end[usize::from(ends.end == End::Collect)];
                let rest = left.checked_sub(ends.count);
                rest.map(|rest| *left = rest).is_some()
            }
            Some(SeriesRecord::BaseLeftOut { blocks }) => {
                let blocks = blocks.min(MOST_UNLISTED);
                self.may_end = self.may_end.map(|known| known.saturating_add(blocks));
                true
            }
            Some(SeriesRecord::Restarted { first_id }) => {
                // Blocks from before the trace was truncated.
                let blocks = first_id.saturating_sub(self.first_id).min(MOST_UNLISTED);
                self.may_end = self.may_end.map(|known| known.saturating_add(blocks));
                self.first_id = first_id;
                true
            }
            Some(_) => true,
            None => false,
        };
        self.read = read;
        if !is_known {
            self.defect = Some(SeriesDefect::Record);
            return Ok(None);
        }
        Ok(record)
    }

    /// Reads the next chunk; false at the end, or at a defect.
    fn next_chunk(&mut self) -> io::Result<bool> {
        let mut header = [0; CHUNK_HEADER];
        let read = self.fill(&mut header)?;
        if read != header.len() {
            self.defect = (read != 0).then_some(SeriesDefect::Cut);
            return Ok(false);
        }
        let mut fields = Cursor::new(&header);
        let (length, sum) = (fields.u32().unwrap_or(0) as usize, fields.u32().unwrap_or(0));
        if length == 0 || length > MAX_CHUNK {
            self.defect = Some(SeriesDefect::Checksum);
            return Ok(false);
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize(length, 0);
        let read = self.fill(&mut chunk)?;
        if read != length {
            self.defect = Some(SeriesDefect::Cut);
            return Ok(false);
        }
        if crc32c(&[&chunk]) != sum {
            self.defect = Some(SeriesDefect::Checksum);
            return Ok(false);
        }
        self.offset += (CHUNK_HEADER + length) as u64;
        (self.chunk, self.read) = (chunk, 0);
        Ok(true)
    }

    /// Reads as many bytes as there are.
    fn fill(&mut self, room: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(rest) = room.get_mut(filled..).filter(|rest| !rest.is_empty()) {
            match self.input.read(rest) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// A location with its names; `None` if those are not known.
fn named<'a>(names: &'a [Box<[u8]>], location: &CodeLocation) -> Option<Location<'a>> {
    let name = |number: u32| names.get(number as usize).map(|name| &**name);
    Some(Location {
        file: name(location.file)?,
        line: location.line,
        start_char: location.start_char,
        end_char: location.end_char,
        definition: name(location.definition)?,
    })
}

/// What the whole of a sidecar says, besides its blocks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SeriesSummary {
    /// The rates at which its blocks were sampled.
    pub rates: Vec<f64>,
    /// For each of these, the samples of blocks that were alive when the part began, and of those that
    /// came after it began.
    pub base_samples: Vec<u64>,
    /// See `base_samples`.
    pub stray_samples: Vec<u64>,
    /// The blocks that were alive when the part began; `None` if they are not listed.
    pub base: Option<u64>,
    /// Blocks that were sampled at an earlier rate after the part began.
    pub strays: u64,
    /// The ids of the part are counted from here: see [`SeriesHead::first_id`].
    pub first_id: u64,
    /// Every id in it is below this.
    pub ids: u64,
    /// The time of the last record that has one, in microseconds since the epoch.
    pub last_time: u64,
    /// The part is complete: it was followed by another, or its program ended.
    pub is_complete: bool,
    /// What is wrong with it, and where.
    pub defect: Option<(u64, SeriesDefect)>,
}

impl SeriesSummary {
    /// Reads a sidecar to its end.
    pub fn of(reader: &mut SeriesReader<impl Read>) -> io::Result<SeriesSummary> {
        let first_id = reader.head().map_or(0, |head| head.first_id);
        let mut summary = SeriesSummary { first_id, ids: first_id, ..SeriesSummary::default() };
        let mut blocks = 0;
        // The base, listed or not, is over.
        let mut is_later = false;
        while let Some(record) = reader.next_record()? {
            match record {
                SeriesRecord::Block(block) => {
                    blocks += 1;
                    summary.ids = summary.ids.max(block.id.saturating_add(1));
                    let samples = match is_later {
                        false => &mut summary.base_samples,
                        true => &mut summary.stray_samples,
                    };
                    let of_rate = block.rate as usize;
                    samples.resize(samples.len().max(of_rate + 1), 0);
                    samples[of_rate] = samples[of_rate].saturating_add(block.samples);
                    if is_later {
                        summary.strays += 1;
                        summary.last_time = summary.last_time.max(block.birth);
                    }
                }
                SeriesRecord::Ends(ends) => {
                    summary.last_time = summary.last_time.max(ends.time);
                    summary.ids = summary.ids.max(ends.first.saturating_add(ends.count));
                }
                SeriesRecord::Restarted { first_id } => {
                    summary.first_id = first_id;
                    summary.ids = summary.ids.max(first_id);
                }
                SeriesRecord::BaseComplete => {
                    summary.base = Some(blocks);
                    is_later = true;
                }
                SeriesRecord::BaseLeftOut { .. } => is_later = true,
                SeriesRecord::PartComplete { time } => {
                    summary.is_complete = true;
                    summary.last_time = summary.last_time.max(time);
                }
                _ => {}
            }
        }
        summary.rates = reader.rates().to_vec();
        summary.defect = reader.defect().map(|defect| (reader.offset(), defect));
        Ok(summary)
    }

    /// The rates at which blocks may have been sampled and none was. `own` is that of the part, whose
    /// blocks are in the trace.
    pub fn rates_without_samples(&self, own: f64) -> impl Iterator<Item = f64> + '_ {
        let has_samples =
            |of: &[u64], rate: usize| of.get(rate).is_some_and(|&samples| samples > 0);
        let is_without = move |&(number, &rate): &(usize, &f64)| {
            let samples = [&self.base_samples, &self.stray_samples];
            rate != own && !samples.iter().any(|of| has_samples(of, number))
        };
        self.rates.iter().enumerate().filter(is_without).map(|(_, &rate)| rate)
    }
}
