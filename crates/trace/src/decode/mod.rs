//! Reading traces: packet by packet, in bounded memory, trusting nothing.
//!
//! [`Reader`] hands out events in the order of the file. Each packet is read,
//! checked and decoded whole ([`batch`]) before its first event is handed out.
//! What it keeps is one packet, the tables of names and locations, and for
//! each domain a backtrace cache of 160 KiB and the last backtrace.
//!
//! In strict mode the first defect ends the reading. In lenient mode a damaged
//! packet is left out; what depended on it is in doubt ([`doubt`]) and becomes
//! known again as the file repeats it. Where the next packet is not where the
//! damaged one says it is, the reader looks for the next plausible header
//! ([`resync`]).

mod batch;
mod domain;
mod doubt;
mod entry;
mod ids;
mod input;
mod merge;
mod names;
mod packet;
mod resync;
mod stack;
mod tally;

use std::io::Read;

use crate::decode::batch::{Batch, Fault};
use crate::decode::domain::{Domain, Domains};
use crate::decode::ids::UsedIds;
use crate::decode::packet::PADDING;
use crate::decode::resync::Landmarks;
use crate::decode::stack::FrameBudget;
use crate::defect::{Defect, Located, ReadError};
use crate::event::{Event, Happening, event_code};
use crate::header::{Header, MAX_HEADER, Version};
use crate::info::TraceInfo;
use crate::location::LocationTable;
use crate::rules::{MAX_PACKET, code};

pub use crate::decode::input::{Input, Stream};
pub use crate::decode::merge::Merged;
pub use crate::decode::tally::{Losses, Tally};

/// What to do about a defect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Stop there.
    Strict,
    /// Leave the packet out, say so in [`Losses`], go on.
    Lenient,
}

/// Bounds on what a trace may make the reader keep.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Frames in the last backtraces of all domains together, 8 bytes each.
    pub frames: usize,
    /// Domains; each takes 160 KiB when it is busy.
    pub domains: usize,
}

impl Default for Limits {
    /// Four million frames, 4,096 domains.
    fn default() -> Self {
        Limits { frames: 4 << 20, domains: 4096 }
    }
}

/// Reads a trace event by event.
pub struct Reader<I> {
    input: I,
    mode: Mode,
    info: TraceInfo,
    landmarks: Landmarks,
    table: LocationTable,
    domains: Domains,
    used_ids: UsedIds,
    budget: FrameBudget,
    limits: Limits,
    batch: Batch,
    /// Room for a packet with nothing behind it.
    last_packet: Vec<u8>,
    /// The place of the batch's domain.
    current: usize,
    /// Byte offset and number of the next packet.
    offset: u64,
    packet: u64,
    /// A packet of unknown domain was lost: a domain that appears later may
    /// have begun in it.
    lost_any: bool,
    /// A packet held locations and other events, which no known writer does.
    mixes: bool,
    /// Read this domain's packets only.
    only: Option<u16>,
    /// Read no packet from this offset on.
    until: u64,
    ended: bool,
    tally: Tally,
    losses: Losses,
}

impl<R: Read> Reader<Stream<R>> {
    /// Reads a trace from a file, a pipe or any other [`Read`].
    pub fn new(read: R, mode: Mode) -> Result<Self, ReadError> {
        Reader::open(Stream::new(read), mode, Limits::default())
    }
}

impl<'a> Reader<&'a [u8]> {
    /// Reads a trace that is in memory, without copying it.
    pub fn from_slice(bytes: &'a [u8], mode: Mode) -> Result<Self, ReadError> {
        Reader::open(bytes, mode, Limits::default())
    }
}

impl<I: Input> Reader<I> {
    /// Reads the trace info. Without it nothing can be said of the rest, so a
    /// defect here ends the reading in lenient mode too.
    pub fn open(mut input: I, mode: Mode, limits: Limits) -> Result<Self, ReadError> {
        let at_start = |offset, defect| ReadError::Defect(Located { packet: 0, offset, defect });
        input.fill(MAX_PACKET)?;
        let bytes = input.visible();
        let header = match Header::parse(bytes) {
            None if bytes.is_empty() => return Err(at_start(0, Defect::Empty)),
            None => return Err(at_start(0, Defect::Truncated { have: bytes.len(), need: 0 })),
            Some(parsed) => parsed.map_err(|defect| at_start(0, defect))?,
        };
        let head = header.version.header_len();
        let body = bytes.get(head..header.size).ok_or_else(|| {
            at_start(0, Defect::Truncated { have: bytes.len(), need: header.size })
        })?;
        let info =
            TraceInfo::parse(&header, body).map_err(|defect| at_start(head as u64, defect))?;
        input.consume(header.size);
        Ok(Reader {
            input,
            mode,
            landmarks: Landmarks { version: header.version, pid: info.pid },
            table: LocationTable::default(),
            domains: Domains::new(limits.domains, info.start_time),
            used_ids: UsedIds::default(),
            budget: FrameBudget::new(limits.frames),
            limits,
            batch: Batch::new(limits.frames),
            last_packet: Vec::new(),
            current: 0,
            offset: header.size as u64,
            packet: 1,
            lost_any: false,
            mixes: false,
            only: None,
            until: u64::MAX,
            ended: false,
            tally: Tally {
                packets: 1,
                header_bytes: head as u64,
                info_bytes: (header.size - head) as u64,
                ..Tally::default()
            },
            losses: Losses::default(),
            info,
        })
    }

