//! The encoder: a whole trace.

use std::io::Write;

use crate::memtrace::encode::domain::Shared;
use crate::memtrace::encode::domain_encoder::DomainEncoder;
use crate::memtrace::encode::domains::Domains;
use crate::memtrace::encode::kinds::NamedKinds;
use crate::memtrace::header::Version;
use crate::memtrace::rules::{IDS_PER_BLOCK, MAX_NUMBER, MAX_PACKET};
use crate::memtrace::wire::Packet;
use crate::model::{
    Block, Completion, End, EventSink, Frames, LiveSink, Locate, LocationList, TraceFormat,
    TraceInfo, WriteError,
};

/// The versions that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One domain; every reader opens it.
    V2,
    /// Any number of domains; newer readers only.
    V3,
}

impl Format {
    /// The version that is written where this format is asked for.
    pub(crate) fn of(format: TraceFormat) -> Format {
        match format {
            TraceFormat::Memtrace1 | TraceFormat::Memtrace2 => Format::V2,
            TraceFormat::Memtrace3 => Format::V3,
        }
    }

    fn version(self) -> Version {
        match self {
            Format::V2 => Version::V2,
            Format::V3 => Version::V3,
        }
    }
}

/// Writes a trace: one call of the output's `write` for each packet.
pub struct Encoder<W> {
    domains: Domains<W>,
}

impl<W: Write> Encoder<W> {
    /// Starts a trace: writes its first packet.
    ///
    /// Strings in `info` end at their first NUL and at 4,096 bytes.
    pub fn new(out: W, format: Format, info: &TraceInfo) -> Result<Self, WriteError> {
        Encoder::begin(out, format, info, Completion::Complete)
    }

    /// The same for a trace that says of itself whether it is complete.
    pub(crate) fn begin(
        out: W,
        format: Format,
        info: &TraceInfo,
        completion: Completion,
    ) -> Result<Self, WriteError> {
        let info = writable(info, format.version())?;
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
            kinds: NamedKinds::default(),
        };
        info.put(&mut shared.locations, version);
        shared.locations.patch(Completion::OFFSET as usize, completion.bytes());
        shared.out.write_all(shared.locations.as_slice())?;
        Ok(Encoder { domains: Domains::new(shared, info.domain, info.start_time) })
    }

    /// One domain, looked up once for many events.
    #[inline]
    pub fn domain(&mut self, number: u16) -> DomainEncoder<'_, W> {
        DomainEncoder::new(&mut self.domains, number)
    }

    /// Ends the trace and returns the output.
    pub fn finish(mut self, locate: &mut impl Locate) -> Result<W, WriteError> {
        self.write_rest(locate)?;
        Ok(self.domains.shared.out)
    }

    /// Writes all that is left. Nothing may be written afterwards.
    fn write_rest(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        let Domains { shared, list, .. } = &mut self.domains;
        for domain in list {
            domain.finish(shared, locate)?;
        }
        shared.out.flush()?;
        Ok(())
    }
}

/// What can be written of a trace info.
fn writable(info: &TraceInfo, version: Version) -> Result<TraceInfo, WriteError> {
    const MAX_STRING: usize = MAX_PACKET / 8;
    let info = info.with_strings_cut(MAX_STRING);
    let fits = i64::try_from(info.start_time).is_ok();
    if info.check().is_err() || !fits || version == Version::V2 && info.domain != 0 {
        return Err(WriteError::Info);
    }
    Ok(info)
}

impl<W: Write> EventSink for Encoder<W> {
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
    fn end(
        &mut self,
        end: End,
        domain: u16,
        time: u64,
        id: u64,
        mut locate: &mut dyn Locate,
    ) -> Result<(), WriteError> {
        let mut domain = self.domain(domain);
        match end {
            End::Promote => domain.promote(time, id, &mut locate),
            End::Collect => domain.collect(time, id, &mut locate),
        }
    }

    fn next_id(&self, domain: u16) -> Option<u64> {
        let domain = self.domains.list.get(self.domains.index(domain)?)?;
        Some(domain.next_id(&self.domains.shared))
    }

    fn renumber(&mut self, domain: u16, time: u64, first: u64) -> Result<(), WriteError> {
        self.domain(domain).renumber(time, first)
    }

    /// Writes what is open, and an empty packet if the last one ends before. Nothing may be
    /// written afterwards.
    fn cover(&mut self, time: u64, mut locate: &mut dyn Locate) -> Result<(), WriteError> {
        self.flush(&mut locate)?;
        let Domains { shared, list, .. } = &mut self.domains;
        let latest = list.iter().map(|domain| domain.end).max();
        match list.first_mut().filter(|_| latest.is_none_or(|latest| latest < time)) {
            Some(domain) => Ok(domain.cover(shared, time, &mut locate)?),
            None => Ok(()),
        }
    }

    fn finish(self: Box<Self>, mut locate: &mut dyn Locate) -> Result<W, WriteError> {
        Encoder::finish(*self, &mut locate)
    }
}

impl<W: Write> LiveSink for Encoder<W> {
    type Output = W;
    type Domain<'s>
        = DomainEncoder<'s, W>
    where
        W: 's;

    fn begin(out: W, format: TraceFormat, info: &TraceInfo) -> Result<Self, WriteError> {
        Encoder::new(out, Format::of(format), info)
    }

    fn restart(&mut self, info: &TraceInfo) -> Result<(), WriteError> {
        let shared = &mut self.domains.shared;
        let info = writable(info, shared.version)?;
        shared.pid = info.pid;
        shared.free_id = 0;
        shared.kinds = NamedKinds::default();
        shared.locations.clear();
        info.put(&mut shared.locations, shared.version);
        shared.out.write_all(shared.locations.as_slice())?;
        self.domains.restart(info.domain, info.start_time);
        Ok(())
    }

    fn free_id(&self) -> u64 {
        let Domains { shared, list, .. } = &self.domains;
        match shared.version {
            // The one domain may use all ids that there are.
            Version::V1 | Version::V2 => list.first().map_or(0, |domain| domain.next_id(shared)),
            Version::V3 => shared.free_id,
        }
    }

    #[inline]
    fn domain(&mut self, number: u16) -> DomainEncoder<'_, W> {
        self.domain(number)
    }

    fn flush(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        let Domains { shared, list, .. } = &mut self.domains;
        for domain in list {
            domain.flush(shared, locate)?;
        }
        shared.out.flush()?;
        Ok(())
    }

    fn end(&mut self, time: u64, locate: &mut impl Locate) -> Result<(), WriteError> {
        self.cover(time, locate)?;
        self.write_rest(locate)
    }

    fn output_mut(&mut self) -> &mut W {
        &mut self.domains.shared.out
    }
}
