//! The reader: packet after packet, event after event.

use std::io::Read;

use crate::input::{Input, MAX_FILL, Stream};
use crate::memtrace::decode::batch::{Batch, Fault};
use crate::memtrace::decode::body::padded_body;
use crate::memtrace::decode::domain::{Domain, Domains, Lost};
use crate::memtrace::decode::frames::FrameBudget;
use crate::memtrace::decode::ids::UsedIds;
use crate::memtrace::decode::resync::{Landmarks, Skip};
use crate::memtrace::decode::tally::Tally;
use crate::memtrace::defect::Defect;
use crate::memtrace::header::{Completion, Header, MAX_HEADER, Version};
use crate::memtrace::rules::{IDS_PER_BLOCK, MAX_PACKET};
use crate::model::event::{Event, EventKind};
use crate::model::{
    CutShort, EventSource, Limits, Located, LocationTable, Losses, Mode, ReadError, TraceInfo,
};

const _: () = assert!(MAX_PACKET + MAX_HEADER <= MAX_FILL);

/// Reads a trace event by event.
pub struct Reader<I> {
    pub(crate) input: I,
    pub(crate) mode: Mode,
    pub(crate) info: TraceInfo,
    pub(crate) landmarks: Landmarks,
    pub(crate) table: LocationTable,
    pub(crate) domains: Domains,
    pub(crate) used_ids: UsedIds,
    pub(crate) budget: FrameBudget,
    pub(crate) limits: Limits,
    pub(crate) batch: Batch,
    /// A copy of the last packet, with padding.
    pub(crate) last_packet: Vec<u8>,
    /// Byte offset and number of the next packet.
    pub(crate) offset: u64,
    pub(crate) packet: u64,
    /// How often packets of unknown domains were lost. Each domain, including
    /// those that appear later, loses what it knows at its next packet.
    pub(crate) losses_of_all: u64,
    /// A packet contained locations and other events, which no known writer does.
    pub(crate) mixes: bool,
    /// Read this domain's packets only.
    pub(crate) only: Option<u16>,
    /// Read no packet from this offset on.
    pub(crate) until: u64,
    /// What is to be skipped before the next packet.
    pub(crate) skip: Option<Skip>,
    /// Microseconds from the trace's start to the latest end of a packet.
    covered: u64,
    pub(crate) ended: bool,
    pub(crate) tally: Tally,
    pub(crate) losses: Losses,
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
    /// Reads the trace info. Without it the rest cannot be interpreted, so a defect
    /// here is an error in lenient mode too.
    pub fn open(mut input: I, mode: Mode, limits: Limits) -> Result<Self, ReadError> {
        let first = FirstPacket::read(&mut input)?;
        Ok(Reader::after(first, input, mode, limits))
    }

    /// A reader of what follows the first packet, which is still to be consumed.
    pub(crate) fn after(first: FirstPacket, mut input: I, mode: Mode, limits: Limits) -> Self {
        let FirstPacket { header, info } = first;
        let head = header.version.header_len();
        input.consume(header.size);
        Reader {
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
            offset: header.size as u64,
            packet: 1,
            losses_of_all: 0,
            mixes: false,
            only: None,
            until: u64::MAX,
            skip: None,
            covered: 0,
            ended: false,
            tally: Tally {
                packets: 1,
                header_bytes: head as u64,
                info_bytes: (header.size - head) as u64,
                ..Tally::default()
            },
            losses: Losses {
                cut_short: header.completion.cut_reason().map(|reason| {
                    // So far it covers nothing but the start.
                    CutShort { reason, until: 0 }
                }),
                ..Losses::default()
            },
            info,
        }
    }

    /// Takes what the first packet says now about the trace's completion: its writer
    /// changes that after the reader has read it.
    pub(crate) fn set_completion(&mut self, completion: Completion) {
        let reason = completion.cut_reason();
        self.losses.cut_short = reason.map(|reason| CutShort { reason, until: self.covered });
    }

    /// What the trace says about itself.
    pub fn info(&self) -> &TraceInfo {
        &self.info
    }

    /// The format's version.
    pub fn version(&self) -> Version {
        self.landmarks.version
    }

    /// The names and locations read so far. They cover every event returned so
    /// far.
    pub fn locations(&self) -> &LocationTable {
        &self.table
    }

    /// Consumes the reader and returns its names and locations.
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