    /// What the trace says of itself.
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// The format's version.
    pub fn version(&self) -> Version {
        self.landmarks.version
    }

    /// The names and locations read so far: all that the events handed out so
    /// far refer to.
    pub fn locations(&self) -> &LocationTable {
        &self.table
    }

    /// The same, kept when the reader goes.
    pub fn into_locations(self) -> LocationTable {
        self.table
    }

    /// Counts of the packets read so far.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }

    /// What was wrong so far.
    pub fn losses(&self) -> &Losses {
        &self.losses
    }

    /// The domains that appeared so far, in that order.
    pub fn domains(&self) -> impl Iterator<Item = u16> + '_ {
        self.domains.numbers()
    }

    /// How many bytes of the file are dealt with.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next event in the order of the file, or `None` at its end.
    #[inline(always)]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        Ok(self.next_located()?.map(|(event, _)| event))
    }

    /// The same with the locations read so far, for code that needs both.
    #[inline(always)]
    pub fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.hand_out())
    }

    /// Time of the next event, and whether it is an allocation.
    fn peek(&mut self) -> Result<Option<(u64, bool)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.batch.peek())
    }

    /// Decodes packets until one has events; false at the end.
    #[inline(never)]
    fn next_batch(&mut self) -> Result<bool, ReadError> {
        while self.batch.is_drained() {
            if self.ended {
                return Ok(false);
            }
            self.next_packet()?;
        }
        Ok(true)
    }

    /// The id that the next allocation of the current packet has.
    pub fn next_id(&self) -> u64 {
        self.batch.next_id()
    }

    #[inline(always)]
    fn hand_out(&mut self) -> Option<(Event<'_>, &LocationTable)> {
        let Domain { number, stack, .. } = self.domains.get_mut(self.current)?;
        let doubtful = stack.in_doubt();
        let (time, what) = self.batch.next(stack, &mut self.budget)?;
        if doubtful
            && let Happening::Alloc(allocation) = what
            && allocation.backtrace.is_partial()
        {
            self.losses.partial_backtraces += 1;
        }
        Some((Event { time, domain: *number, what }, &self.table))
    }

    /// Decodes the next packet into the batch, which stays empty where the
    /// packet has no events, is not ours or is left out.
    fn next_packet(&mut self) -> Result<(), ReadError> {
        self.batch.clear();
        self.note_limits()?;
        if self.offset >= self.until {
            self.ended = true;
            return Ok(());
        }
        self.input.fill(MAX_HEADER)?;
        let have = self.input.visible().len();
        match Header::parse(self.input.visible()) {
            None if have == 0 => {
                self.ended = true;
                Ok(())
            }
            None => self.end_inside_packet(Defect::Truncated { have, need: 0 }, 0),
            Some(Err(defect)) => self.pass_over_damage(defect),
            Some(Ok(header)) if header.version != self.landmarks.version => {
                let found = header.version.number();
                self.pass_over_damage(Defect::VersionChange { found })
            }
            Some(Ok(header)) => self.whole_packet(&header),
        }
    }

    /// A packet with a readable header.
    fn whole_packet(&mut self, header: &Header) -> Result<(), ReadError> {
        self.input.fill(header.size + PADDING)?;
        let have = self.input.visible().len();
        if have < header.size {
            let ids = header.stated_allocations().unwrap_or(0);
            return self.end_inside_packet(Defect::Truncated { have, need: header.size }, ids);
        }
        if header.pid != self.landmarks.pid {
            self.losses.foreign_packets += 1;
            self.advance(header.size);
            return Ok(());
        }
        if self.only.is_some_and(|number| number != header.domain) {
            self.advance(header.size);
            return Ok(());
        }
        let Some((place, new)) = self.domains.place(header.domain) else {
            self.report(self.offset, Defect::TooManyDomains { limit: self.limits.domains })?;
            return self.leave_out(header, None);
        };
        if new && self.lost_any {
            self.lose(place, Lost::Everything);
        }
        self.current = place;
        if !self.check_in_sequence(header, place)? {
            return self.leave_out(header, Some(place));
        }
        self.decode_packet(header, place)
    }

    fn decode_packet(&mut self, header: &Header, place: usize) -> Result<(), ReadError> {
        let Some(domain) = self.domains.get_mut(place) else { return Ok(()) };
        let packet = padded(self.input.visible(), header.size, &mut self.last_packet);
        let bytes = packet.get(header.version.header_len()..).unwrap_or(&[]);
        let outcome = self.batch.decode(header, bytes, domain, &mut self.table);
        let end = self.offset + header.size as u64;
        match outcome {
            Ok(tally) => {
                domain.next_id = header.next_id;
                domain.last_time = domain.last_time.max(header.end);
                self.count(header, &tally);
                for at in 0..self.batch.harmless.len() {
                    let Fault { remaining, defect } = self.batch.harmless[at];
                    self.report(end - remaining as u64, defect)?;
                }
                self.advance(header.size);
                Ok(())
            }
            Err(Fault { remaining, defect }) => {
                self.report(end - remaining as u64, defect)?;
                self.leave_out(header, Some(place))
            }
        }
    }

    fn count(&mut self, header: &Header, tally: &Tally) {
        self.mixes |= tally.locations > 0 && tally.events() > 0;
        self.tally.add(tally);
        self.tally.packets += 1;
        self.tally.header_bytes += header.version.header_len() as u64;
    }

    /// Checks what a packet's header says against the packets before it.
    /// False if the packet cannot be used.
    fn check_in_sequence(&mut self, header: &Header, place: usize) -> Result<bool, ReadError> {
        let at = self.offset;
        let Some(domain) = self.domains.get_mut(place) else { return Ok(false) };
        let &mut Domain { last_time: after, next_id: expected, gap_expected, .. } = domain;
        if header.begin < after {
            self.report(at, Defect::TimeBackwards { time: header.begin, after })?;
        }
        let found = header.first_id;
        if found < expected || !self.used_ids.add(found, header.next_id) {
            self.report(at, Defect::IdAgain { first: found })?;
            return Ok(false);
        }
        // Version 3 takes ids in blocks, between which others' lie.
        if found > expected && header.version < Version::V3 {
            if !gap_expected {
                self.report(at, Defect::IdGap { expected, found })?;
                self.lose(place, Lost::Everything);
            }
            self.losses.allocations += found - expected;
        }
        self.check_cache(header, place)?;
        if let Some(domain) = self.domains.get_mut(place) {
            domain.gap_expected = false;
        }
        Ok(true)
    }

    fn check_cache(&mut self, header: &Header, place: usize) -> Result<(), ReadError> {
        let Some(check) = header.cache_check else { return Ok(()) };
        let holds = |reader: &mut Self| {
            reader.domains.get_mut(place).is_none_or(|domain| domain.stack.check(check))
        };
        if !holds(self) {
            self.report(self.offset, Defect::CacheCheck { slot: check.slot })?;
            self.lose(place, Lost::Stack);
            // Now it teaches the slot's content instead.
            holds(self);
        }
        Ok(())
    }

    /// Frames that the limits made us leave out are a defect of the trace as
    /// read, once.
    fn note_limits(&mut self) -> Result<(), ReadError> {
        if std::mem::take(&mut self.budget.exceeded) {
            self.report(self.offset, Defect::TooDeep { limit: self.limits.frames })?;
        }
        Ok(())
    }

    /// The end in strict mode, a notice in lenient mode.
    fn report(&mut self, offset: u64, defect: Defect) -> Result<(), ReadError> {
        let located = Located { packet: self.packet, offset, defect };
        match self.mode {
            Mode::Strict => {
                self.batch.clear();
                self.ended = true;
                Err(ReadError::Defect(located))
            }
            Mode::Lenient => {
                self.losses.note(located);
                Ok(())
            }
        }
    }

    /// Goes on behind the current packet.
    fn advance(&mut self, size: usize) {
        self.input.consume(size);
        self.offset += size as u64;
        self.packet += 1;
    }

    /// The file ends before the packet does, unless the packet's size is
    /// wrong and another one follows.
    fn end_inside_packet(&mut self, defect: Defect, allocations: u64) -> Result<(), ReadError> {
        if self.mode == Mode::Lenient && self.landmarks.find(self.input.visible()).is_some() {
            return self.pass_over_damage(Defect::PacketSize { bits: self.stated_bits() });
        }
        self.report(self.offset, defect)?;
        self.losses.allocations += allocations;
        let rest = self.input.visible().len();
        self.losses.bytes += rest as u64;
        self.advance(rest);
        self.ended = true;
        Ok(())
    }

    fn stated_bits(&self) -> u32 {
        let size = self.input.visible().get(4..).and_then(|bytes| bytes.first_chunk());
        size.map_or(0, |&bits| u32::from_le_bytes(bits))
    }

    /// Leaves out a damaged packet and goes on where the next one begins.
    fn leave_out(&mut self, header: &Header, place: Option<usize>) -> Result<(), ReadError> {
        self.batch.clear();
        self.losses.packets += 1;
        if let Some(place) = place {
            self.lose(place, self.lost_with(header));
            self.count_left_out(header, place);
        }
        self.input.fill(header.size + MAX_HEADER)?;
        let rest = self.input.visible().get(header.size..).unwrap_or(&[]);
        if rest.is_empty() || self.landmarks.begin_packet(rest) {
            self.losses.bytes += header.size as u64;
            self.advance(header.size);
            Ok(())
        } else {
            self.seek_packet()
        }
    }

    /// Counts the allocations of a packet that was left out, if its ids go on
    /// where the last packet's ended; else the next packet's ids will tell.
    fn count_left_out(&mut self, header: &Header, place: usize) {
        let Some(domain) = self.domains.get_mut(place) else { return };
        if let Some(count) = header.stated_allocations()
            && (header.first_id == domain.next_id || header.version == Version::V3)
            && header.next_id >= domain.next_id
        {
            self.losses.allocations += count;
            domain.next_id = header.next_id;
        }
    }

    /// What a damaged packet leaves in doubt, by its kind.
    fn lost_with(&self, header: &Header) -> Lost {
        let body = self.input.visible().get(header.version.header_len()..header.size);
        let first = body.and_then(|body| body.first_chunk()).copied().map(u32::from_le_bytes);
        let locations = first.map(event_code) == Some(code::LOCATION);
        let allocates = header.first_id != header.next_id;
        match (locations, allocates) {
            _ if self.mixes => Lost::Everything,
            (true, false) if header.cache_check.is_none() => Lost::Names,
            (false, true) => Lost::Stack,
            _ => Lost::Everything,
        }
    }

    /// Passes over bytes that are no packet of ours.
    fn pass_over_damage(&mut self, defect: Defect) -> Result<(), ReadError> {
        self.report(self.offset, defect)?;
        self.seek_packet()
    }

    /// Moves to the next place where a packet seems to begin. Which domains'
    /// packets were passed over is not known, so all are in doubt.
    fn seek_packet(&mut self) -> Result<(), ReadError> {
        let mut first = true;
        loop {
            self.input.fill(MAX_PACKET)?;
            let bytes = self.input.visible();
            // The search begins behind the packet that led here.
            let here = !first && self.landmarks.begin_packet(bytes);
            let found = if here { Some(0) } else { self.landmarks.find(bytes) };
            let ended = bytes.len() < MAX_PACKET;
            let passed = match found {
                Some(at) => at,
                None if ended => bytes.len(),
                None => bytes.len() - Landmarks::OVERLAP,
            };
            self.input.consume(passed);
            self.offset += passed as u64;
            self.losses.bytes += passed as u64;
            if found.is_some() || ended {
                break;
            }
            first = false;
        }
        self.packet += 1;
        self.lost_any = true;
        for place in 0..self.domains.len() {
            self.lose(place, Lost::Everything);
        }
        Ok(())
    }

    fn lose(&mut self, place: usize, lost: Lost) {
        let Some(domain) = self.domains.get_mut(place) else { return };
        if lost != Lost::Names {
            domain.lose_stack();
        }
        if lost != Lost::Stack {
            domain.names.lose(&mut self.table);
        }
    }
}

/// The bytes of a packet with enough others behind it. Only the last packet of
/// an input needs to be copied for that.
fn padded<'a>(visible: &'a [u8], size: usize, copy: &'a mut Vec<u8>) -> &'a [u8] {
    if visible.len() >= size + PADDING {
        return visible;
    }
    copy.clear();
    copy.extend_from_slice(visible.get(..size).unwrap_or(visible));
    copy.resize(size + PADDING, 0);
    copy
}

/// What a lost packet leaves in doubt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    /// The recent names of a domain.
    Names,
    /// Its backtrace cache and last backtrace.
    Stack,
    /// Both.
    Everything,
}
