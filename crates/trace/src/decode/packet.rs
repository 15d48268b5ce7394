//! The decoding of one packet: the decoder's hot loop.
//!
//! What the loop needs at every event is in local variables, so that it has
//! registers; what is rare is in functions of its own ([`Rare`]). The bytes
//! reach [`PADDING`] beyond the packet, so that any number can be read without
//! asking where the packet ends: whether an event stayed within is checked once,
//! behind it.

use crate::decode::batch::{Batch, Fault, Long, Record};
use crate::decode::domain::{CodedDepth, Domain};
use crate::decode::entry::{EntryFault, entries_size, stated_codes};
use crate::decode::frames::NewFrames;
use crate::decode::names::RecentNames;
use crate::decode::stack::Stack;
use crate::decode::tally::Tally;
use crate::defect::Defect;
use crate::event::{Code, Source, event_code, event_time, is_code};
use crate::header::{Header, Version};
use crate::location::{Definition, LocationTable, NamedLocation, Undo};
use crate::rules::{MAX_ENTRY, MAX_EVENT_BODY, MAX_NUMBER, code};
use crate::wire::Bytes;

/// How many bytes there must be behind a packet's last.
pub(crate) const PADDING: usize = 16;

/// The fewest bytes an event takes: header and a small number.
const SMALLEST_EVENT: usize = 5;

impl Batch {
    /// Decodes a packet's body, which `bytes` begin with. After a fault the
    /// domain's names and stack are out of step with the writer; the table is
    /// as it was.
    pub(crate) fn decode(
        &mut self,
        header: &Header,
        bytes: &[u8],
        domain: &mut Domain,
        table: &mut LocationTable,
    ) -> Result<Tally, Fault> {
        self.start(header);
        let size = header.size - header.version.header_len();
        let Batch { records, longs, new_frames, harmless, defined, stated, locations, .. } = self;
        let mut rare = Rare {
            header,
            bytes,
            size,
            names: &mut domain.names,
            table,
            longs,
            harmless,
            defined,
            stated,
            locations,
            tally: Tally::default(),
        };
        let most = size / SMALLEST_EVENT + 1;
        if records.len() < most {
            records.resize(most, Record::default());
        }
        let mut events = Loop {
            bytes,
            size,
            at: 0,
            start: 0,
            begin: header.begin,
            next_id: header.first_id,
            depth: domain.depth,
            counts: Default::default(),
        };
        let outcome = events.run(&mut domain.stack, records, new_frames, &mut rare);
        let Loop { start, next_id, depth, counts: [collected, promoted], .. } = events;
        let (stated, found) = (header.next_id, next_id);
        let empty = match outcome {
            Ok(_) if !domain.stack.first_slot_filled() => new_frames.first_zero(),
            _ => None,
        };
        let outcome = match outcome {
            Ok(_) if empty.is_some() => {
                let frame = empty.unwrap_or(0);
                let remaining = size - rare.event_of_frame(records, frame);
                Err(Fault { remaining, defect: Defect::EmptySlot })
            }
            Ok(_) if stated != found => {
                Err(Fault { remaining: 0, defect: Defect::AllocationCount { stated, found } })
            }
            Ok(count) => Ok(count),
            Err(defect) => Err(Fault { remaining: size - start, defect }),
        };
        let Rare { mut tally, .. } = rare;
        match outcome {
            Ok(count) => {
                self.count = count;
                domain.depth = depth;
                tally.promotions = promoted.events;
                tally.promotion_bytes = promoted.bytes as u64;
                tally.collections = collected.events;
                tally.collection_bytes = collected.bytes as u64;
                tally.allocations = header.next_id - header.first_id;
                tally.allocation_bytes += 4 * tally.allocations;
                tally.backtrace_bytes = size as u64 - tally.bytes_but_backtraces();
                Ok(tally)
            }
            Err(fault) => {
                for undo in self.defined.drain(..).rev() {
                    table.undo(undo);
                }
                self.clear();
                Err(fault)
            }
        }
    }
}

