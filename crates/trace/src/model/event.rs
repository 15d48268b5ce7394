//! What a trace tells: allocations, promotions and collections.

use crate::memtrace::rules::{TIME_BITS, TIME_MASK};

/// A frame of a backtrace: an opaque number that [`crate::LocationTable`]
/// explains. 63 bits with sign, stored in 64.
pub type Code = u64;

/// Stands for a frame that damage to the file made unknown. No writer can have
/// written it: it does not fit 63 bits.
pub const LOST_FRAME: Code = 1 << 63;

/// Whether a number can be a code: not 0, which marks an empty slot, and such
/// that other readers, which hold codes in 63 bits, get it back whole.
#[inline(always)]
pub(crate) fn is_code(number: u64) -> bool {
    let two_highest_differ = (number ^ number << 1) >> 63 == 1;
    (number != 0) & !two_highest_differ
}

/// Where a block was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Source {
    /// In the young generation.
    Minor = 0,
    /// Directly in the old generation.
    Major = 1,
    /// Outside the heap, owned by a block in it.
    External = 2,
}

impl Source {
    pub(crate) fn from_number(number: u8) -> Option<Source> {
        match number {
            0 => Some(Source::Minor),
            1 => Some(Source::Major),
            2 => Some(Source::External),
            _ => None,
        }
    }
}

/// The stack at an allocation, from `main` to the allocation point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backtrace<'a> {
    /// The frames. They end early where the writer ran out of room.
    pub frames: &'a [Code],
    /// How many frames at the `main` end are those of the domain's previous
    /// allocation, as the file states it: more than `frames` holds when an
    /// earlier backtrace was cut short.
    pub common_prefix: u64,
    /// The frames after the common prefix. They are the end of `frames`,
    /// except after a backtrace that was cut short.
    pub new: &'a [Code],
}

impl Backtrace<'_> {
    /// Whether damage to the file made frames unknown.
    pub fn is_partial(&self) -> bool {
        self.frames.contains(&LOST_FRAME)
    }
}

/// A sampled block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation<'a> {
    /// Its id: allocations are numbered.
    pub id: u64,
    /// Words, without the header.
    pub length: u64,
    /// How many samples fell in the block and its header, at least 1.
    pub samples: u64,
    /// Where it was allocated.
    pub source: Source,
    /// The stack.
    pub backtrace: Backtrace<'a>,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind<'a> {
    /// A sampled block was allocated.
    Alloc(Allocation<'a>),
    /// The block of this id moved to the old generation.
    Promote(u64),
    /// The block of this id died.
    Collect(u64),
}

/// One event of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Microseconds since the epoch; never decreasing within a domain.
    pub time: u64,
    /// The domain that recorded it; 0 before version 3.
    pub domain: u16,
    /// What happened.
    pub kind: EventKind<'a>,
}

/// An event's first four bytes: its code and the low bits of its time.
pub(crate) fn event_header(code: u8, time: u64) -> u32 {
    (u32::from(code) << TIME_BITS) | (time & TIME_MASK) as u32
}

/// The code in an event's first four bytes.
#[inline(always)]
pub(crate) fn event_code(header: u32) -> u8 {
    (header >> TIME_BITS) as u8
}

/// The whole time of an event in a packet that begins at `begin`: the first
/// time from `begin` on with these low bits.
#[inline(always)]
pub(crate) fn event_time(header: u32, begin: u64) -> u64 {
    let ahead = u64::from(header).wrapping_sub(begin) & TIME_MASK;
    begin.wrapping_add(ahead)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_times_wrap_once() {
        for begin in [0u64, TIME_MASK, TIME_MASK + 1, 1_587_000_000_123_456] {
            for ahead in [0, 1, 29_999_999, 30_000_000] {
                let time = begin + ahead;
                let header = event_header(116, time);
                assert_eq!(event_time(header, begin), time);
                assert_eq!(event_code(header), 116);
            }
        }
    }

    #[test]
    fn codes_have_63_bits_and_a_sign() {
        for code in [1, (1 << 62) - 1, u64::MAX, !((1 << 62) - 1)] {
            assert!(is_code(code), "{code:#x}");
        }
        for code in [0, 1 << 62, 1 << 63, LOST_FRAME, (1 << 63) | 1] {
            assert!(!is_code(code), "{code:#x}");
        }
    }
}
