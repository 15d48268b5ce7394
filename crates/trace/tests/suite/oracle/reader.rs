//! The plain reader. It also records where in the file everything is.

use std::collections::HashMap;
use std::ops::Range;

use heaptap_trace::{Block, Code, Source};

use crate::debug_info::OwnedLocation;
use crate::reading::{RecordedEvent, RecordedKind};

pub(crate) struct PlainTrace {
    /// The first one, with the trace info, included.
    pub(crate) packets: Vec<PlainPacket>,
    /// The last explanation of each code.
    pub(crate) locations: HashMap<Code, Vec<OwnedLocation>>,
}

pub(crate) struct PlainPacket {
    /// Where in the file.
    pub(crate) range: Range<usize>,
    pub(crate) header_len: usize,
    pub(crate) domain: u16,
    pub(crate) first_id: u64,
    pub(crate) next_id: u64,
    pub(crate) has_locations: bool,
    pub(crate) events: Vec<PlainEvent>,
}

pub(crate) struct PlainEvent {
    /// Where in the file it begins.
    pub(crate) at: usize,
    /// `None` for a location and the trace info.
    pub(crate) recorded: Option<RecordedEvent>,
    /// Of an allocation: where its entries are.
    pub(crate) entries: Range<usize>,
    /// For an allocation: the number of entries that predict 255 frames.
    pub(crate) longest_runs: usize,
}

impl PlainPacket {
    pub(crate) fn recorded(&self) -> impl Iterator<Item = &RecordedEvent> {
        self.events.iter().filter_map(|event| event.recorded.as_ref())
    }

    pub(crate) fn allocations(&self) -> u64 {
        self.next_id - self.first_id
    }
}

