//! A packet's events, decoded and checked before the first is handed out.
//!
//! So what the reader hands out comes from packets that are sound as a whole:
//! where a byte is wrong, the numbers before it in the same packet are not
//! trusted either. Decoding in one go also keeps the loop's state in registers.

use crate::decode::domain::{CodedDepth, Domain};
use crate::decode::names::RecentNames;
use crate::decode::stack::{EntryFault, FrameBudget, NewFrames, Stack};
use crate::decode::tally::Tally;
use crate::defect::Defect;
use crate::event::{Allocation, Code, Happening, Source, event_code, event_time, fits_63_bits};
use crate::header::{Header, Version};
use crate::location::{Definition, LocationTable, NamedLocation};
use crate::rules::{MAX_ENTRY, MAX_EVENT_BODY, MAX_NUMBER, SHORT_ALLOC, code};
use crate::wire::Bytes;

/// A decoded event, in 16 bytes: a packet's records are written and read again
/// before the next packet's, and should not fall out of the fastest cache.
#[derive(Clone, Copy)]
struct Record {
    /// The event's first four bytes, as in the file.
    event: u32,
    /// Of an allocation: frames shared with the one before.
    prefix: u32,
    /// Of an allocation: how many new frames. Else the object's id.
    value: u64,
}

/// What a long allocation has that a short one does not.
#[derive(Clone, Copy)]
struct Long {
    length: u64,
    samples: u64,
    source: Source,
}

/// A defect, and how many bytes of the packet there are from its event on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) remaining: usize,
    pub(crate) defect: Defect,
}

/// The events of one packet, in room that is used again for the next.
pub(crate) struct Batch {
    records: Vec<Record>,
    longs: Vec<Long>,
    new_frames: NewFrames,
    /// Defects that do not make the packet unusable.
    pub(crate) harmless: Vec<Fault>,
    /// Codes that this packet explained for the first time, taken back if it
    /// turns out to be damaged.
    defined: Vec<Code>,
    /// Codes that one backtrace states in full.
    stated: Vec<Code>,
    /// The locations of one code.
    locations: Vec<NamedLocation>,
    handed_out: HandedOut,
}

/// How far the batch is handed out.
#[derive(Clone, Copy, Default)]
struct HandedOut {
    records: usize,
    longs: usize,
    frames: usize,
    next_id: u64,
    begin: u64,
}

/// No packet is so bad that more than this many harmless defects matter.
const MAX_HARMLESS: usize = 16;

impl Batch {
    pub(crate) fn new(frame_limit: usize) -> Self {
        Batch {
            records: Vec::new(),
            longs: Vec::new(),
            new_frames: NewFrames::new(frame_limit),
            harmless: Vec::new(),
            defined: Vec::new(),
            stated: Vec::new(),
            locations: Vec::new(),
            handed_out: HandedOut::default(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.longs.clear();
        self.new_frames.clear();
        self.harmless.clear();
        self.defined.clear();
        self.stated.clear();
        self.handed_out = HandedOut::default();
    }

    /// Whether there is nothing more to hand out.
    #[inline(always)]
    pub(crate) fn is_drained(&self) -> bool {
        self.handed_out.records >= self.records.len()
    }

    /// The id of the next allocation to hand out.
    pub(crate) fn next_id(&self) -> u64 {
        self.handed_out.next_id
    }

    /// Time and kind of the next event to hand out.
    pub(crate) fn peek(&self) -> Option<(u64, bool)> {
        let record = self.records.get(self.handed_out.records)?;
        let time = event_time(record.event, self.handed_out.begin);
        let allocates = !matches!(event_code(record.event), code::PROMOTE | code::COLLECT);
        Some((time, allocates))
    }

    /// Hands out the next event.
    #[inline(always)]
    pub(crate) fn next<'a>(
        &'a mut self,
        stack: &'a mut Stack,
        budget: &mut FrameBudget,
    ) -> Option<(u64, Happening<'a>)> {
        let out = &mut self.handed_out;
        let record = self.records.get(out.records)?;
        out.records += 1;
        let time = event_time(record.event, out.begin);
        let code = event_code(record.event);
        let happening = match code {
            code::COLLECT => Happening::Collect(record.value),
            code::PROMOTE => Happening::Promote(record.value),
            _ => {
                let block = if code == code::ALLOC {
                    out.longs += 1;
                    *self.longs.get(out.longs - 1)?
                } else {
                    let length = u64::from(code.wrapping_sub(SHORT_ALLOC));
                    Long { length, samples: 1, source: Source::Minor }
                };
                let new = self.new_frames.get(out.frames, record.value as usize);
                out.frames += record.value as usize;
                out.next_id += 1;
                Happening::Alloc(Allocation {
                    id: out.next_id - 1,
                    length: block.length,
                    samples: block.samples,
                    source: block.source,
                    backtrace: stack.advance(record.prefix, new, budget),
                })
            }
        };
        Some((time, happening))
    }

    /// Decodes a packet's body. After a fault the domain's names and stack are
    /// out of step with the writer; the table is as it was.
    pub(crate) fn decode(
        &mut self,
        header: &Header,
        body: &[u8],
        domain: &mut Domain,
        table: &mut LocationTable,
    ) -> Result<Tally, Fault> {
        self.clear();
        self.handed_out.begin = header.begin;
        self.handed_out.next_id = header.first_id;
        let mut decoding = Decoding {
            header,
            stack: &mut domain.stack,
            depth: domain.depth,
            names: &mut domain.names,
            table,
            batch: self,
            tally: Tally::default(),
        };
        let outcome = decoding.run(Bytes::new(body));
        let Decoding { depth, mut tally, .. } = decoding;
        domain.depth = depth;
        if let Err(fault) = outcome {
            for &code in &self.defined {
                table.forget(code);
            }
            self.clear();
            return Err(fault);
        }
        tally.allocations = header.next_id - header.first_id;
        tally.allocation_bytes += 4 * tally.allocations;
        tally.backtrace_bytes = body.len() as u64
            - tally.allocation_bytes
            - tally.promotion_bytes
            - tally.collection_bytes
            - tally.location_bytes;
        Ok(tally)
    }

    fn note(&mut self, fault: Fault) {
        if self.harmless.len() < MAX_HARMLESS {
            self.harmless.push(fault);
        }
    }
}

/// A packet being decoded. What the loop works with is passed from hand to
/// hand instead of being kept here, so that it has registers.
struct Decoding<'a> {
    header: &'a Header,
    stack: &'a mut Stack,
    depth: CodedDepth,
    names: &'a mut RecentNames,
    table: &'a mut LocationTable,
    batch: &'a mut Batch,
    tally: Tally,
}

