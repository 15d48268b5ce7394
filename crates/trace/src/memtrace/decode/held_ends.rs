//! Promotions and collections that are in the file before the allocation of their block.
//!
//! A domain with few events keeps its packet open. Another domain that collects its blocks
//! may be written earlier. A reader of the whole file merges the domains by time; one that
//! follows a growing file cannot know which packets are still open. So it holds back the
//! end of a block until it has read the block's allocation.

use std::collections::{HashMap, VecDeque};

use crate::memtrace::decode::ids::UsedIds;
use crate::model::event::{Event, EventKind};

/// The most events that are held back. A sound trace of many domains has some dozens. A
/// damaged one has the ends of all blocks whose allocations are lost.
const MOST_HELD: usize = 1 << 16;

/// An event that is no allocation.
#[derive(Clone, Copy)]
struct HeldEnd {
    /// The number of events held before this one.
    sequence: u64,
    /// Its kind has no borrowed parts.
    event: Event<'static>,
}

/// The events that wait for an allocation, and those that have waited long enough.
#[derive(Default)]
pub(crate) struct HeldEnds {
    waiting: HashMap<u64, Vec<HeldEnd>>,
    /// The number of events in `waiting`, at most [`MOST_HELD`].
    count: usize,
    sequence: u64,
    /// Due before the next event of the file, in this order.
    due: VecDeque<Event<'static>>,
}

impl HeldEnds {
    /// Holds an event back if its block is not allocated yet; false if the event is to be
    /// used now. An allocation makes the ends of its block due.
    #[inline]
    pub(crate) fn hold(&mut self, event: &Event<'_>, used: &UsedIds) -> bool {
        let kind = match event.kind {
            EventKind::Alloc(allocation) => {
                if self.count > 0 {
                    self.release(allocation.id);
                }
                return false;
            }
            EventKind::Promote(id) => EventKind::Promote(id),
            EventKind::Collect(id) => EventKind::Collect(id),
        };
        let is_ahead = kind.block_id().is_some_and(|id| !used.contains(id));
        is_ahead && self.push(Event { time: event.time, domain: event.domain, kind })
    }

    /// Holds an event back, unless there are too many.
    #[cold]
    fn push(&mut self, event: Event<'static>) -> bool {
        let Some(id) = event.kind.block_id() else { return false };
        if self.count >= MOST_HELD {
            return false;
        }
        self.count += 1;
        self.sequence += 1;
        let held = HeldEnd { sequence: self.sequence, event };
        self.waiting.entry(id).or_default().push(held);
        true
    }

    /// The ends of this block become due.
    fn release(&mut self, id: u64) {
        let ends = self.waiting.remove(&id).unwrap_or_default();
        self.count -= ends.len();
        self.due.extend(ends.into_iter().map(|held| held.event));
    }

    /// Everything that waits becomes due, in the order of the file: the allocations are
    /// missing from it.
    pub(crate) fn release_all(&mut self) {
        let mut ends: Vec<HeldEnd> = self.waiting.drain().flat_map(|(_, ends)| ends).collect();
        ends.sort_by_key(|held| held.sequence);
        self.count = 0;
        self.due.extend(ends.into_iter().map(|held| held.event));
    }

    /// Removes the next event that is due.
    pub(crate) fn next_due(&mut self) -> Option<Event<'static>> {
        self.due.pop_front()
    }

    /// How many events wait.
    pub(crate) fn len(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::event::{Allocation, Backtrace, Source};

    fn event(kind: EventKind<'_>) -> Event<'_> {
        Event { time: 0, domain: 0, kind }
    }

    fn due(held: &mut HeldEnds) -> Vec<u64> {
        std::iter::from_fn(|| held.next_due()).filter_map(|event| event.kind.block_id()).collect()
    }

    #[test]
    fn ends_follow_their_allocation() {
        let (mut held, mut used) = (HeldEnds::default(), UsedIds::default());
        used.add(0, 10);
        assert!(!held.hold(&event(EventKind::Collect(9)), &used), "its block is allocated");
        for kind in [EventKind::Promote(10), EventKind::Collect(11), EventKind::Collect(10)] {
            assert!(held.hold(&event(kind), &used));
        }
        assert_eq!(due(&mut held), []);
        let backtrace = Backtrace { frames: &[], common_prefix: 0, new: &[] };
        let source = Source::Minor;
        let allocation = Allocation { id: 10, length: 1, samples: 1, source, backtrace };
        used.add(10, 12);
        assert!(!held.hold(&event(EventKind::Alloc(allocation)), &used));
        assert_eq!(held.next_due().map(|event| event.kind), Some(EventKind::Promote(10)));
        assert_eq!(held.next_due().map(|event| event.kind), Some(EventKind::Collect(10)));
        assert_eq!((due(&mut held), held.len()), (Vec::new(), 1));
        held.release_all();
        assert_eq!((due(&mut held), held.len()), (vec![11], 0));
    }

    #[test]
    fn a_damaged_trace_cannot_fill_the_memory() {
        let (mut held, used) = (HeldEnds::default(), UsedIds::default());
        let kept = (0..MOST_HELD as u64 + 10)
            .filter(|&id| held.hold(&event(EventKind::Collect(id)), &used))
            .count();
        assert_eq!(kept, MOST_HELD);
        held.release_all();
        assert!(due(&mut held).into_iter().eq(0..MOST_HELD as u64), "in the order of the file");
    }
}
