//! The decoding of one packet: the decoder's hot loop.
//!
//! What the loop needs at every event is in local variables, so that it has
//! registers; what few events need is in [`PacketContext`].

use crate::memtrace::cache::Cache;
use crate::memtrace::decode::batch::{Batch, Fault, Record, Records};
use crate::memtrace::decode::body::{Body, MAX_SMALL, entry_at, word_at};
use crate::memtrace::decode::chain::Chain;
use crate::memtrace::decode::clock::Clock;
use crate::memtrace::decode::context::{OtherEvent, PacketContext};
use crate::memtrace::decode::domain::{CodedDepth, Domain};
use crate::memtrace::decode::entry::{ENTRY_FRAMES, Entry};
use crate::memtrace::decode::frames::NewFrames;
use crate::memtrace::decode::known_slots::KnownSlots;
use crate::memtrace::decode::step::{FIRST, NAMED};
use crate::memtrace::defect::Defect;
use crate::memtrace::event::event_code;
use crate::memtrace::header::Header;
use crate::memtrace::rules::{MAX_ENTRY, MAX_EVENT_BODY, SMALLEST_EVENT, code};
use crate::model::LocationTable;
use crate::model::TraceTotals;

impl Batch {
    /// Decodes a packet's body, which `bytes` begins with. After a fault the
    /// domain's names and stack are out of step with the writer; the table is
    /// as it was.
    pub(crate) fn decode(
        &mut self,
        header: &Header,
        bytes: &Body,
        domain: &mut Domain,
        table: &mut LocationTable,
    ) -> Result<TraceTotals, Fault> {
        self.start(header);
        let size = header.size - header.version.header_len();
        let Batch { records, longs, new_frames, harmless, defined, stated, locations, .. } = self;
        let mut context = PacketContext {
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
            totals: TraceTotals::default(),
            located: false,
        };
        let mut events = EventLoop::new(header, bytes, size, domain.depth);
        let (cache, known) = domain.stack.parts();
        let after_loss = known.is_some();
        let outcome = events.run(cache, known, records, new_frames, &mut context);
        let EventLoop { start, before, frames, mut chain, next_id: found, depth, .. } = events;
        // All frames, or those of the events before a fault.
        let sound = if outcome.is_ok() { frames } else { before };
        if !after_loss {
            chain.finish(cache, new_frames, sound);
        }
        let empty = chain.met_empty_slot().then(|| new_frames.first_zero(sound)).flatten();
        new_frames.len = frames;
        let stated = header.next_id;
        let outcome = match (outcome, empty) {
            (_, Some(frame)) => {
                let remaining = size - context.event_of_frame(&records[..], frame);
                Err(Fault { remaining, defect: Defect::EmptySlot })
            }
            (Ok(_), _) if stated != found => {
                Err(Fault { remaining: 0, defect: Defect::AllocationCount { stated, found } })
            }
            (Ok(count), _) => Ok(count),
            (Err(defect), _) => Err(Fault { remaining: size - start, defect }),
        };
        let PacketContext { mut totals, located, .. } = context;
        match outcome {
            Ok(count) => {
                self.count = count;
                domain.depth = depth;
                events.totals(&mut totals, header);
                Ok(totals)
            }
            Err(fault) => {
                for undo in self.defined.drain(..).rev() {
                    table.undo(undo);
                }
                self.clear();
                self.located = located;
                Err(fault)
            }
        }
    }
}

/// The loop's state. The loops for the common events (`common_events`) copy what they
/// need of it into registers.
pub(crate) struct EventLoop<'a> {
    pub(crate) bytes: &'a Body,
    /// The size of the packet's body, and the position in it.
    pub(crate) size: usize,
    pub(crate) at: usize,
    /// The positions of the current event and of its entries.
    start: usize,
    entries_at: usize,
    pub(crate) clock: Clock,
    pub(crate) next_id: u64,
    pub(crate) depth: CodedDepth,
    /// The number of promotions, their bytes, and the bytes of promotions and
    /// collections together.
    pub(crate) promoted: u64,
    pub(crate) promotion_bytes: usize,
    pub(crate) object_bytes: usize,
    /// New frames up to the current position, and up to the current event.
    pub(crate) frames: usize,
    before: usize,
    pub(crate) chain: Chain,
    /// The number of records.
    pub(crate) count: usize,
}