impl<'a> Decoding<'a> {
    fn run(&mut self, mut input: Bytes<'a>) -> Result<(), Fault> {
        let Header { begin, end, first_id, next_id: stated, .. } = *self.header;
        let mut last_time = begin;
        let mut next_id = first_id;
        let mut promotions = 0;
        let mut promotion_bytes = 0;
        let mut collections = 0;
        let mut collection_bytes = 0;
        while input.remaining() > 0 {
            let remaining = input.remaining();
            let fault = |defect| Fault { remaining, defect };
            let Some(event) = input.u32() else { return Err(fault(Defect::EventOverrun)) };
            let time = event_time(event, begin);
            if time > end || time < last_time {
                return Err(fault(time_defect(time, end, last_time)));
            }
            last_time = time;
            let outcome = match event_code(event) {
                code::COLLECT => {
                    let outcome = self.object(input, event, next_id);
                    collections += 1;
                    collection_bytes += outcome.map_or(0, |rest| remaining - rest.remaining());
                    outcome
                }
                code::PROMOTE => {
                    let outcome = self.object(input, event, next_id);
                    promotions += 1;
                    promotion_bytes += outcome.map_or(0, |rest| remaining - rest.remaining());
                    outcome
                }
                code::FIRST_SHORT..=code::LAST_SHORT => {
                    next_id += 1;
                    self.allocation::<true>(input, event)
                }
                code::ALLOC => {
                    next_id += 1;
                    self.long_allocation(input, event)
                }
                code::LOCATION => self.location(input),
                code::TRACE_INFO => Err(Defect::TraceInfoAgain),
                code => Err(Defect::EventCode { code }),
            };
            input = match outcome {
                Ok(rest) => rest,
                Err(defect) => return Err(fault(defect)),
            };
        }
        if stated != next_id {
            let defect = Defect::AllocationCount { stated, found: next_id };
            return Err(Fault { remaining: 0, defect });
        }
        self.tally.promotions = promotions;
        self.tally.promotion_bytes = promotion_bytes as u64;
        self.tally.collections = collections;
        self.tally.collection_bytes = collection_bytes as u64;
        Ok(())
    }

