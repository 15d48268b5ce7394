//! The header of a packet, and the numbers of events: what encoder and decoder share.

/// CTF's magic number.
pub(crate) const MAGIC: u32 = 0xc1fc_1fc1;

/// Distinguishes a sidecar from every other CTF trace.
pub(crate) const UUID: [u8; 16] = *b"heaptap probes 1";

pub(crate) const VERSION: u16 = 1;

/// Bytes of a header: magic, uuid, packet size, content size, begin, end, pid, version.
pub(crate) const HEADER: usize = 4 + 16 + 4 + 4 + 8 + 8 + 8 + 2;

/// A packet is closed before it has more bytes than this.
pub(crate) const PACKET_BYTES: usize = 32_768;

/// The most bytes of an event.
pub(crate) const MAX_EVENT: usize = 4_096;

/// An optional number that is absent.
pub(crate) const NONE: u64 = u64::MAX;

/// The numbers of events.
pub(crate) mod id {
    pub(crate) const START: u8 = 0;
    pub(crate) const PROBE: u8 = 1;
    pub(crate) const COUNT: u8 = 2;
    pub(crate) const TIMER: u8 = 3;
    pub(crate) const VALUE: u8 = 4;
    pub(crate) const TEXT: u8 = 5;
    pub(crate) const TAG: u8 = 6;
    pub(crate) const LOG: u8 = 7;
    pub(crate) const PAUSE: u8 = 8;
    pub(crate) const LOST: u8 = 9;
    pub(crate) const SLICE: u8 = 10;
    pub(crate) const PAUSES: u8 = 11;
    pub(crate) const HEAP: u8 = 12;
    pub(crate) const SYSTEM: u8 = 13;
    pub(crate) const PRESSURE: u8 = 14;
    pub(crate) const END: u8 = 15;
    pub(crate) const SPACING: u8 = 16;
    pub(crate) const REPLACED: u8 = 17;
}