impl<'a> EventLoop<'a> {
    fn new(header: &Header, bytes: &'a Body, size: usize, depth: CodedDepth) -> Self {
        EventLoop {
            bytes,
            size,
            at: 0,
            start: 0,
            entries_at: 0,
            clock: Clock::new(header),
            next_id: header.first_id,
            depth,
            promoted: 0,
            promotion_bytes: 0,
            object_bytes: 0,
            frames: 0,
            before: 0,
            chain: Chain::new(),
            count: 0,
        }
    }

    /// Decodes events into `records` and `new`; returns their number.
    #[inline(always)]
    fn run(
        &mut self,
        cache: &mut Cache,
        mut known: Option<&mut KnownSlots>,
        records: &mut Records,
        new: &mut NewFrames,
        context: &mut PacketContext<'_>,
    ) -> Result<usize, Defect> {
        while self.at < self.size {
            if known.is_none() && !self.depth.open && context.header.allocates() {
                self.allocations(cache, new, records);
            }
            self.objects(records);
            if self.at >= self.size {
                continue;
            }
            self.start = self.at;
            self.before = self.frames;
            let word = word_at(self.bytes, self.at).ok_or(Defect::EventOverrun)?;
            let event = word as u32;
            if !self.clock.reach(event) {
                return Err(context.time_defect(self.start, event, self.clock));
            }
            let record = match event_code(event) {
                code::COLLECT | code::PROMOTE => self.object(word, context)?,
                _ => match self.allocation(word, context)? {
                    Some((prefix, entries)) => {
                        match &mut known {
                            None => self.entries(entries, cache, new, context)?,
                            Some(known) => {
                                new.len = self.frames;
                                self.at =
                                    context.walk_after_loss(known, cache, new, self.at, entries)?;
                                self.frames = new.len;
                            }
                        }
                        self.end_allocation(event, prefix, known.is_some(), context)?
                    }
                    None => continue,
                },
            };
            records[self.count % records.len()] = record;
            self.count += 1;
        }
        Ok(self.count)
    }

    /// A promotion or collection.
    #[inline(always)]
    fn object(&mut self, word: u64, context: &mut PacketContext<'_>) -> Result<Record, Defect> {
        let (event, fifth) = (word as u32, (word >> 32) as u8);
        let promotes = event_code(event) == code::PROMOTE;
        let mut delta = i64::from(fifth);
        self.at += SMALLEST_EVENT;
        if self.at > self.size {
            return Err(Defect::EventOverrun);
        }
        if u64::from(fifth) > MAX_SMALL {
            (delta, self.at) = context.vint(self.at - 1)?;
        }
        let id = self.next_id.wrapping_sub(1).wrapping_sub(delta as u64);
        if id >= self.next_id {
            context.object_ahead(delta, id, promotes, self.start)?;
        }
        let bytes = self.at - self.start;
        self.object_bytes += bytes;
        if promotes {
            self.promoted += 1;
            self.promotion_bytes += bytes;
        }
        Ok(Record::new(event, 0, id))
    }