    /// The number of bytes of the file that were processed.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The next event in the order of the file, or `None` at its end. While the input
    /// [may grow](Input::may_grow), `None` means that the next packet is not there yet, and
    /// a later call may return an event.
    #[inline(always)]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        Ok(self.next_located()?.map(|(event, _)| event))
    }

    /// The next event with the locations read so far.
    #[inline(always)]
    pub fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.return_next().map(|(event, table, _)| (event, table)))
    }

    /// The next event with the locations and the ids that the packets read so far use.
    pub(crate) fn next_with_ids(
        &mut self,
    ) -> Result<Option<(Event<'_>, &LocationTable, &UsedIds)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.return_next())
    }

    /// Time of the next event, and whether it is an allocation.
    pub(crate) fn peek(&mut self) -> Result<Option<(u64, bool)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.batch.peek())
    }

    /// Decodes packets until one has events; false at the end, and where more is to be
    /// written.
    #[inline(never)]
    fn next_batch(&mut self) -> Result<bool, ReadError> {
        while self.batch.is_drained() {
            if self.ended || !self.next_packet()? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether there are fewer bytes than `want`, but more may be written.
    pub(crate) fn lacks(&self, want: usize) -> bool {
        self.input.visible().len() < want && self.input.may_grow()
    }

    /// The id of the next allocation in the current packet.
    pub fn next_id(&self) -> u64 {
        self.batch.next_id()
    }

    #[inline(always)]
    fn return_next(&mut self) -> Option<(Event<'_>, &LocationTable, &UsedIds)> {
        let Domain { number, stack, .. } = &mut self.domains.current;
        let after_loss = stack.is_after_loss();
        let (time, kind) = self.batch.next(stack, &mut self.budget)?;
        if after_loss
            && let EventKind::Alloc(allocation) = kind
            && allocation.backtrace.is_partial()
        {
            self.losses.partial_backtraces += 1;
        }
        Some((Event { time, domain: *number, kind }, &self.table, &self.used_ids))
    }

    /// Decodes the next packet into the batch, which stays empty if the packet has
    /// no events, is of another process or is skipped. Returns false, and changes nothing,
    /// if the packet is not all written yet.
    fn next_packet(&mut self) -> Result<bool, ReadError> {
        self.batch.clear();
        self.note_limits()?;
        if let Some(skip) = self.skip {
            return self.pass_over(skip);
        }
        if self.offset >= self.until {
            self.end();
            return Ok(true);
        }
        self.input.fill(MAX_HEADER)?;
        let have = self.input.visible().len();
        match Header::parse(self.input.visible()) {
            None if self.input.may_grow() => return Ok(false),
            None if have == 0 => self.end(),
            None => self.end_inside_packet(Defect::Truncated { have, need: 0 }, 0)?,
            Some(Err(defect)) => self.pass_over_damage(defect)?,
            Some(Ok(header)) if header.version != self.landmarks.version => {
                let found = header.version.number();
                self.pass_over_damage(Defect::VersionChange { found })?;
            }
            Some(Ok(header)) => {
                self.input.fill(header.size)?;
                if self.lacks(header.size) {
                    return Ok(false);
                }
                self.whole_packet(&header)?;
            }
        }
        Ok(true)
    }

    /// A packet with a readable header. As much as there is of it is visible.
    fn whole_packet(&mut self, header: &Header) -> Result<(), ReadError> {
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
        self.covered = self.covered.max(header.end.saturating_sub(self.info.start_time));
        if let Some(cut) = &mut self.losses.cut_short {
            cut.until = self.covered;
        }
        if self.only.is_some_and(|number| number != header.domain) {
            self.advance(header.size);
            return Ok(());
        }
        if !self.domains.select(header.domain) {
            self.report(self.offset, Defect::TooManyDomains { limit: self.limits.domains })?;
            self.pass_over_packet(header);
            return Ok(());
        }
        self.catch_up();
        match self.check_in_sequence(header)? {
            Some(missing) => self.decode_packet(header, missing)?,
            None => self.leave_out(header),
        }
        Ok(())
    }

    /// Decodes a packet before which `missing` allocations are missing.
    fn decode_packet(&mut self, header: &Header, missing: u64) -> Result<(), ReadError> {
        let domain = &mut self.domains.current;
        let body = padded_body(self.input.visible(), header, &mut self.last_packet);
        let Some(body) = body else { return Ok(()) };
        let outcome = self.batch.decode(header, body, domain, &mut self.table);
        let end = self.offset + header.size as u64;
        match outcome {
            Ok(tally) => {
                domain.next_id = header.next_id;
                domain.gap_expected = false;
                domain.left_out = 0;
                self.losses.allocations += missing;
                self.used_ids.add(header.first_id, header.next_id);
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
                self.leave_out(header);
                Ok(())
            }
        }
    }

    fn count(&mut self, header: &Header, tally: &Tally) {
        self.mixes |= tally.locations > 0 && tally.events() > 0;
        self.tally.add(tally);
        self.tally.packets += 1;
        self.tally.header_bytes += header.version.header_len() as u64;
    }

    /// Checks a packet's header against the packets before it. Returns the number
    /// of allocations missing between them, or `None` if the packet is unusable.
    fn check_in_sequence(&mut self, header: &Header) -> Result<Option<u64>, ReadError> {
        let at = self.offset;
        let Domain { last_time: after, next_id: expected, gap_expected, .. } = self.domains.current;
        if header.begin < after {
            self.report(at, Defect::TimeBackwards { time: header.begin, after })?;
        }
        let found = header.first_id;
        if found < expected || self.used_ids.overlap(found, header.next_id) {
            self.report(at, Defect::IdAgain { first: found })?;
            return Ok(None);
        }
        let missing = missing_ids(header.version, expected, found);
        if missing > 0 && !gap_expected {
            self.report(at, Defect::IdGap { expected, found })?;
            self.lose(Lost::Everything);
        }
        self.check_cache(header)?;
        Ok(Some(missing))
    }

    fn check_cache(&mut self, header: &Header) -> Result<(), ReadError> {
        let Some(check) = header.cache_check else { return Ok(()) };
        if !self.domains.current.stack.check(check) {
            self.report(self.offset, Defect::CacheCheck { slot: check.slot })?;
            self.lose(Lost::Stack);
            // After the loss the check makes the slot's content known.
            self.domains.current.stack.check(check);
        }
        Ok(())
    }
}

/// The first packet of a trace, which holds the trace info.
pub(crate) struct FirstPacket {
    header: Header,
    info: TraceInfo,
}

impl FirstPacket {
    /// Reads the packet without consuming it.
    pub(crate) fn read(input: &mut impl Input) -> Result<FirstPacket, ReadError> {
        let at_start = |offset, defect: Defect| {
            ReadError::Defect(Located { packet: 0, offset, defect: defect.into() })
        };
        input.fill(MAX_HEADER)?;
        let have = input.visible().len();
        let header = match Header::parse(input.visible()) {
            None if have == 0 => return Err(at_start(0, Defect::Empty)),
            None => return Err(at_start(0, Defect::Truncated { have, need: 0 })),
            Some(parsed) => parsed.map_err(|defect| at_start(0, defect))?,
        };
        let head = header.version.header_len();
        input.fill(header.size)?;
        let (bytes, need) = (input.visible(), header.size);
        let body = bytes
            .get(head..need)
            .ok_or_else(|| at_start(0, Defect::Truncated { have: bytes.len(), need }))?;
        let info =
            TraceInfo::parse(&header, body).map_err(|defect| at_start(head as u64, defect))?;
        Ok(FirstPacket { header, info })
    }
}

impl<I: Input> EventSource for Reader<I> {
    fn info(&self) -> &TraceInfo {
        self.info()
    }

    fn locations(&self) -> &LocationTable {
        self.locations()
    }

    fn losses(&self) -> &Losses {
        self.losses()
    }

    #[inline(always)]
    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        self.next_located()
    }

    fn next_id(&self) -> Option<u64> {
        Some(self.next_id())
    }
}

