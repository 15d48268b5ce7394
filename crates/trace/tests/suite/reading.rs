//! A trace read to its end, with everything the reader said of it.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Read};

use heaptap_trace::{
    Block, Code, EventKind, Input, Limits, Losses, Mode, ReadError, Reader, Stream, Tally,
};

use crate::book::Place;

/// An event that owns its frames.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) domain: u16,
    pub(crate) time: u64,
    pub(crate) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Alloc { id: u64, block: Block, frames: Vec<Code> },
    Promote(u64),
    Collect(u64),
}

impl Told {
    pub(crate) fn frames(&self) -> &[Code] {
        match &self.what {
            What::Alloc { frames, .. } => frames,
            What::Promote(_) | What::Collect(_) => &[],
        }
    }

    /// The event with other frames.
    pub(crate) fn with_frames(mut self, new: &[Code]) -> Told {
        if let What::Alloc { frames, .. } = &mut self.what {
            *frames = new.to_vec();
        }
        self
    }
}

/// What a reader handed out and said.
pub(crate) struct Reading {
    pub(crate) told: Vec<Told>,
    /// For each event the byte offset where its packet ends.
    pub(crate) packet_ends: Vec<u64>,
    pub(crate) losses: Losses,
    pub(crate) tally: Tally,
    pub(crate) error: Option<ReadError>,
}

impl Reading {
    /// The events of one domain.
    pub(crate) fn of_domain(&self, domain: u16) -> Vec<&Told> {
        self.told.iter().filter(|told| told.domain == domain).collect()
    }
}

/// Reads on to the end or the first error.
pub(crate) fn read_on<I: Input>(mut reader: Reader<I>) -> Reading {
    read_to_end(&mut reader)
}

fn read_to_end<I: Input>(reader: &mut Reader<I>) -> Reading {
    let mut told = Vec::new();
    let mut packet_ends = Vec::new();
    let error = loop {
        match reader.next_event() {
            Ok(Some(event)) => {
                let (time, domain) = (event.time, event.domain);
                let what = match event.kind {
                    EventKind::Alloc(allocation) => What::Alloc {
                        id: allocation.id,
                        block: Block {
                            length: allocation.length,
                            samples: allocation.samples,
                            source: allocation.source,
                        },
                        frames: allocation.backtrace.frames.to_vec(),
                    },
                    EventKind::Promote(id) => What::Promote(id),
                    EventKind::Collect(id) => What::Collect(id),
                };
                told.push(Told { domain, time, what });
                packet_ends.push(reader.offset());
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    let (losses, tally) = (reader.losses().clone(), *reader.tally());
    Reading { told, packet_ends, losses, tally, error }
}

/// The locations of all codes in a trace's backtraces, as far as it tells.
pub(crate) fn read_places(bytes: &[u8]) -> BTreeMap<Code, Vec<Place>> {
    let mut reader = Reader::from_slice(bytes, Mode::Lenient).unwrap();
    let told = read_to_end(&mut reader).told;
    let codes: BTreeSet<Code> = told.iter().flat_map(Told::frames).copied().collect();
    let table = reader.locations();
    let places = |code| table.resolve(code).map(|location| Place::of(&location)).collect();
    codes
        .into_iter()
        .filter(|&code| table.contains(code))
        .map(|code| (code, places(code)))
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

/// Gives so many bytes with each read, in turn; 0 stands for a read that a
/// signal interrupts.
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
