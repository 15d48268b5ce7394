//! The first four bytes of every event: 7 bits of event code, 25 bits of time.

use crate::memtrace::rules::{TIME_BITS, TIME_MASK};

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
}