/// The least number of ids missing between a domain's packets. In version 3 a
/// domain takes ids in blocks and uses up each before the next; blocks of other
/// domains lie between.
fn missing_ids(version: Version, expected: u64, found: u64) -> u64 {
    let (of_last, of_next) = (expected % IDS_PER_BLOCK, found % IDS_PER_BLOCK);
    let same_block = expected - of_last == found - of_next;
    match version {
        Version::V1 | Version::V2 => found - expected,
        Version::V3 if same_block => found - expected,
        Version::V3 if of_last == 0 => of_next,
        Version::V3 => IDS_PER_BLOCK - of_last + of_next,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_ids_are_counted_within_blocks() {
        for version in [Version::V1, Version::V2] {
            assert_eq!(missing_ids(version, 7, 7), 0);
            assert_eq!(missing_ids(version, 7, 20_000), 19_993);
        }
        for (expected, found, missing) in [
            (0, 0, 0),
            (0, 30_000, 0),
            (0, 30_001, 1),
            (10_000, 10_000, 0),
            (10_000, 50_000, 0),
            (10_000, 50_007, 7),
            (9_990, 9_990, 0),
            (9_990, 9_995, 5),
            (9_990, 10_000, 10),
            (9_990, 40_002, 12),
        ] {
            assert_eq!(missing_ids(Version::V3, expected, found), missing, "{expected} {found}");
        }
    }
}