    /// A promotion or collection: how far back its object's id is.
    #[inline(always)]
    fn object(
        &mut self,
        mut input: Bytes<'a>,
        event: u32,
        next_id: u64,
    ) -> Result<Bytes<'a>, Defect> {
        let remaining = input.remaining();
        let delta = input.vint().ok_or(Defect::EventOverrun)?;
        let id = (next_id as i64 - 1).wrapping_sub(delta) as u64;
        if id >= next_id {
            self.object_ahead(delta, id, event, remaining)?;
        }
        self.batch.records.push(Record { event, prefix: 0, value: id });
        Ok(input)
    }

    /// An id not given out yet in this domain: another domain's, adopted when
    /// that ended. Other readers take it of collections only.
    #[cold]
    fn object_ahead(
        &mut self,
        delta: i64,
        id: u64,
        event: u32,
        remaining: usize,
    ) -> Result<(), Defect> {
        if self.header.version < Version::V3 || id > MAX_NUMBER {
            return Err(Defect::ObjectId { delta });
        }
        if event_code(event) == code::PROMOTE {
            self.batch.note(Fault { remaining, defect: Defect::PromoteAhead { delta } });
        }
        Ok(())
    }

    fn long_allocation(&mut self, mut input: Bytes<'a>, event: u32) -> Result<Bytes<'a>, Defect> {
        let start = input.remaining();
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
        let long = Long { length: length as u64, samples: samples as u64, source };
        self.batch.longs.push(long);
        self.tally.allocation_bytes += (start - input.remaining()) as u64;
        self.allocation::<false>(input, event)
    }

    /// The part that long and short allocations share: the backtrace.
    #[inline(always)]
    fn allocation<const SHORT: bool>(
        &mut self,
        mut input: Bytes<'a>,
        event: u32,
    ) -> Result<Bytes<'a>, Defect> {
        let prefix = input.vint().ok_or(Defect::EventOverrun)?;
        let entries = if SHORT { input.u8().map(u16::from) } else { input.u16() };
        let entries = entries.ok_or(Defect::EventOverrun)?;
        let CodedDepth { frames: depth, open } = self.depth;
        let Ok(shared) = u32::try_from(prefix) else {
            return Err(Defect::CommonPrefix { prefix, depth });
        };
        if u64::from(shared) > depth && !open {
            return Err(Defect::CommonPrefix { prefix, depth });
        }
        let start = input.remaining();
        let Batch { new_frames, stated, records, .. } = &mut *self.batch;
        let before = new_frames.len;
        let input = match self.stack.follow(input, entries, new_frames, stated) {
            Ok(input) => input,
            Err(fault) => return Err(entry_defect(fault, new_frames.limit)),
        };
        let bytes = start - input.remaining();
        let new = (new_frames.len - before) as u64;
        records.push(Record { event, prefix: shared, value: new });
        if !stated.is_empty() {
            self.check_stated(start);
        }
        if bytes > MAX_EVENT_BODY {
            return Err(Defect::BacktraceSize { bytes });
        }
        if u64::from(shared) <= depth || self.stack.in_doubt() {
            // The writer stops there, with frames left or not.
            let open = bytes > MAX_EVENT_BODY - MAX_ENTRY;
            self.depth = CodedDepth { frames: u64::from(shared) + new, open };
        }
        Ok(input)
    }

    /// A code that the file states must have been explained before.
    #[inline(never)]
    fn check_stated(&mut self, remaining: usize) {
        while let Some(code) = self.batch.stated.pop() {
            if !self.table.contains(code) {
                self.batch.note(Fault { remaining, defect: Defect::CodeUnknown { code } });
            }
        }
    }

    #[inline(never)]
    fn location(&mut self, mut input: Bytes<'a>) -> Result<Bytes<'a>, Defect> {
        let start = input.remaining();
        let code = input.u64().ok_or(Defect::EventOverrun)?;
        let count = input.u8().ok_or(Defect::EventOverrun)?;
        if !fits_63_bits(code) {
            return Err(Defect::CodeWidth { code });
        }
        self.batch.locations.clear();
        for _ in 0..count {
            let location = self.names.location(&mut input, self.table)?;
            self.batch.locations.push(location);
        }
        match self.table.define(code, &self.batch.locations) {
            Definition::New => self.batch.defined.push(code),
            Definition::Same => {}
            Definition::Different => {
                let defect = Defect::LocationChange { code };
                self.batch.note(Fault { remaining: start, defect });
            }
        }
        self.tally.locations += 1;
        self.tally.location_bytes += (4 + start - input.remaining()) as u64;
        Ok(input)
    }
}

#[cold]
fn time_defect(time: u64, end: u64, last: u64) -> Defect {
    if time > end {
        Defect::EventTime { time }
    } else {
        Defect::TimeBackwards { time, after: last }
    }
}

#[cold]
fn entry_defect(fault: EntryFault, limit: usize) -> Defect {
    match fault {
        EntryFault::Overrun => Defect::EventOverrun,
        EntryFault::EmptySlot => Defect::EmptySlot,
        EntryFault::TooMany => Defect::TooDeep { limit },
    }
}