impl PlainTrace {
    pub(crate) fn recorded(&self) -> impl Iterator<Item = &RecordedEvent> {
        self.packets.iter().flat_map(PlainPacket::recorded)
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &PlainEvent> {
        self.packets.iter().flat_map(|packet| &packet.events)
    }
}

#[derive(Default)]
struct Domain {
    codes: HashMap<u16, Code>,
    predictions: HashMap<u16, u16>,
    stack: Vec<Code>,
    files: Vec<(Vec<u8>, Vec<Vec<u8>>)>,
}

/// Reads a sound trace.
pub(crate) fn read(bytes: &[u8]) -> PlainTrace {
    let mut domains: HashMap<u16, Domain> = HashMap::new();
    let mut trace = PlainTrace { packets: Vec::new(), locations: HashMap::new() };
    let mut at = 0;
    while at < bytes.len() {
        let packet = read_packet(bytes, at, &mut domains, &mut trace.locations);
        at = packet.range.end;
        trace.packets.push(packet);
    }
    trace
}

fn read_packet(
    bytes: &[u8],
    start: usize,
    domains: &mut HashMap<u16, Domain>,
    locations: &mut HashMap<Code, Vec<OwnedLocation>>,
) -> PlainPacket {
    let mut input = Cursor { bytes, at: start };
    assert_eq!(input.number(4), 0xc1fc_1fc1, "magic at {start}");
    let size = input.number(4) as usize / 8;
    let (begin, _end, _flush) = (input.number(8), input.number(8), input.number(4));
    let (version, _pid) = (input.number(2), input.number(8));
    let number = if version == 3 { input.number(2) as u16 } else { 0 };
    let (slot, prediction, code) = (input.number(2) as u16, input.number(2), input.number(8));
    let (first_id, next_id) = (input.number(8), input.number(8));
    let header_len = input.at - start;
    let domain = domains.entry(number).or_default();
    if slot != 0xffff {
        assert_eq!(domain.codes.get(&slot).copied().unwrap_or(0), code, "cache check");
        let known = domain.predictions.get(&slot).copied().unwrap_or(0);
        assert_eq!(u64::from(known), prediction, "cache check");
    }
    let mut packet = PlainPacket {
        range: start..start + size,
        header_len,
        domain: number,
        first_id,
        next_id,
        has_locations: false,
        events: Vec::new(),
    };
    let mut id = first_id;
    let mut time = begin;
    while input.at < packet.range.end {
        let at = input.at;
        let event = input.number(4);
        time += event.wrapping_sub(time) % (1 << 25);
        let mut entries = at..at;
        let mut longest_runs = 0;
        let kind = match event >> 25 {
            0 => {
                input.at = packet.range.end;
                None
            }
            1 => {
                let code = input.number(8);
                let count = input.number(1);
                let list = (0..count).map(|_| domain.location(&mut input)).collect();
                locations.insert(code, list);
                packet.has_locations = true;
                None
            }
            code @ (2 | 101..=116) => {
                let block = if code == 2 {
                    let (length, samples) = (input.vint() as u64, input.vint() as u64);
                    let sources = [Source::Minor, Source::Major, Source::External];
                    Block { length, samples, source: sources[input.number(1) as usize] }
                } else {
                    Block { length: code - 100, samples: 1, source: Source::Minor }
                };
                let prefix = input.vint() as usize;
                let count = input.number(if code == 2 { 2 } else { 1 });
                entries.start = input.at;
                let new = domain.new_frames(&mut input, count, &mut longest_runs);
                entries.end = input.at;
                if prefix <= domain.stack.len() {
                    domain.stack.truncate(prefix);
                    domain.stack.extend(new);
                }
                id += 1;
                Some(RecordedKind::Alloc { id: id - 1, block, frames: domain.stack.clone() })
            }
            3 => Some(RecordedKind::Promote((id as i64 - 1 - input.vint()) as u64)),
            4 => Some(RecordedKind::Collect((id as i64 - 1 - input.vint()) as u64)),
            code => panic!("event code {code} at {at}"),
        };
        let recorded = kind.map(|kind| RecordedEvent { domain: number, time, kind });
        packet.events.push(PlainEvent { at, recorded, entries, longest_runs });
    }
    assert_eq!(input.at, packet.range.end, "the last event ends with its packet");
    assert_eq!(id, next_id, "allocations in the packet at {start}");
    packet
}

impl Domain {
    fn new_frames(&mut self, input: &mut Cursor<'_>, count: u64, longest: &mut usize) -> Vec<Code> {
        let mut frames = Vec::new();
        let mut predictor = 0;
        for _ in 0..count {
            let head = input.number(2) as u16;
            let slot = head >> 2;
            self.predictions.insert(predictor, slot);
            predictor = slot;
            let right = match head % 4 {
                3 => {
                    let code = input.number(8);
                    self.codes.insert(slot, code);
                    0
                }
                2 => input.number(1),
                right => u64::from(right),
            };
            *longest += usize::from(right == 255);
            frames.push(self.codes[&slot]);
            for _ in 0..right {
                // A slot that nothing followed yet predicts slot 0.
                predictor = self.predictions.get(&predictor).copied().unwrap_or(0);
                frames.push(self.codes[&predictor]);
            }
        }
        frames
    }

    fn location(&mut self, input: &mut Cursor<'_>) -> OwnedLocation {
        let packed = input.number(6);
        let (file, definition) = (packed >> 38 & 31, packed >> 43 & 31);
        let entry = if file < 31 {
            self.files.remove(file as usize)
        } else {
            // The oldest file's definitions pass to the new one, as version 1
            // has it.
            let full = self.files.len() == 31;
            let definitions = if full { self.files.remove(30).1 } else { Vec::new() };
            (input.string(), definitions)
        };
        self.files.insert(0, entry);
        let (file, definitions) = &mut self.files[0];
        let name =
            if definition < 31 { definitions.remove(definition as usize) } else { input.string() };
        definitions.insert(0, name.clone());
        definitions.truncate(31);
        OwnedLocation {
            file: file.clone(),
            line: packed as u32 & 0xf_ffff,
            start_char: (packed >> 20) as u32 & 0xff,
            end_char: (packed >> 28) as u32 & 0x3ff,
            definition: name,
        }
    }
}

struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    /// A little-endian number of `size` bytes.
    fn number(&mut self, size: usize) -> u64 {
        let bytes = &self.bytes[self.at..self.at + size];
        self.at += size;
        bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
    }

    fn vint(&mut self) -> i64 {
        match self.number(1) {
            253 => self.number(2) as i64,
            254 => i64::from(self.number(4) as i32),
            255 => self.number(8) as i64,
            small => small as i64,
        }
    }

    fn string(&mut self) -> Vec<u8> {
        let mut text = Vec::new();
        loop {
            match self.number(1) as u8 {
                0 => return text,
                byte => text.push(byte),
            }
        }
    }
}
