//! Writing traces, byte for byte as the original writer does.
//!
//! An [`Encoder`] holds one open packet for each domain and writes it, with the
//! locations it needs before it, when the format's rules close it. Once warm it
//! allocates nothing: packets, caches and names live in fixed room.

mod domain;
mod found;
mod names;
mod one_domain;
mod stack;
mod usual;

use std::fmt;
use std::io::{self, Write};

use crate::memtrace::encode::domain::{DomainWriter, Shared};
use crate::memtrace::encode::stack::first_without_code;
use crate::memtrace::header::Version;
use crate::memtrace::rules::{IDS_PER_BLOCK, MAX_NUMBER, MAX_PACKET, code};
use crate::memtrace::wire::Packet;
use crate::model::{Block, Code, End, EventSink, Frames, Locate, LocationList, TraceInfo};

pub use crate::memtrace::encode::one_domain::DomainEncoder;
pub use crate::memtrace::encode::stack::LeftOut;

/// The versions that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One domain; every reader opens it.
    V2,
    /// Any number of domains; newer readers only.
    V3,
}

impl Format {
    fn version(self) -> Version {
        match self {
            Format::V2 => Version::V2,
            Format::V3 => Version::V3,
        }
    }
}

/// A block from the minor heap with one sample, as most are, and its stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallAlloc<'a> {
    /// Microseconds since the epoch.
    pub time: u64,
    /// Words, without the header.
    pub length: u64,
    /// How many frames at the `main` end are those of the domain's previous
    /// allocation.
    pub common_prefix: u64,
    /// The others, from the allocation point towards `main`.
    pub inner_first: &'a [Code],
}

/// The event code of a promotion or collection.
#[inline(always)]
fn end_code(end: End) -> u8 {
    match end {
        End::Promote => code::PROMOTE,
        End::Collect => code::COLLECT,
    }
}

/// Why an event was not written. Nothing of it is in the file.
#[derive(Debug)]
#[non_exhaustive]
pub enum WriteError {
    /// The output failed. What was written so far is a valid trace up to its
    /// last whole packet.
    Io(io::Error),
    /// The sampling rate is not above 0 and at most 1, the word size not 32 or
    /// 64, or the start time beyond the year 294,000.
    Info,
    /// A length does not fit 62 bits.
    Length(u64),
    /// No block of this length has so many samples.
    Samples(u64),
    /// An object id that was not given out.
    Id(u64),
    /// A code of 0 or of more than 63 bits.
    Code(Code),
    /// A time before the domain's last, or more than 63 bits.
    Time(u64),
    /// A common prefix of more than 32 bits.
    CommonPrefix(u64),
    /// A second domain in version 2.
    Domain(u16),
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WriteError::Io(error) => write!(f, "{error}"),
            WriteError::Info => write!(f, "impossible trace info"),
            WriteError::Length(length) => write!(f, "block length {length} is over 62 bits"),
            WriteError::Samples(samples) => {
                write!(f, "impossible number of samples in one block: {samples}")
            }
            WriteError::Id(id) => write!(f, "object id {id} was not given out"),
            WriteError::Code(code) => write!(f, "location code {code:#x} is 0 or over 63 bits"),
            WriteError::Time(time) => write!(f, "time {time} µs is before the last event's"),
            WriteError::CommonPrefix(prefix) => write!(f, "common prefix of {prefix} frames"),
            WriteError::Domain(domain) => {
                write!(f, "domain {domain} in a trace of version 2, which has one domain")
            }
        }
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            WriteError::Io(error) => Some(error),
            _ => None,
        }
    }
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        WriteError::Io(error)
    }
}

/// Writes a trace: one call of the output's `write` for each packet.
pub struct Encoder<W> {
    shared: Shared<W>,
    domains: Vec<DomainWriter>,
    /// Where in `domains` each number is.
    places: Vec<Option<u16>>,
    start_time: u64,
}

impl<W: Write> Encoder<W> {
    /// Starts a trace: writes its first packet.
    ///
    /// Strings in `info` end at their first NUL and at 4,096 bytes.
    pub fn new(out: W, format: Format, info: &TraceInfo) -> Result<Self, WriteError> {
        const MAX_STRING: usize = MAX_PACKET / 8;
        let info = info.with_strings_cut(MAX_STRING);
        let fits = i64::try_from(info.start_time).is_ok();
        if info.check().is_err() || !fits || format == Format::V2 && info.domain != 0 {
            return Err(WriteError::Info);
        }
        let version = format.version();
        let mut shared = Shared {
            out,
            version,
            pid: info.pid,
            free_id: 0,
            ids_per_block: match format {
                // One domain may use them all.
                Format::V2 => MAX_NUMBER,
                Format::V3 => IDS_PER_BLOCK,
            },
            locations: Packet::new(),
            list: LocationList::default(),
        };
        info.put(&mut shared.locations, version);
        shared.out.write_all(shared.locations.as_slice())?;
        let first = DomainWriter::new(&mut shared, info.domain, info.start_time);
        let mut encoder = Encoder {
            shared,
            domains: vec![first],
            places: Vec::new(),
            start_time: info.start_time,
        };
        encoder.note_place(info.domain, 0);
        Ok(encoder)
    }

