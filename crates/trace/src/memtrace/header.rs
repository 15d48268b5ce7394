//! The header of a packet: 66 bytes, 68 in version 3.

use heaptap_codec::Cursor;

use crate::memtrace::defect::Defect;
use crate::memtrace::rules::{
    MAGIC, MAX_NUMBER, MAX_PACKET, MAX_PACKET_SPAN, NO_CACHE_CHECK, SLOTS,
};

use crate::memtrace::wire::Packet;
use crate::model::{Completion, TraceHead, TraceOrigin};

/// The format's version, the same in every packet of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// Without the context field in the trace info. Read, never written.
    V1 = 1,
    /// One stream of events. What memtrace 0.2 reads and writes.
    V2 = 2,
    /// A stream of events for each domain.
    V3 = 3,
}

impl Version {
    /// The version with this number, if it is known.
    pub fn from_number(number: u16) -> Option<Version> {
        match number {
            1 => Some(Version::V1),
            2 => Some(Version::V2),
            3 => Some(Version::V3),
            _ => None,
        }
    }

    /// Its number.
    pub fn number(self) -> u16 {
        self as u16
    }

    /// Size of the packet header in bytes.
    pub fn header_len(self) -> usize {
        match self {
            Version::V1 | Version::V2 => HEADER_LEN,
            Version::V3 => HEADER_LEN + 2,
        }
    }
}

/// What the first bytes of a file say, which begins with memtrace's magic number. Nothing else is
/// checked: the trace may be damaged.
pub(crate) fn head(bytes: &[u8]) -> Option<TraceHead> {
    let mut input = Cursor::new(bytes);
    let (_magic, _bits) = (input.u32()?, input.u32()?);
    let (start_time, _end) = (input.u64()?, input.u64()?);
    let (completion, _version) = (Completion::from_number(input.u32()?), input.u16()?);
    Some(TraceHead { origin: TraceOrigin { pid: input.u64()?, start_time }, completion })
}

/// The field that other writers leave 0 and other readers skip: the flush duration.
impl Completion {
    /// Where the field is in the file.
    pub const OFFSET: u64 = 4 + 4 + 8 + 8;

    /// The bytes of the field.
    pub fn bytes(self) -> [u8; 4] {
        (self as u32).to_le_bytes()
    }

    fn from_number(number: u32) -> Completion {
        match number {
            1 => Completion::Unfinished,
            2 => Completion::WriteFailed,
            _ => Completion::Complete,
        }
    }
}

const HEADER_LEN: usize = 4 + 4 + 8 + 8 + 4 + 2 + 8 + (2 + 2 + 8) + 8 + 8;

/// A packet header is never longer.
pub(crate) const MAX_HEADER: usize = HEADER_LEN + 2;

/// One slot of the writer's backtrace cache when the packet began, for the
/// reader to compare with its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CacheCheck {
    /// Which slot.
    pub(crate) slot: u16,
    /// The slot that last followed it.
    pub(crate) prediction: u16,
    /// The code in it.
    pub(crate) code: u64,
}

/// The fields of a packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Size of the whole packet in bytes.
    pub(crate) size: usize,
    /// Time of the first event, microseconds since the epoch.
    pub(crate) begin: u64,
    /// Time of the last event, inclusive.
    pub(crate) end: u64,
    /// Means something in the first packet only.
    pub(crate) completion: Completion,
    /// Version of the format.
    pub(crate) version: Version,
    /// The process that wrote it.
    pub(crate) pid: u64,
    /// The domain that wrote it; 0 before version 3.
    pub(crate) domain: u16,
    /// The cache check, if it has one.
    pub(crate) cache_check: Option<CacheCheck>,
    /// Id of the packet's first allocation.
    pub(crate) first_id: u64,
    /// The id after its last.
    pub(crate) next_id: u64,
}

/// What is known of a packet once it is complete; fields as in [`Header`].
#[derive(Clone, Copy)]
pub(crate) struct PacketRange {
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) first_id: u64,
    pub(crate) next_id: u64,
}

