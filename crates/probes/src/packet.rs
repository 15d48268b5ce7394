//! The header of a packet.

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
