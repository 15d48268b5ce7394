//! What few events of a packet need, kept apart from the loop over its events:
//! locations, long allocations, and finding out what is wrong.

use heaptap_codec::Cursor;

use crate::memtrace::cache::Cache;
use crate::memtrace::decode::batch::{Fault, Long, Record};
use crate::memtrace::decode::body::Body;
use crate::memtrace::decode::clock::Clock;
use crate::memtrace::decode::entry::{EntryFault, entries_frames, entries_size, miss_code};
use crate::memtrace::decode::frames::NewFrames;
use crate::memtrace::decode::known_slots::KnownSlots;
use crate::memtrace::decode::names::RecentNames;
use crate::memtrace::defect::Defect;
use crate::memtrace::event::event_time;
use crate::memtrace::header::{Header, Version};
use crate::memtrace::rules::{MAX_NUMBER, SMALLEST_EVENT, code};
use crate::model::NamedLocation;
use crate::model::TraceTotals;
use crate::model::event::{Code, Source, is_code};
use crate::model::table::{Definition, LocationTable, Undo};

/// An event that is not a promotion, a collection or a common allocation.
pub(crate) enum OtherEvent {
    /// A location, and its end.
    Location(usize),
    /// An allocation, and the position of its entries.
    Allocation { prefix: u32, entries: u16, at: usize },
}

/// A packet, and what few of its events need.
pub(crate) struct PacketContext<'a> {
    pub(crate) header: &'a Header,
    pub(crate) bytes: &'a Body,
    pub(crate) size: usize,
    pub(crate) names: &'a mut RecentNames,
    pub(crate) table: &'a mut LocationTable,
    pub(crate) longs: &'a mut Vec<Long>,
    pub(crate) harmless: &'a mut Vec<Fault>,
    pub(crate) defined: &'a mut Vec<Undo>,
    pub(crate) stated: &'a mut Vec<Code>,
    pub(crate) locations: &'a mut Vec<NamedLocation>,
    pub(crate) totals: TraceTotals,
    /// Whether a location event was seen.
    pub(crate) located: bool,
}

/// The most harmless defects reported for one packet.
const MAX_HARMLESS: usize = 16;