impl Header {
    /// Reads and checks a header. `bytes` may reach beyond it.
    ///
    /// `None` when the bytes end inside the header and what is there could
    /// still be one.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Result<Header, Defect>> {
        let mut input = Cursor::new(bytes);
        let magic = input.u32()?;
        if magic != MAGIC {
            return Some(Err(Defect::Magic { found: magic }));
        }
        let bits = input.u32()?;
        let (begin, end) = (input.u64()?, input.u64()?);
        let completion = Completion::from_number(input.u32()?);
        let number = input.u16()?;
        let Some(version) = Version::from_number(number) else {
            return Some(Err(Defect::Version { found: number }));
        };
        let pid = input.u64()?;
        let domain = if version == Version::V3 { input.u16()? } else { 0 };
        let (slot, prediction, code) = (input.u16()?, input.u16()?, input.u64()?);
        let (first_id, next_id) = (input.u64()?, input.u64()?);
        let cache_check = (slot != NO_CACHE_CHECK).then_some(CacheCheck { slot, prediction, code });
        let size = (bits / 8) as usize;
        let header = Header {
            size,
            begin,
            end,
            completion,
            version,
            pid,
            domain,
            cache_check,
            first_id,
            next_id,
        };
        Some(header.check(bits).map(|()| header))
    }

    /// Checks what can be checked without other packets.
    fn check(&self, bits: u32) -> Result<(), Defect> {
        if !bits.is_multiple_of(8)
            || self.size < self.version.header_len()
            || self.size > MAX_PACKET
        {
            return Err(Defect::PacketSize { bits });
        }
        // Times are signed 64-bit numbers to other readers.
        let within = i64::try_from(self.end).is_ok() && self.begin <= self.end;
        if !within || self.end - self.begin > MAX_PACKET_SPAN {
            return Err(Defect::PacketTimes { begin: self.begin, end: self.end });
        }
        if self.first_id > self.next_id || self.next_id > MAX_NUMBER {
            return Err(Defect::PacketIds { first: self.first_id, next: self.next_id });
        }
        match self.cache_check {
            Some(check) if usize::from(check.slot.max(check.prediction)) >= SLOTS => {
                Err(Defect::CacheCheckSlot { slot: check.slot, prediction: check.prediction })
            }
            _ => Ok(()),
        }
    }

    /// Whether the packet claims to contain allocations.
    pub(crate) fn allocates(&self) -> bool {
        self.first_id != self.next_id
    }

    /// The number of allocations that the packet claims to contain; `None` if it
    /// is too small for them.
    pub(crate) fn stated_allocations(&self) -> Option<u64> {
        const SMALLEST: usize = 4 + 1 + 1;
        let count = self.next_id - self.first_id;
        (count <= (self.size / SMALLEST) as u64).then_some(count)
    }

    /// Writes the header at the front of an empty packet. Size, times and ids
    /// are not known yet: [`Header::finish`] fills them in.
    pub(crate) fn open(
        packet: &mut Packet,
        version: Version,
        pid: u64,
        domain: u16,
        cache_check: Option<CacheCheck>,
    ) {
        packet.clear();
        packet.u32(MAGIC);
        packet.u32(0);
        packet.u64(0);
        packet.u64(0);
        packet.u32(0);
        packet.u16(version.number());
        packet.u64(pid);
        if version == Version::V3 {
            packet.u16(domain);
        }
        let check =
            cache_check.unwrap_or(CacheCheck { slot: NO_CACHE_CHECK, prediction: 0, code: 0 });
        packet.u16(check.slot);
        packet.u16(check.prediction);
        packet.u64(check.code);
        packet.u64(0);
        packet.u64(0);
    }

    /// Fills in the fields that [`Header::open`] left 0.
    pub(crate) fn finish(packet: &mut Packet, version: Version, range: PacketRange) {
        // At most MAX_PACKET bytes, so the bits fit.
        let bits = (packet.len() as u32).wrapping_mul(8);
        let ids_at = version.header_len() - 16;
        packet.patch(4, bits.to_le_bytes());
        packet.patch(8, range.begin.to_le_bytes());
        packet.patch(16, range.end.to_le_bytes());
        packet.patch(ids_at, range.first_id.to_le_bytes());
        packet.patch(ids_at + 8, range.next_id.to_le_bytes());
    }
}
