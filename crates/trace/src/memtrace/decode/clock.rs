//! The times of a packet's events.

use crate::memtrace::header::Header;
use crate::memtrace::rules::{MAX_PACKET_SPAN, TIME_MASK};

/// The time of the last event, and the distance from it to the packet's end. One
/// comparison checks that an event is neither before the last one nor after the
/// end: modulo 2²⁵, a step back is almost a whole round, and no packet spans that.
#[derive(Clone, Copy)]
pub(crate) struct Clock {
    /// The last event's first four bytes, whose lower bits are its time.
    last: u32,
    /// Microseconds to the packet's end.
    left: u32,
}

const _: () = assert!(MAX_PACKET_SPAN < TIME_MASK);

impl Clock {
    /// At the packet's beginning. Headers that span more than
    /// [`MAX_PACKET_SPAN`] do not get here.
    pub(crate) fn new(header: &Header) -> Self {
        Clock { last: header.begin as u32, left: (header.end - header.begin) as u32 }
    }

    /// Advances to an event. Returns false, and does not move, if the event's time
    /// is impossible.
    #[inline(always)]
    pub(crate) fn reach(&mut self, event: u32) -> bool {
        let step = event.wrapping_sub(self.last) & TIME_MASK as u32;
        let possible = step <= self.left;
        if possible {
            *self = Clock { last: event, left: self.left - step };
        }
        possible
    }

    /// The last event's time.
    pub(crate) fn now(self, header: &Header) -> u64 {
        header.end - u64::from(self.left)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::memtrace::event::{event_header, event_time};
    use crate::memtrace::header::Version;
    use crate::model::Completion;

    fn header(begin: u64, end: u64) -> Header {
        Header {
            size: 0,
            begin,
            end,
            completion: Completion::Complete,
            version: Version::V2,
            pid: 1,
            domain: 0,
            cache_check: None,
            first_id: 0,
            next_id: 0,
        }
    }

    proptest! {
        #[test]
        fn reaches_what_is_neither_before_the_last_nor_behind_the_end(
            begin in prop_oneof![Just(TIME_MASK), 0..1u64 << 40],
            span in prop_oneof![Just(0), Just(MAX_PACKET_SPAN), 0..1_000u64],
            steps in prop::collection::vec(
                prop_oneof![0..100u64, 0..=MAX_PACKET_SPAN, TIME_MASK - 100..=TIME_MASK],
                0..20,
            ),
        ) {
            let header = header(begin, begin + span);
            let (mut clock, mut now) = (Clock::new(&header), begin);
            for step in steps {
                let event = event_header(101, now + step);
                let time = event_time(event, begin);
                let possible = (now..=begin + span).contains(&time);
                prop_assert_eq!(clock.reach(event), possible);
                if possible {
                    now = time;
                }
                prop_assert_eq!(clock.now(&header), now);
            }
        }
    }
}
