//! The reader: its state, and its events one after the other.

use std::io::Read;
use std::ops::ControlFlow;

use crate::input::{Input, Stream};
use crate::memtrace::decode::batch::Batch;
use crate::memtrace::decode::domain::{Domain, Domains};
use crate::memtrace::decode::first_packet::FirstPacket;
use crate::memtrace::decode::frames::FrameBudget;
use crate::memtrace::decode::ids::UsedIds;
use crate::memtrace::decode::resync::{Landmarks, Skip};
use crate::memtrace::header::Version;
use crate::model::event::{Event, EventKind};
use crate::model::{
    Completion, CutShort, EventSource, Limits, LocationTable, Losses, Mode, Place, ReadError,
    TraceFormat, TraceInfo, TraceReader, TraceTotals,
};

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
    pub(crate) covered: u64,
    pub(crate) ended: bool,
    pub(crate) totals: TraceTotals,
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
            totals: TraceTotals {
                packets: 1,
                header_bytes: head as u64,
                info_bytes: (header.size - head) as u64,
                ..TraceTotals::default()
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

    /// The format's version.
    pub fn version(&self) -> Version {
        self.landmarks.version
    }

    /// Consumes the reader and returns its names and locations.
    pub fn into_locations(self) -> LocationTable {
        self.table
    }

    /// The next event in the order of the file, or `None` at its end. While the input
    /// [may grow](Input::may_grow), `None` means that the next packet is not there yet, and
    /// a later call may return an event.
    #[inline(always)]
    pub fn next_event(&mut self) -> Result<Option<Event<'_>>, ReadError> {
        Ok(self.next_located()?.map(|(event, _)| event))
    }

    /// The next event with the locations and the ids that the packets read so far use.
    pub(crate) fn next_with_ids(
        &mut self,
    ) -> Result<Option<(Event<'_>, &LocationTable, &UsedIds)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.return_next().map(|(event, place, used)| (event, place.locations, used)))
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
    fn return_next(&mut self) -> Option<(Event<'_>, Place<'_>, &UsedIds)> {
        let next_id = Some(self.next_id());
        let Domain { number, stack, .. } = &mut self.domains.current;
        let after_loss = stack.is_after_loss();
        let (time, kind) = self.batch.next(stack, &mut self.budget)?;
        if after_loss
            && let EventKind::Alloc(allocation) = kind
            && allocation.backtrace.is_partial()
        {
            self.losses.partial_backtraces += 1;
        }
        let place = Place { locations: &self.table, losses: &self.losses, next_id };
        Some((Event { time, domain: *number, kind }, place, &self.used_ids))
    }
}

impl<I: Input> EventSource for Reader<I> {
    fn info(&self) -> &TraceInfo {
        &self.info
    }

    fn locations(&self) -> &LocationTable {
        &self.table
    }

    fn losses(&self) -> &Losses {
        &self.losses
    }

    #[inline(always)]
    fn next_located(&mut self) -> Result<Option<(Event<'_>, &LocationTable)>, ReadError> {
        if self.batch.is_drained() && !self.next_batch()? {
            return Ok(None);
        }
        Ok(self.return_next().map(|(event, place, _)| (event, place.locations)))
    }
}

impl<I: Input> TraceReader for Reader<I> {
    fn for_each_place(
        &mut self,
        take: &mut dyn FnMut(&Event<'_>, &Place<'_>) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>, ReadError> {
        while !self.batch.is_drained() || self.next_batch()? {
            if let Some((event, place, _)) = self.return_next()
                && take(&event, &place).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn format(&self) -> TraceFormat {
        match self.version() {
            Version::V1 => TraceFormat::Memtrace1,
            Version::V2 => TraceFormat::Memtrace2,
            Version::V3 => TraceFormat::Memtrace3,
        }
    }

    fn totals(&self) -> &TraceTotals {
        &self.totals
    }

    fn covered(&self) -> u64 {
        self.covered
    }

    fn domains(&self) -> Vec<u16> {
        self.domains.numbers().collect()
    }

    fn offset(&self) -> u64 {
        self.offset
    }
}