    /// An allocation up to its entries: common prefix and number of entries.
    /// `None` for a location, which is complete.
    #[inline(always)]
    fn allocation(
        &mut self,
        word: u64,
        context: &mut PacketContext<'_>,
    ) -> Result<Option<(u32, u16)>, Defect> {
        let (code, fifth, sixth) =
            (event_code(word as u32), (word >> 32) as u8, (word >> 40) as u8);
        let (mut prefix, mut entries) = (u32::from(fifth), u16::from(sixth));
        self.at += 6;
        if !matches!(code, code::FIRST_SHORT..=code::LAST_SHORT) || u64::from(fifth) > MAX_SMALL {
            match context.other_event(code, self.start)? {
                OtherEvent::Location(end) => {
                    self.at = end;
                    return Ok(None);
                }
                OtherEvent::Allocation { prefix: deep, entries: many, at } => {
                    (prefix, entries, self.at) = (deep, many, at);
                }
            }
        }
        let CodedDepth { frames: depth, open } = self.depth;
        if u64::from(prefix) > depth && !open {
            return Err(Defect::CommonPrefix { prefix: i64::from(prefix), depth });
        }
        if !context.header.allocates() {
            // Before the cache changes: skipping such a packet loses no stack.
            let (stated, found) = (context.header.next_id, self.next_id + 1);
            return Err(Defect::AllocationCount { stated, found });
        }
        self.next_id += 1;
        self.entries_at = self.at;
        Ok(Some((prefix, entries)))
    }

    /// Turns an allocation's entries into steps.
    #[inline(always)]
    fn entries(
        &mut self,
        entries: u16,
        cache: &mut Cache,
        new: &mut NewFrames,
        context: &mut PacketContext<'_>,
    ) -> Result<(), Defect> {
        let most = usize::from(entries) * ENTRY_FRAMES;
        if new.steps.len() < self.frames + most {
            new.len = self.frames;
            context.make_room(new, self.at, entries)?;
        }
        let (mut left, mut marks) = (entries, FIRST);
        loop {
            let steps = &mut new.steps[..];
            let mut entry = Entry::default();
            while left > 0 {
                entry = entry_at(self.bytes, self.at).ok_or(Defect::EventOverrun)?;
                if entry.is_miss() {
                    break;
                }
                let step = steps.get_mut(self.frames).ok_or(Defect::EventOverrun)?;
                *step = entry.step(marks);
                self.frames += 1 + entry.predicted();
                self.at += entry.hit_size();
                marks = NAMED;
                left -= 1;
            }
            if left == 0 {
                return Ok(());
            }
            let code = context.miss(self.at);
            self.chain.miss(cache, new, self.frames, entry.step(marks), code);
            self.frames += 1;
            self.at += MAX_ENTRY;
            marks = NAMED;
            left -= 1;
        }
    }

    /// Checks an allocation whose entries end at the current position.
    #[inline(always)]
    fn end_allocation(
        &mut self,
        event: u32,
        prefix: u32,
        after_loss: bool,
        context: &mut PacketContext<'_>,
    ) -> Result<Record, Defect> {
        if self.at > self.size {
            return Err(Defect::EventOverrun);
        }
        if !context.stated.is_empty() {
            context.check_stated(self.start)?;
        }
        let bytes = self.at - self.entries_at;
        let new = (self.frames - self.before) as u64;
        if u64::from(prefix) <= self.depth.frames || after_loss {
            // The writer stops here, whether frames are left or not.
            let open = bytes > MAX_EVENT_BODY - MAX_ENTRY;
            self.depth = CodedDepth { frames: u64::from(prefix) + new, open };
        }
        if bytes > MAX_EVENT_BODY {
            return Err(Defect::BacktraceSize { bytes });
        }
        Ok(Record::new(event, prefix, new))
    }

    /// Adds the counts of the loop to those of the context.
    fn totals(&self, totals: &mut TraceTotals, header: &Header) {
        totals.allocations = header.next_id - header.first_id;
        totals.promotions = self.promoted;
        totals.collections = self.count as u64 - totals.allocations - totals.promotions;
        totals.promotion_bytes = self.promotion_bytes as u64;
        totals.collection_bytes = (self.object_bytes - self.promotion_bytes) as u64;
        totals.allocation_bytes += 4 * totals.allocations;
        totals.backtrace_bytes = self.size as u64 - totals.bytes_but_backtraces();
    }
}