    /// One domain, for many events of it: it is looked up once.
    #[inline]
    pub fn domain(&mut self, number: u16) -> DomainEncoder<'_, W> {
        DomainEncoder::new(self, number)
    }

    /// Where a domain is among the `domains`, if it has begun.
    #[inline(always)]
    fn place(&self, number: u16) -> Option<usize> {
        self.places.get(usize::from(number)).copied().flatten().map(usize::from)
    }

    fn note_place(&mut self, number: u16, place: usize) {
        let number = usize::from(number);
        if self.places.len() <= number {
            self.places.resize(number + 1, None);
        }
        if let Some(known) = self.places.get_mut(number) {
            // As many domains as numbers: a place is a number too.
            *known = u16::try_from(place).ok();
        }
    }

    /// A new domain that begins at `time`; where it is.
    #[cold]
    fn begin_domain(&mut self, number: u16, time: u64) -> usize {
        self.domains.push(DomainWriter::new(&mut self.shared, number, time));
        let place = self.domains.len() - 1;
        self.note_place(number, place);
        place
    }

    /// Writes an allocation and returns its id.
    #[inline]
    pub fn alloc(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        frames: Frames<'_>,
        locate: &mut impl Locate,
    ) -> Result<u64, WriteError> {
        self.domain(domain).alloc(time, block, frames, locate)
    }

    /// Writes an allocation that keeps both ends of its backtrace: see
    /// [`DomainEncoder::alloc_elided`].
    pub fn alloc_elided(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        frames: (u64, &[Code]),
        left_out: Code,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError> {
        self.domain(domain).alloc_elided(time, block, frames, left_out, locate)
    }

    /// Writes a promotion.
    pub fn promote(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        self.domain(domain).promote(time, id, locate)
    }

    /// Writes a collection.
    pub fn collect(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError> {
        self.domain(domain).collect(time, id, locate)
    }

    /// The id that the domain's next allocation will get.
    pub fn next_id(&self, domain: u16) -> Option<u64> {
        let domain = self.domains.get(self.place(domain)?)?;
        Some(domain.next_id(&self.shared))
    }

    /// Lets the domain, which begins at `time` if it is new, number its next
    /// allocations from `first` on: for copying a trace with its ids. Ids only
    /// grow within a domain, and the caller sees to it that none is used twice.
    pub fn renumber(&mut self, domain: u16, time: u64, first: u64) -> Result<(), WriteError> {
        self.domain(domain).renumber(time, first)
    }

    /// Writes what is held back, as far as there are events in it.
    pub fn flush(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        for domain in &mut self.domains {
            domain.flush(&mut self.shared, locate)?;
        }
        self.shared.out.flush()?;
        Ok(())
    }

    /// Ends the trace and gives the output back.
    pub fn finish(mut self, locate: &mut impl Locate) -> Result<W, WriteError> {
        self.end(locate)?;
        Ok(self.shared.out)
    }

    /// The same, and keeps the output and all memory: for a process that ends.
    /// Nothing may be written afterwards.
    pub fn end(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        for domain in &mut self.domains {
            domain.finish(&mut self.shared, locate)?;
        }
        self.shared.out.flush()?;
        Ok(())
    }
}

impl<W: Write> EventSink for Encoder<W> {
    type Error = WriteError;
    type Output = W;

    #[inline]
    fn alloc(
        &mut self,
        domain: u16,
        time: u64,
        block: Block,
        frames: Frames<'_>,
        mut locate: &mut dyn Locate,
    ) -> Result<u64, WriteError> {
        self.domain(domain).alloc(time, block, frames, &mut locate)
    }

    #[inline]
    fn promote(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        mut locate: &mut dyn Locate,
    ) -> Result<(), WriteError> {
        self.domain(domain).promote(time, id, &mut locate)
    }

    #[inline]
    fn collect(
        &mut self,
        domain: u16,
        time: u64,
        id: u64,
        mut locate: &mut dyn Locate,
    ) -> Result<(), WriteError> {
        self.domain(domain).collect(time, id, &mut locate)
    }

    fn next_id(&self, domain: u16) -> Option<u64> {
        Encoder::next_id(self, domain)
    }

    fn renumber(&mut self, domain: u16, time: u64, first: u64) -> Result<(), WriteError> {
        Encoder::renumber(self, domain, time, first)
    }

    fn finish(self, mut locate: &mut dyn Locate) -> Result<W, WriteError> {
        Encoder::finish(self, &mut locate)
    }
}

fn check_block(block: &Block) -> Result<(), WriteError> {
    if block.length > MAX_NUMBER {
        return Err(WriteError::Length(block.length));
    }
    if block.samples == 0 || block.samples > block.length + 1 {
        return Err(WriteError::Samples(block.samples));
    }
    Ok(())
}

#[inline(always)]
fn check_codes(codes: &[Code]) -> Result<(), WriteError> {
    first_without_code(codes).map_or(Ok(()), |bad| Err(WriteError::Code(bad)))
}

fn check_time(time: u64, last: u64) -> Result<(), WriteError> {
    if time < last || time > i64::MAX as u64 { Err(WriteError::Time(time)) } else { Ok(()) }
}
