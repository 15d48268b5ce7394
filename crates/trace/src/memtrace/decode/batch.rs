//! A packet's events, decoded and checked before the first is returned.
//!
//! So every event that the reader returns comes from a packet that is sound as a
//! whole: if one byte is wrong, the numbers before it in the same packet are not
//! trusted either. `event_loop` fills a batch; this file returns its events.

use crate::memtrace::decode::frames::{FrameBudget, NewFrames};
use crate::memtrace::decode::stack::Stack;
use crate::memtrace::defect::Defect;
use crate::memtrace::event::{event_code, event_time};
use crate::memtrace::header::Header;
use crate::memtrace::rules::{MAX_PACKET, SHORT_ALLOC, SMALLEST_EVENT, code};
use crate::memtrace::zeroed::boxed;
use crate::model::NamedLocation;
use crate::model::event::{Allocation, Code, EventKind, Source};
use crate::model::table::Undo;

/// A decoded event in 16 bytes, so that the records of a packet stay in the
/// first-level cache until they are read.
#[derive(Clone, Copy, Default)]
pub(crate) struct Record {
    /// Low half: the event's first four bytes, as in the file. High half, for an
    /// allocation: the number of frames shared with the one before.
    head: u64,
    /// For an allocation the number of new frames, otherwise the block's id.
    pub(crate) value: u64,
}

impl Record {
    #[inline(always)]
    pub(crate) fn new(event: u32, prefix: u32, value: u64) -> Self {
        Record { head: u64::from(prefix) << 32 | u64::from(event), value }
    }

    #[inline(always)]
    pub(crate) fn code(self) -> u8 {
        event_code(self.head as u32)
    }

    #[inline(always)]
    fn time(self, begin: u64) -> u64 {
        event_time(self.head as u32, begin)
    }

    #[inline(always)]
    fn prefix(self) -> u32 {
        (self.head >> 32) as u32
    }
}

/// Room for a packet's records: no packet has more.
pub(crate) type Records = [Record; 1 << 13];

const _: () = assert!(size_of::<Records>() / size_of::<Record>() * SMALLEST_EVENT > MAX_PACKET);

/// The fields of a long allocation that a short one does not have.
#[derive(Clone, Copy)]
pub(crate) struct Long {
    pub(crate) length: u64,
    pub(crate) samples: u64,
    pub(crate) source: Source,
}

/// A defect, and the number of bytes from its event to the packet's end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) remaining: usize,
    pub(crate) defect: Defect,
}

/// The events of one packet, in memory that is reused for the next.
pub(crate) struct Batch {
    /// `records[..count]` are the packet's events.
    pub(crate) records: Box<Records>,
    pub(crate) count: usize,
    pub(crate) longs: Vec<Long>,
    pub(crate) new_frames: NewFrames,
    /// Defects that do not make the packet unusable.
    pub(crate) harmless: Vec<Fault>,
    /// Reverts this packet's definitions if it turns out to be damaged.
    pub(crate) defined: Vec<Undo>,
    /// The codes of one backtrace that are written out, not cached.
    pub(crate) stated: Vec<Code>,
    /// The locations of one code.
    pub(crate) locations: Vec<NamedLocation>,
    /// Whether a faulty packet has a location before the fault, or bytes that
    /// look like one.
    pub(crate) located: bool,
    returned: Returned,
}

/// How many of the batch's events were returned.
#[derive(Clone, Copy, Default)]
struct Returned {
    records: usize,
    longs: usize,
    frames: usize,
    next_id: u64,
    begin: u64,
}

impl Batch {
    pub(crate) fn new(frame_limit: usize) -> Self {
        Batch {
            records: boxed(),
            count: 0,
            longs: Vec::new(),
            new_frames: NewFrames::new(frame_limit),
            harmless: Vec::new(),
            defined: Vec::new(),
            stated: Vec::new(),
            locations: Vec::new(),
            located: false,
            returned: Returned::default(),
        }
    }

    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.longs.clear();
        self.new_frames.clear();
        self.harmless.clear();
        self.defined.clear();
        self.stated.clear();
        self.located = false;
        self.returned = Returned::default();
    }

    /// Prepares for a packet's events.
    pub(crate) fn start(&mut self, header: &Header) {
        self.clear();
        self.returned.begin = header.begin;
        self.returned.next_id = header.first_id;
    }

    /// Whether all events were returned.
    #[inline(always)]
    pub(crate) fn is_drained(&self) -> bool {
        self.returned.records >= self.count
    }

    /// The id of the next allocation to return.
    pub(crate) fn next_id(&self) -> u64 {
        self.returned.next_id
    }

    /// The time of the next event, and whether it is an allocation.
    pub(crate) fn peek(&self) -> Option<(u64, bool)> {
        let record = self.records.get(..self.count)?.get(self.returned.records)?;
        let time = record.time(self.returned.begin);
        let allocates = !matches!(record.code(), code::PROMOTE | code::COLLECT);
        Some((time, allocates))
    }

    /// Returns the next event.
    #[inline(always)]
    pub(crate) fn next<'a>(
        &'a mut self,
        stack: &'a mut Stack,
        budget: &mut FrameBudget,
    ) -> Option<(u64, EventKind<'a>)> {
        let out = &mut self.returned;
        let record = self.records[out.records % self.records.len()];
        out.records += 1;
        let time = record.time(out.begin);
        let code = record.code();
        let kind = match code {
            code::COLLECT => EventKind::Collect(record.value),
            code::PROMOTE => EventKind::Promote(record.value),
            _ => {
                let block = if code == code::ALLOC {
                    out.longs += 1;
                    *self.longs.get(out.longs - 1)?
                } else {
                    let length = u64::from(code.wrapping_sub(SHORT_ALLOC));
                    Long { length, samples: 1, source: Source::Minor }
                };
                let new = self.new_frames.get(out.frames, record.value as usize)?;
                out.frames += record.value as usize;
                out.next_id += 1;
                EventKind::Alloc(Allocation {
                    id: out.next_id - 1,
                    length: block.length,
                    samples: block.samples,
                    source: block.source,
                    backtrace: stack.advance(record.prefix(), new, budget),
                })
            }
        };
        Some((time, kind))
    }
}