/// The loop's state. It is copied to and fro by functions that are all inlined,
/// so that its fields are registers.
struct Loop<'a> {
    bytes: &'a [u8],
    /// Size of the packet's body, and the place in it.
    size: usize,
    at: usize,
    /// Where the current event begins.
    start: usize,
    begin: u64,
    next_id: u64,
    depth: CodedDepth,
    counts: [ObjectCount; 2],
}

/// How many promotions or collections, and their bytes.
#[derive(Clone, Copy, Default)]
struct ObjectCount {
    events: u64,
    bytes: usize,
}

impl Loop<'_> {
    /// Decodes events into `records` and `new_frames`; returns how many.
    #[inline(always)]
    fn run(
        &mut self,
        stack: &mut Stack,
        records: &mut [Record],
        new_frames: &mut NewFrames,
        rare: &mut Rare<'_>,
    ) -> Result<usize, Defect> {
        let end = rare.header.end;
        let mut last_time = self.begin;
        let room = records.len();
        let mut records = records.iter_mut();
        while self.at < self.size {
            self.start = self.at;
            if self.size - self.at < SMALLEST_EVENT {
                return Err(Defect::EventOverrun);
            }
            let word = word_at(self.bytes, self.at).ok_or(Defect::EventOverrun)?;
            let event = word as u32;
            let time = event_time(event, self.begin);
            if time > end || time < last_time {
                return Err(time_defect(time, end, last_time));
            }
            last_time = time;
            let record = match event_code(event) {
                code::COLLECT | code::PROMOTE => self.object(word, rare)?,
                code::FIRST_SHORT..=code::LAST_SHORT | code::ALLOC => {
                    self.allocation(word, stack, new_frames, rare)?
                }
                code::LOCATION => {
                    self.at = rare.location(self.at + 4)?;
                    continue;
                }
                code::TRACE_INFO => return Err(Defect::TraceInfoAgain),
                code => return Err(Defect::EventCode { code }),
            };
            if self.at > self.size {
                return Err(Defect::EventOverrun);
            }
            if let Some(place) = records.next() {
                *place = record;
            }
        }
        Ok(room - records.len())
    }

    /// A promotion or collection.
    #[inline(always)]
    fn object(&mut self, word: u64, rare: &mut Rare<'_>) -> Result<Record, Defect> {
        let (event, fifth) = (word as u32, (word >> 32) as u8);
        let mut delta = i64::from(fifth);
        self.at += 5;
        if fifth > MAX_SMALL {
            (delta, self.at) = rare.vint(self.at - 1)?;
        }
        let id = self.next_id.wrapping_sub(1).wrapping_sub(delta as u64);
        let promotes = event_code(event) == code::PROMOTE;
        if id >= self.next_id {
            rare.object_ahead(delta, id, promotes, self.start)?;
        }
        let count = &mut self.counts[usize::from(promotes)];
        count.events += 1;
        count.bytes += self.at - self.start;
        Ok(Record { event, prefix: 0, value: id })
    }

    /// An allocation.
    #[inline(always)]
    fn allocation(
        &mut self,
        word: u64,
        stack: &mut Stack,
        new_frames: &mut NewFrames,
        rare: &mut Rare<'_>,
    ) -> Result<Record, Defect> {
        let (event, fifth, sixth) = (word as u32, (word >> 32) as u8, (word >> 40) as u8);
        let (mut prefix, mut entries) = (u32::from(fifth), u16::from(sixth));
        self.at += 6;
        if event_code(event) == code::ALLOC || fifth > MAX_SMALL {
            (prefix, entries, self.at) = rare.allocation(event_code(event), self.start)?;
        }
        let CodedDepth { frames: depth, open } = self.depth;
        if u64::from(prefix) > depth && !open {
            return Err(Defect::CommonPrefix { prefix: i64::from(prefix), depth });
        }
        self.next_id += 1;
        let (entries_at, before) = (self.at, new_frames.len);
        let missed = match stack.follow(self.bytes, &mut self.at, entries, new_frames) {
            Ok(missed) => missed,
            Err(fault) => {
                return Err(rare.entry_defect(fault, new_frames.limit, entries_at, entries));
            }
        };
        if self.at > self.size {
            return Err(Defect::EventOverrun);
        }
        if missed {
            rare.check_stated(self.start, entries_at, entries)?;
        }
        let bytes = self.at - entries_at;
        let new = (new_frames.len - before) as u64;
        if u64::from(prefix) <= depth || stack.in_doubt() {
            // The writer stops there, with frames left or not.
            let open = bytes > MAX_EVENT_BODY - MAX_ENTRY;
            self.depth = CodedDepth { frames: u64::from(prefix) + new, open };
        }
        if bytes > MAX_EVENT_BODY {
            return Err(Defect::BacktraceSize { bytes });
        }
        Ok(Record { event, prefix, value: new })
    }
}

