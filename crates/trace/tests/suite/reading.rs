//! A trace read to its end, with everything the reader reported.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use heaptap_trace::EventSource as _;
use heaptap_trace::TraceReader as _;
use heaptap_trace::{
    Block, Code, Event, EventKind, Input, Limits, Losses, Mode, ReadError, Reader, Stream,
    TraceTotals,
};

use crate::debug_info::OwnedLocation;

/// An event that owns its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordedEvent {
    pub(crate) domain: u16,
    pub(crate) time: u64,
    pub(crate) kind: RecordedKind,
}

impl RecordedEvent {
    pub(crate) fn of(event: &Event<'_>) -> RecordedEvent {
        let kind = match event.kind {
            EventKind::Alloc(allocation) => RecordedKind::Alloc {
                id: allocation.id,
                block: allocation.block(),
                frames: allocation.backtrace.frames.to_vec(),
            },
            EventKind::Promote(id) => RecordedKind::Promote(id),
            EventKind::Collect(id) => RecordedKind::Collect(id),
            other => panic!("{other:?}"),
        };
        RecordedEvent { domain: event.domain, time: event.time, kind }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordedKind {
    Alloc { id: u64, block: Block, frames: Vec<Code> },
    Promote(u64),
    Collect(u64),
}

impl RecordedEvent {
    pub(crate) fn frames(&self) -> &[Code] {
        match &self.kind {
            RecordedKind::Alloc { frames, .. } => frames,
            RecordedKind::Promote(_) | RecordedKind::Collect(_) => &[],
        }
    }

    /// The event with other frames.
    pub(crate) fn with_frames(mut self, new: &[Code]) -> RecordedEvent {
        if let RecordedKind::Alloc { frames, .. } = &mut self.kind {
            *frames = new.to_vec();
        }
        self
    }
}

/// Everything that a reader returned.
pub(crate) struct Reading {
    pub(crate) recorded: Vec<RecordedEvent>,
    /// For each event the byte offset where its packet ends.
    pub(crate) packet_ends: Vec<u64>,
    pub(crate) losses: Losses,
    pub(crate) totals: TraceTotals,
    pub(crate) error: Option<ReadError>,
}

impl Reading {
    /// The events of one domain.
    pub(crate) fn of_domain(&self, domain: u16) -> Vec<&RecordedEvent> {
        self.recorded.iter().filter(|recorded| recorded.domain == domain).collect()
    }
}

/// Reads on to the end or the first error.
pub(crate) fn read_on<I: Input>(mut reader: Reader<I>) -> Reading {
    read_to_end(&mut reader)
}

fn read_to_end<I: Input>(reader: &mut Reader<I>) -> Reading {
    let mut recorded = Vec::new();
    let mut packet_ends = Vec::new();
    let error = loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                recorded.push(RecordedEvent::of(&event));
                packet_ends.push(reader.offset());
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let (losses, totals) = (reader.losses().clone(), *reader.totals());
    Reading { recorded, packet_ends, losses, totals, error }
}

/// The locations of all codes in a trace's backtraces that it defines.
pub(crate) fn read_locations(bytes: &[u8]) -> BTreeMap<Code, Vec<OwnedLocation>> {
    let mut reader = Reader::from_slice(bytes, Mode::Lenient).unwrap();
    let recorded = read_to_end(&mut reader).recorded;
    let codes: BTreeSet<Code> = recorded.iter().flat_map(RecordedEvent::frames).copied().collect();
    let table = reader.locations();
    let locations =
        |code| table.resolve(code).map(|location| OwnedLocation::of(&location)).collect();
    codes
        .into_iter()
        .filter(|&code| table.contains(code))
        .map(|code| (code, locations(code)))
        .collect()
}

/// Reads a trace in memory.
pub(crate) fn read(bytes: &[u8], mode: Mode) -> Result<Reading, ReadError> {
    Reader::from_slice(bytes, mode).map(read_on)
}

/// Reads a trace whose first packet is sound, in lenient mode, which must not
/// fail.
pub(crate) fn read_leniently(bytes: &[u8]) -> Reading {
    let reading = read(bytes, Mode::Lenient).expect("the trace info is sound");
    assert!(reading.error.is_none(), "lenient reading failed: {:?}", reading.error);
    reading
}

/// Reads a sound trace, which must have no defect.
pub(crate) fn read_strictly(bytes: &[u8]) -> Reading {
    let reading = read(bytes, Mode::Strict).expect("the trace info is sound");
    assert!(reading.error.is_none(), "strict reading failed: {:?}", reading.error);
    reading
}

/// The same through a pipe that gives a few bytes at a time.
pub(crate) fn read_through_pipe(
    bytes: &[u8],
    mode: Mode,
    sizes: &[usize],
) -> Result<Reading, ReadError> {
    let pipe = Pipe { bytes, sizes, reads: 0 };
    Reader::open(Stream::new(pipe), mode, Limits::default()).map(read_on)
}

/// Returns as many bytes per read as `sizes` says, in turn; 0 stands for a read
/// that a signal interrupts.
struct Pipe<'a> {
    bytes: &'a [u8],
    sizes: &'a [usize],
    reads: usize,
}

impl Read for Pipe<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.reads % self.sizes.len()];
        self.reads += 1;
        if size == 0 {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = size.min(buffer.len()).min(self.bytes.len());
        let (now, later) = self.bytes.split_at(count);
        buffer[..count].copy_from_slice(now);
        self.bytes = later;
        Ok(count)
    }
}
