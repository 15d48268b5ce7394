//! Since when a block must be old to have lived through a whole major collection.

use heaptap_probes::{Heap, History};

use crate::figures::probes::figures::ProbeClock;

/// When the last major collection began that has ended by this moment, or a little before: its
/// end is known to a tick. A collection begins when the one before has ended. 0 if no whole one
/// was seen, `None` if they are not counted.
pub fn old_before(history: &History, moment: Option<u64>) -> Option<u64> {
    let clock = ProbeClock::of(history);
    let end = moment.map_or(u64::MAX, |moment| clock.time(moment));
    let points = &history.heap.points;
    let past = &points[..points.partition_point(|&(time, _)| time <= end)];
    let ended = past.last()?.1.major_collections?;
    // The last tick that has not seen the end of the one before.
    let is_before =
        |heap: &Heap| heap.major_collections.is_some_and(|seen| seen < ended.saturating_sub(1));
    let tick = past.iter().rev().find(|(_, heap)| is_before(heap));
    Some(tick.map_or(0, |&(time, _)| clock.micros(time)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_older_than_a_whole_major_collection_has_survived_one() {
        let mut history = History::default();
        assert_eq!(old_before(&history, None), None);
        // Ticks each 100 ms, and how many collections have ended.
        for (tick, ended) in [4, 4, 5, 5, 5, 6, 8, 8].into_iter().enumerate() {
            let heap = Heap { major_collections: Some(ended), ..Heap::default() };
            history.heap.points.push((tick as u64 * 100_000_000, heap));
        }
        let before = |ms: u64| old_before(&history, Some(ms * 1000)).unwrap() / 1000;
        // The fifth ends between 100 and 200 ms, but nobody has seen it begin.
        assert_eq!((before(100), before(250)), (0, 0));
        // The sixth begins then, and ends between 400 and 500 ms.
        assert_eq!((before(499), before(500)), (0, 100));
        // Two end in one tick: the last of them begins within it, so after 500 ms.
        assert_eq!(before(600), 500);
        assert_eq!(old_before(&history, None), Some(500_000));
        history.heap.points.clear();
        history.heap.points.push((0, Heap::default()));
        assert_eq!(old_before(&history, None), None, "they are not counted");
    }
}