/// The largest number that a vint holds in its first byte.
const MAX_SMALL: u8 = 252;

#[inline(always)]
fn word_at(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..)?.first_chunk().map(|&word| u64::from_le_bytes(word))
}

/// What happens to few events, with what only they need.
struct Rare<'a> {
    header: &'a Header,
    bytes: &'a [u8],
    size: usize,
    names: &'a mut RecentNames,
    table: &'a mut LocationTable,
    longs: &'a mut Vec<Long>,
    harmless: &'a mut Vec<Fault>,
    defined: &'a mut Vec<Undo>,
    stated: &'a mut Vec<Code>,
    locations: &'a mut Vec<NamedLocation>,
    tally: Tally,
}

/// No packet is so bad that more than this many harmless defects matter.
const MAX_HARMLESS: usize = 16;

impl<'a> Rare<'a> {
    fn input(&self, at: usize) -> Bytes<'a> {
        Bytes::new(self.bytes.get(at..self.size).unwrap_or(&[]))
    }

    fn note(&mut self, at: usize, defect: Defect) {
        if self.harmless.len() < MAX_HARMLESS {
            self.harmless.push(Fault { remaining: self.size.saturating_sub(at), defect });
        }
    }

    /// A number at `at`, and where it ends.
    #[cold]
    #[inline(never)]
    fn vint(&self, at: usize) -> Result<(i64, usize), Defect> {
        let mut input = self.input(at);
        let value = input.vint().ok_or(Defect::EventOverrun)?;
        Ok((value, self.size - input.remaining()))
    }

    /// A promotion or collection of an object not given out yet in this
    /// domain: another domain's, adopted when that ended. Other readers take
    /// it of collections only.
    #[cold]
    #[inline(never)]
    fn object_ahead(
        &mut self,
        delta: i64,
        id: u64,
        promotes: bool,
        at: usize,
    ) -> Result<(), Defect> {
        if self.header.version < Version::V3 || id > MAX_NUMBER {
            return Err(Defect::ObjectId { delta });
        }
        if promotes {
            self.note(at, Defect::PromoteAhead { delta });
        }
        Ok(())
    }

    /// A long allocation, or a short one with a deep prefix, whose event begins
    /// at `at`: its prefix, its number of entries, and where they begin.
    #[inline(never)]
    fn allocation(&mut self, code: u8, at: usize) -> Result<(u32, u16, usize), Defect> {
        let mut input = self.input(at + 4);
        if code == code::ALLOC {
            let start = input.remaining();
            let long = long_block(&mut input)?;
            self.longs.push(long);
            self.tally.allocation_bytes += (start - input.remaining()) as u64;
        }
        let prefix = input.vint().ok_or(Defect::EventOverrun)?;
        let entries = if code == code::ALLOC { input.u16() } else { input.u8().map(u16::from) };
        let entries = entries.ok_or(Defect::EventOverrun)?;
        // No stack has four thousand million frames.
        let too_deep = Defect::CommonPrefix { prefix, depth: u64::from(u32::MAX) };
        let prefix = u32::try_from(prefix).map_err(|_| too_deep)?;
        Ok((prefix, entries, self.size - input.remaining()))
    }

    /// Where the event begins that has the packet's `frame`th new frame.
    #[cold]
    #[inline(never)]
    fn event_of_frame(&mut self, records: &[Record], frame: usize) -> usize {
        let (mut at, mut frames) = (0, 0);
        for record in records {
            let code = event_code(record.event);
            let end = match code {
                code::COLLECT | code::PROMOTE => self.vint(at + 4).map(|(_, end)| end),
                _ => {
                    frames += record.value as usize;
                    self.allocation(code, at).and_then(|(_, entries, from)| {
                        let size = entries_size(self.bytes.get(from..).unwrap_or(&[]), entries);
                        size.map(|size| from + size).ok_or(Defect::EventOverrun)
                    })
                }
            };
            match end {
                Ok(end) if frames <= frame => at = end,
                _ => break,
            }
        }
        at
    }

    /// What is wrong with these entries, of which something is: if they reach
    /// beyond the packet, that.
    #[cold]
    #[inline(never)]
    fn entry_defect(&self, fault: EntryFault, limit: usize, at: usize, entries: u16) -> Defect {
        let rest = self.bytes.get(at..).unwrap_or(&[]);
        let inside = entries_size(rest, entries).is_some_and(|size| at + size <= self.size);
        match fault {
            EntryFault::EmptySlot if inside => Defect::EmptySlot,
            EntryFault::TooMany if inside => Defect::TooDeep { limit },
            _ => Defect::EventOverrun,
        }
    }

    /// The codes that these entries state must have been explained before.
    #[inline(never)]
    fn check_stated(&mut self, at: usize, from: usize, entries: u16) -> Result<(), Defect> {
        self.stated.clear();
        stated_codes(self.bytes.get(from..).unwrap_or(&[]), entries, self.stated);
        while let Some(code) = self.stated.pop() {
            if !is_code(code) {
                return Err(Defect::CodeRange { code });
            }
            if !self.table.contains(code) {
                self.note(at, Defect::CodeUnknown { code });
            }
        }
        Ok(())
    }

    /// A location event whose body begins at `at`; where it ends.
    #[inline(never)]
    fn location(&mut self, at: usize) -> Result<usize, Defect> {
        let mut input = self.input(at);
        let code = input.u64().ok_or(Defect::EventOverrun)?;
        let count = input.u8().ok_or(Defect::EventOverrun)?;
        if !is_code(code) {
            return Err(Defect::CodeRange { code });
        }
        self.locations.clear();
        for _ in 0..count {
            let location = self.names.location(&mut input, self.table)?;
            self.locations.push(location);
        }
        match self.table.define(code, self.locations) {
            Definition::Same => {}
            Definition::New(undo) => self.defined.push(undo),
            Definition::Different(undo) => {
                self.defined.push(undo);
                self.note(at - 4, Defect::LocationChange { code });
            }
        }
        let end = self.size - input.remaining();
        self.tally.locations += 1;
        self.tally.location_bytes += (4 + end - at) as u64;
        Ok(end)
    }
}

fn long_block(input: &mut Bytes<'_>) -> Result<Long, Defect> {
    let length = input.vint().ok_or(Defect::EventOverrun)?;
    let samples = input.vint().ok_or(Defect::EventOverrun)?;
    let source = input.u8().ok_or(Defect::EventOverrun)?;
    if !(0..=MAX_NUMBER as i64).contains(&length) {
        return Err(Defect::Length { length });
    }
    if !(1..=length + 1).contains(&samples) {
        return Err(Defect::Samples { samples });
    }
    let source = Source::from_number(source).ok_or(Defect::Source { source })?;
    Ok(Long { length: length as u64, samples: samples as u64, source })
}

#[cold]
fn time_defect(time: u64, end: u64, last: u64) -> Defect {
    if time > end {
        Defect::EventTime { time }
    } else {
        Defect::TimeBackwards { time, after: last }
    }
}