impl<'a> PacketContext<'a> {
    fn input(&self, at: usize) -> Cursor<'a> {
        Cursor::new(self.bytes.get(at..self.size).unwrap_or(&[]))
    }

    fn note(&mut self, at: usize, defect: Defect) {
        if self.harmless.len() < MAX_HARMLESS {
            self.harmless.push(Fault { remaining: self.size.saturating_sub(at), defect });
        }
    }

    /// An event that begins at `at` and is no promotion, no collection and no
    /// short allocation with a small prefix.
    #[inline(never)]
    pub(crate) fn other_event(&mut self, code: u8, at: usize) -> Result<OtherEvent, Defect> {
        if self.size - at < SMALLEST_EVENT {
            return Err(Defect::EventOverrun);
        }
        match code {
            code::FIRST_SHORT..=code::LAST_SHORT | code::ALLOC => self.allocation(code, at),
            code::LOCATION => self.location(at + 4).map(OtherEvent::Location),
            code::TRACE_INFO => Err(Defect::TraceInfoAgain),
            code => Err(Defect::EventCode { code }),
        }
    }

    /// Makes room for the steps of the entries at `at`.
    #[cold]
    #[inline(never)]
    pub(crate) fn make_room(
        &self,
        new: &mut NewFrames,
        at: usize,
        entries: u16,
    ) -> Result<(), Defect> {
        let frames = self.bytes.get(at..).and_then(|bytes| entries_frames(bytes, entries));
        new.grow(frames.ok_or(Defect::EventOverrun)?)
            .map_err(|fault| self.entry_defect(fault, new.limit, at, entries))
    }

    /// Follows the entries at `at` after a loss; returns their end.
    #[cold]
    #[inline(never)]
    pub(crate) fn walk_after_loss(
        &mut self,
        known: &mut KnownSlots,
        cache: &mut Cache,
        new: &mut NewFrames,
        at: usize,
        entries: u16,
    ) -> Result<usize, Defect> {
        let mut end = at;
        match known.walk(cache, self.bytes, &mut end, entries, new, self.stated) {
            Ok(()) => Ok(end),
            Err(fault) => Err(self.entry_defect(fault, new.limit, at, entries)),
        }
    }

    /// The code of the miss at `at`.
    #[inline(never)]
    pub(crate) fn miss(&mut self, at: usize) -> Code {
        let code = miss_code(self.bytes, at).unwrap_or(0);
        self.stated.push(code);
        code
    }

    /// The defect of an event at `at` whose time is impossible.
    #[cold]
    #[inline(never)]
    pub(crate) fn time_defect(&self, at: usize, event: u32, clock: Clock) -> Defect {
        let time = event_time(event, self.header.begin);
        if self.size - at < SMALLEST_EVENT {
            Defect::EventOverrun
        } else if time > self.header.end {
            Defect::EventTime { time }
        } else {
            Defect::TimeBackwards { time, after: clock.now(self.header) }
        }
    }

    /// A number at `at`, and its end.
    #[cold]
    #[inline(never)]
    pub(crate) fn vint(&self, at: usize) -> Result<(i64, usize), Defect> {
        let mut input = self.input(at);
        let value = input.vint().ok_or(Defect::EventOverrun)?;
        Ok((value, self.size - input.remaining()))
    }

    /// A promotion or collection of a block whose id this domain has not reached:
    /// one of another domain, adopted when that ended. Other readers accept this
    /// of collections only.
    #[cold]
    #[inline(never)]
    pub(crate) fn object_ahead(
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
    fn allocation(&mut self, code: u8, at: usize) -> Result<OtherEvent, Defect> {
        let mut input = self.input(at + 4);
        if code == code::ALLOC {
            let start = input.remaining();
            let long = long_block(&mut input)?;
            self.longs.push(long);
            self.totals.allocation_bytes += (start - input.remaining()) as u64;
        }
        let prefix = input.vint().ok_or(Defect::EventOverrun)?;
        let entries = if code == code::ALLOC { input.u16() } else { input.u8().map(u16::from) };
        let entries = entries.ok_or(Defect::EventOverrun)?;
        // No stack has four thousand million frames.
        let too_deep = Defect::CommonPrefix { prefix, depth: u64::from(u32::MAX) };
        let prefix = u32::try_from(prefix).map_err(|_| too_deep)?;
        Ok(OtherEvent::Allocation { prefix, entries, at: self.size - input.remaining() })
    }

    /// The position of the event with the packet's `frame`th new frame.
    #[cold]
    #[inline(never)]
    pub(crate) fn event_of_frame(&mut self, records: &[Record], frame: usize) -> usize {
        let (mut at, mut frames) = (0, 0);
        for record in records {
            let code = record.code();
            let end = match code {
                code::COLLECT | code::PROMOTE => self.vint(at + 4).map(|(_, end)| end).ok(),
                _ => {
                    frames += record.value as usize;
                    match self.allocation(code, at) {
                        Ok(OtherEvent::Allocation { entries, at, .. }) => {
                            self.entries_size(at, entries).map(|size| at + size)
                        }
                        _ => None,
                    }
                }
            };
            match end {
                Some(end) if frames <= frame => at = end,
                _ => break,
            }
        }
        at
    }

    /// The size of the entries at `at`, if they end within the packet.
    fn entries_size(&self, at: usize, entries: u16) -> Option<usize> {
        let size = entries_size(self.bytes.get(at..)?, entries)?;
        (at + size <= self.size).then_some(size)
    }

    /// The defect of faulty entries. That they reach beyond the packet takes
    /// precedence.
    fn entry_defect(&self, fault: EntryFault, limit: usize, at: usize, entries: u16) -> Defect {
        match fault {
            EntryFault::TooMany if self.entries_size(at, entries).is_some() => {
                Defect::TooDeep { limit }
            }
            _ => Defect::EventOverrun,
        }
    }

    /// Checks that the codes which an allocation writes out were defined before.
    #[inline(never)]
    pub(crate) fn check_stated(&mut self, at: usize) -> Result<(), Defect> {
        let mut stated = std::mem::take(self.stated);
        let checked = stated.drain(..).try_for_each(|code| self.check_code(at, code));
        *self.stated = stated;
        checked
    }

    fn check_code(&mut self, at: usize, code: Code) -> Result<(), Defect> {
        if !is_code(code) {
            return Err(Defect::CodeRange { code });
        }
        if !self.table.contains_next(code) {
            self.note(at, Defect::CodeUnknown { code });
        }
        Ok(())
    }

    /// A location event whose body begins at `at`; returns its end.
    fn location(&mut self, at: usize) -> Result<usize, Defect> {
        self.located = true;
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
        self.totals.locations += 1;
        self.totals.location_bytes += (4 + end - at) as u64;
        Ok(end)
    }
}

fn long_block(input: &mut Cursor<'_>) -> Result<Long, Defect> {
    let length = input.vint().ok_or(Defect::EventOverrun)?;
    let samples = input.vint().ok_or(Defect::EventOverrun)?;
    let source = input.u8().ok_or(Defect::EventOverrun)?;
    if !(0..=MAX_NUMBER as i64).contains(&length) {
        return Err(Defect::Length { length });
    }
    if !(1..=length + 1).contains(&samples) {
        return Err(Defect::Samples { samples });
    }
    let source = match source {
        0 => Source::Minor,
        1 => Source::Major,
        2 => Source::External,
        source => return Err(Defect::Source { source }),
    };
    Ok(Long { length: length as u64, samples: samples as u64, source })
}
