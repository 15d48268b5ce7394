//! The time line of a sidecar, as evidence.

use heaptap_probes::{Heap, History};

use super::evidence::{CollectorShare, Timeline, TimelinePoint};
use crate::figures::probes::figures::ProbeClock;
use crate::figures::probes::intervals::{Interval, LiveBuckets, TimeLine};

/// More points help no reader.
const MOST_POINTS: u64 = 240;
/// Shorter intervals show the polling of the sidecar.
const SHORTEST_US: u64 = 100_000;

impl Timeline {
    /// What a sidecar says of the process; empty if it says nothing.
    pub fn of(history: &History) -> Timeline {
        let Some((first, last)) = history.span else { return Timeline::default() };
        let clock = ProbeClock::of(history);
        let (from, to) = (clock.micros(first), clock.micros(last));
        let width = (to.saturating_sub(from) / MOST_POINTS).max(SHORTEST_US);
        let count = (to.saturating_sub(from) / width).min(MOST_POINTS);
        let line = TimeLine::new(history, LiveBuckets { bucket_us: 1, most_bytes: &[] });
        let point = |number: u64| {
            let (from, to) = (from + number * width, from + (number + 1) * width);
            point(history, clock, &line.interval(from, to))
        };
        let points = (0..count).map(point).collect();
        Timeline { points, collector: collector(&line.interval(from, to)) }
    }
}

fn point(history: &History, clock: ProbeClock, interval: &Interval) -> TimelinePoint {
    let time = clock.time(interval.to_us);
    TimelinePoint {
        at_us: time / 1000,
        heap_bytes: interval.heap_bytes,
        used_bytes: interval.heap_used_bytes,
        rss_bytes: interval.rss_bytes,
        threads: interval.threads,
        cycles: history.heap.at(time).and_then(|heap| heap.major_collections),
        allocated_bytes: allocated_bytes(history, time),
    }
}

/// What the program had allocated by a time, in nanoseconds since the epoch.
pub fn allocated_bytes(history: &History, time: u64) -> Option<u64> {
    let word = history.start.as_ref().map_or(8, |start| u64::from(start.word_size));
    let total =
        |figure: fn(&Heap) -> Option<u64>| history.heap.total_at(time, &history.spacing, figure);
    let direct = total(|heap| heap.major_words).unwrap_or(0);
    let promoted = total(|heap| heap.promoted_words).unwrap_or(0);
    let words = total(|heap| heap.minor_words)?.saturating_add(direct.saturating_sub(promoted));
    Some(words.saturating_mul(word))
}

fn collector(whole: &Interval) -> Option<CollectorShare> {
    let watched_us = whole.to_us.saturating_sub(whole.from_us);
    let room = watched_us as f64 * 1e3 * whole.domains.unwrap_or(1).max(1) as f64;
    let share = |ns: u64| (ns as f64 / room).min(1.0);
    (whole.is_known && watched_us > 0).then(|| CollectorShare {
        minor: share(whole.minor.total_ns),
        major: share(whole.major.total_ns),
        finalisers: share(whole.finalisers.total_ns),
        longest_us: whole.paused().longest_ns / 1000,
        promoted: whole.promotion(),
        watched_us,
    })
}
