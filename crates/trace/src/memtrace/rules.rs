//! The constants of the format, shared by encoder and decoder.
//!
//! `docs/format.md` explains what they are for.

/// The first four bytes of every packet, as a little-endian number.
pub(crate) const MAGIC: u32 = 0xc1fc_1fc1;

/// No packet is larger, headers included: it is the original reader's buffer.
pub(crate) const MAX_PACKET: usize = 32_768;

/// No packet spans more microseconds, so that 25-bit event times wrap at most once.
pub(crate) const MAX_PACKET_SPAN: u64 = 30_000_000;

/// A code's locations never take more bytes than this, nor a backtrace's entries.
pub(crate) const MAX_EVENT_BODY: usize = 4_096;

/// A packet with less room than this takes no further event: the larger body
/// plus a generous bound on what surrounds it.
pub(crate) const MIN_ROOM: usize = 100 + MAX_EVENT_BODY;

/// The most bytes one backtrace entry takes: slot and code.
pub(crate) const MAX_ENTRY: usize = 2 + 8;

/// The fewest bytes an event takes: header and a small number.
pub(crate) const SMALLEST_EVENT: usize = 5;

/// A packet with more new locations than this waiting takes no further event.
pub(crate) const MAX_PENDING_LOCATIONS: usize = 128;

/// How many object ids a domain takes at a time from the shared counter (v3).
pub const IDS_PER_BLOCK: u64 = 10_000;

/// The most predicted frames in one entry.
pub(crate) const MAX_PREDICTED: usize = 255;

/// The longest allocation, in words, that has its own event code.
pub(crate) const MAX_SHORT_LENGTH: u64 = 16;

/// The event code of a short allocation is this plus its length.
pub(crate) const SHORT_ALLOC: u8 = 100;

/// Numbers are OCaml integers: 63 bits with sign.
pub(crate) const MAX_NUMBER: u64 = (1 << 62) - 1;

/// Slots in the backtrace cache.
pub(crate) const SLOTS: usize = 1 << 14;

/// Marks a packet header without a cache check.
pub(crate) const NO_CACHE_CHECK: u16 = 0xffff;

/// Names that a move-to-front table remembers, and the code for a new one.
pub(crate) const MTF_LEN: usize = 31;

/// Bits of an event's time that its header holds.
pub(crate) const TIME_BITS: u32 = 25;
pub(crate) const TIME_MASK: u64 = (1 << TIME_BITS) - 1;

/// Field limits of a source location; a larger number is stored as the limit.
pub(crate) const MAX_LINE: u32 = 0xf_ffff;
/// See [`MAX_LINE`].
pub(crate) const MAX_START_CHAR: u32 = 0xff;
/// See [`MAX_LINE`].
pub(crate) const MAX_END_CHAR: u32 = 0x3ff;

/// Event codes.
pub(crate) mod code {
    pub(crate) const TRACE_INFO: u8 = 0;
    pub(crate) const LOCATION: u8 = 1;
    pub(crate) const ALLOC: u8 = 2;
    pub(crate) const PROMOTE: u8 = 3;
    pub(crate) const COLLECT: u8 = 4;
    pub(crate) const FIRST_SHORT: u8 = 101;
    pub(crate) const LAST_SHORT: u8 = 116;
}
