//! A packet's events, decoded and checked before the first is handed out.
//!
//! So what the reader hands out comes from packets that are sound as a whole:
//! where a byte is wrong, the numbers before it in the same packet are not
//! trusted either. [`super::packet`] fills a batch; this hands it out.

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

/// A decoded event, in 16 bytes: a packet's records are written and read again
/// before the next packet's, and should not fall out of the fastest cache.
#[derive(Clone, Copy, Default)]
pub(crate) struct Record {
    /// Below the event's first four bytes, as in the file; above, of an
    /// allocation, the frames shared with the one before.
    head: u64,
    /// Of an allocation: how many new frames. Else the object's id.
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

/// What a long allocation has that a short one does not.
#[derive(Clone, Copy)]
pub(crate) struct Long {
    pub(crate) length: u64,
    pub(crate) samples: u64,
    pub(crate) source: Source,
}

/// A defect, and how many bytes of the packet there are from its event on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fault {
    pub(crate) remaining: usize,
    pub(crate) defect: Defect,
}

/// The events of one packet, in room that is used again for the next.
pub(crate) struct Batch {
    /// `records[..count]` are the packet's, the rest is room.
    pub(crate) records: Box<Records>,
    pub(crate) count: usize,
    pub(crate) longs: Vec<Long>,
    pub(crate) new_frames: NewFrames,
    /// Defects that do not make the packet unusable.
    pub(crate) harmless: Vec<Fault>,
    /// What takes this packet's explanations back if it turns out to be damaged.
    pub(crate) defined: Vec<Undo>,
    /// Codes that one backtrace states in full.
    pub(crate) stated: Vec<Code>,
    /// The locations of one code.
    pub(crate) locations: Vec<NamedLocation>,
    /// Whether a packet with a fault has a location before that, or what looks
    /// like one.
    pub(crate) located: bool,
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
            handed_out: HandedOut::default(),
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
        self.handed_out = HandedOut::default();
    }

    /// Makes ready for a packet's events.
    pub(crate) fn start(&mut self, header: &Header) {
        self.clear();
        self.handed_out.begin = header.begin;
        self.handed_out.next_id = header.first_id;
    }

    /// Whether there is nothing more to hand out.
    #[inline(always)]
    pub(crate) fn is_drained(&self) -> bool {
        self.handed_out.records >= self.count
    }

    /// The id of the next allocation to hand out.
    pub(crate) fn next_id(&self) -> u64 {
        self.handed_out.next_id
    }

    /// Time and kind of the next event to hand out.
    pub(crate) fn peek(&self) -> Option<(u64, bool)> {
        let record = self.records.get(..self.count)?.get(self.handed_out.records)?;
        let time = record.time(self.handed_out.begin);
        let allocates = !matches!(record.code(), code::PROMOTE | code::COLLECT);
        Some((time, allocates))
    }

    /// Hands out the next event.
    #[inline(always)]
    pub(crate) fn next<'a>(
        &'a mut self,
        stack: &'a mut Stack,
        budget: &mut FrameBudget,
    ) -> Option<(u64, EventKind<'a>)> {
        let out = &mut self.handed_out;
        let record = self.records[out.records % self.records.len()];
        out.records += 1;
        let time = record.time(out.begin);
        let code = record.code();
        let happening = match code {
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
        Some((time, happening))
    }
}
