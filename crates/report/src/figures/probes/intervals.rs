//! The time line in intervals: what the collector did in each, and what memory the process had.

use heaptap_probes::history::{Merge, Series, Spacings};
use heaptap_probes::{Heap, History, Pauses, SliceKind, System};
use serde::Serialize;

use crate::figures::probes::figures::ProbeClock;

/// What happened in an interval. The field names are those of the JSON; times count from the
/// start of the trace. `None`: this runtime or this system does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Interval {
    pub from_us: u64,
    pub to_us: u64,
    pub minor_collections: Option<u64>,
    /// Major cycles that ended.
    pub major_collections: Option<u64>,
    pub compactions: Option<u64>,
    pub minor: Paused,
    pub major: Paused,
    pub finalisers: Paused,
    pub minor_words: Option<u64>,
    pub promoted_words: Option<u64>,
    /// The largest size of the major heap, and of its part that is not free.
    pub heap_bytes: Option<u64>,
    pub heap_used_bytes: Option<u64>,
    /// The largest of each.
    pub rss_bytes: Option<u64>,
    pub cgroup_usage_bytes: Option<u64>,
    pub cgroup_limit_bytes: Option<u64>,
    pub threads: Option<u64>,
    pub domains: Option<u64>,
    /// The largest live size by the samples of the trace.
    pub live_bytes: Option<f64>,
    /// Whether some of the interval is in the sidecar.
    #[serde(skip)]
    pub is_known: bool,
}

/// How long the program, or a domain of it, stood still.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Paused {
    pub count: u64,
    pub total_ns: u64,
    pub longest_ns: u64,
}

impl Paused {
    fn and(self, other: Paused) -> Paused {
        Paused {
            count: self.count.saturating_add(other.count),
            total_ns: self.total_ns.saturating_add(other.total_ns),
            longest_ns: self.longest_ns.max(other.longest_ns),
        }
    }
}

impl Interval {
    /// All pauses.
    pub fn paused(&self) -> Paused {
        self.minor.and(self.major).and(self.finalisers)
    }

    /// The promoted part of the words that were allocated in the minor heap.
    pub fn promotion(&self) -> Option<f64> {
        let (promoted, minor) = (self.promoted_words?, self.minor_words?);
        (minor > 0).then(|| promoted as f64 / minor as f64)
    }
}

/// The part of each interval, which follow each other, in which the program stood still; of
/// several domains, on average. `None` where the sidecar knows nothing.
///
/// A pause is recorded when it ends, so one that is longer than an interval began in those before.
pub fn paused_shares(rows: &[Interval]) -> Vec<Option<f64>> {
    let mut before = 0.0;
    let share = |row: &Interval| {
        let width = row.to_us.saturating_sub(row.from_us).max(1) as f64 * 1e3;
        let room = width * row.domains.unwrap_or(1).max(1) as f64;
        let paused = row.paused().total_ns as f64 + before;
        before = (paused - room).max(0.0);
        row.is_known.then(|| (paused / room).min(1.0))
    };
    let mut shares: Vec<Option<f64>> = rows.iter().rev().map(share).collect();
    shares.reverse();
    shares
}

/// The live size by the trace: the largest in each bucket of this many microseconds.
#[derive(Clone, Copy)]
pub struct LiveBuckets<'a> {
    pub bucket_us: u64,
    pub most_bytes: &'a [f64],
}

impl LiveBuckets<'_> {
    fn largest(&self, from_us: u64, to_us: u64) -> Option<f64> {
        let width = self.bucket_us.max(1);
        let (from, to) = (from_us / width, to_us.div_ceil(width));
        let at =
            |bucket: u64| usize::try_from(bucket).unwrap_or(usize::MAX).min(self.most_bytes.len());
        let found = self.most_bytes.get(at(from)..at(to)).unwrap_or_default();
        found.iter().copied().reduce(f64::max)
    }
}

/// A time line that can be asked for any interval.
pub struct TimeLine<'a> {
    history: &'a History,
    live: LiveBuckets<'a>,
    clock: ProbeClock,
    word: u64,
}

impl<'a> TimeLine<'a> {
    pub fn new(history: &'a History, live: LiveBuckets<'a>) -> TimeLine<'a> {
        let word = history.start.as_ref().map_or(8, |start| u64::from(start.word_size));
        TimeLine { history, live, clock: ProbeClock::of(history), word }
    }

    /// As many intervals of this width.
    pub fn intervals(&self, width_us: u64, count: usize) -> Vec<Interval> {
        let from = |number: usize| (number as u64).saturating_mul(width_us);
        (0..count).map(|number| self.interval(from(number), from(number + 1))).collect()
    }

    /// What happened after `from_us`, until `to_us`.
    pub fn interval(&self, from_us: u64, to_us: u64) -> Interval {
        let History { heap, system, pauses, spacing, .. } = self.history;
        // Of the start, a sidecar has only what was before: totals grow from there.
        let from = self.clock.time(from_us);
        let to = self.clock.time(to_us);
        // What does not change has no point, but behind the end nothing is known.
        let span = self.history.span;
        let known = span.is_some_and(|(_, last)| from < last);
        // `to` is the last nanosecond of its microsecond: to end with the first event is not enough.
        let is_known =
            span.is_some_and(|(first, last)| from < last && first < to.saturating_sub(999));
        let growth = |total: fn(&Heap) -> Option<u64>| growth(heap, spacing, (from, to), total);
        let bytes = |words: fn(&Heap) -> Option<u64>| {
            largest(heap, from, to, known, words).map(|words| words.saturating_mul(self.word))
        };
        let most = |figure: fn(&System) -> Option<u64>| largest(system, from, to, known, figure);
        let paused = |kind: SliceKind| {
            pauses
                .get(usize::from(kind.number()))
                .map(|series| paused(series, spacing, (from, to)))
                .unwrap_or_default()
        };
        Interval {
            from_us,
            to_us,
            minor_collections: growth(|heap| heap.minor_collections),
            major_collections: growth(|heap| heap.major_collections),
            compactions: growth(|heap| heap.compactions),
            minor: paused(SliceKind::Minor),
            major: paused(SliceKind::Major),
            finalisers: paused(SliceKind::Finalisers),
            minor_words: growth(|heap| heap.minor_words),
            promoted_words: growth(|heap| heap.promoted_words),
            heap_bytes: bytes(|heap| heap.heap_words),
            heap_used_bytes: bytes(|heap| heap.live_words),
            rss_bytes: most(|system| system.rss),
            cgroup_usage_bytes: most(|system| system.cgroup_usage),
            cgroup_limit_bytes: most(|system| system.cgroup_limit),
            threads: most(|system| system.threads),
            domains: most(|system| system.domains),
            live_bytes: self.live.largest(from_us, to_us),
            is_known,
        }
    }
}

/// The points after one time, until another.
fn points<T>(series: &Series<T>, from: u64, to: u64) -> &[(u64, T)] {
    let behind = |time: u64| series.points.partition_point(|&(at, _)| at <= time);
    series.points.get(behind(from)..behind(to)).unwrap_or_default()
}

/// How much a total grew; `None` before its first point.
fn growth<T: Merge + Clone>(
    series: &Series<T>,
    spacing: &Spacings,
    (from, to): (u64, u64),
    total: fn(&T) -> Option<u64>,
) -> Option<u64> {
    let at = |time: u64| series.total_at(time, spacing, total);
    Some(at(to)?.saturating_sub(at(from).unwrap_or(0)))
}

/// The largest value in an interval, or the one that it began with, if that is known.
fn largest<T: Merge + Clone>(
    series: &Series<T>,
    from: u64,
    to: u64,
    known: bool,
    figure: fn(&T) -> Option<u64>,
) -> Option<u64> {
    let inside = points(series, from, to).iter().filter_map(|(_, point)| figure(point)).max();
    inside.or_else(|| series.at(from).filter(|_| known).and_then(figure))
}

/// The longest pause is that of the row in which it was found.
fn paused(series: &Series<Pauses>, spacing: &Spacings, (from, to): (u64, u64)) -> Paused {
    let growth = |total: fn(&Pauses) -> Option<u64>| growth(series, spacing, (from, to), total);
    let longest = points(series, from, to).iter().map(|(_, point)| point.longest_ns).max();
    Paused {
        count: growth(|pauses| Some(pauses.count)).unwrap_or(0),
        total_ns: growth(|pauses| Some(pauses.total_ns)).unwrap_or(0),
        longest_ns: longest.unwrap_or(0),
    }
}

/// A width of 1, 2 or 5 times a power of ten, in microseconds, of which at most `most` cover a duration.
pub fn round_width(duration_us: u64, most: usize) -> u64 {
    let least = duration_us.div_ceil(most.max(1) as u64).max(1);
    let steps = (0..19).flat_map(|power| [1, 2, 5].map(|step| step * 10_u64.pow(power)));
    steps.into_iter().find(|&width| width >= least).unwrap_or(least)
}

#[cfg(test)]
mod tests {
    use heaptap_probes::{Event, Start, Thinner, Thinning, Timed};

    use super::*;

    /// The first tick is recorded a millisecond after the start; if the file continues another one,
    /// at the start.
    fn history(continues: bool) -> History {
        let mut history = History::default();
        let start = Start { trace_start: 1_000_000, word_size: 8, ..Start::default() };
        history.add(Timed { time: 1_000_000_000, event: Event::Start(start) });
        for tick in 1..=100_u64 {
            let time = 1_000_000_000 + (tick - u64::from(continues)) * 1_000_000;
            let heap = Heap {
                minor_collections: Some(tick * 3),
                heap_words: Some(100 + tick % 10),
                ..Heap::default()
            };
            let total_ns = tick * 40;
            let pauses =
                Pauses { kind: SliceKind::Minor, count: tick * 3, total_ns, longest_ns: tick };
            for event in [Event::Heap(heap), Event::Pauses(pauses)] {
                history.add(Timed { time, event });
            }
        }
        history
    }

    /// Whatever the width, sums over all intervals are the totals, and largest values the largest.
    #[test]
    fn nothing_is_lost_or_counted_twice_between_intervals() {
        let history = history(false);
        let live = LiveBuckets { bucket_us: 1_024, most_bytes: &[5.0, 9.0, 7.0] };
        let line = TimeLine::new(&history, live);
        for width in [700, 1_000, 3_333, 50_000, 200_000] {
            let rows = line.intervals(width, 100_000_u64.div_ceil(width) as usize);
            let sum = |part: fn(&Interval) -> u64| rows.iter().map(part).sum::<u64>();
            assert_eq!(sum(|row| row.minor_collections.unwrap_or(0)), 300, "{width}");
            assert_eq!(sum(|row| row.minor.count), 300);
            assert_eq!(sum(|row| row.minor.total_ns), 4_000);
            assert_eq!(rows.iter().map(|row| row.minor.longest_ns).max(), Some(100));
            assert_eq!(rows.iter().filter_map(|row| row.heap_bytes).max(), Some(8 * 109));
            assert!(
                rows.iter().all(|row| row.major_collections.is_none() && row.rss_bytes.is_none())
            );
            assert_eq!(rows[0].live_bytes, Some(if width < 1_024 { 5.0 } else { 9.0 }));
        }
        let whole = line.interval(0, 100_000);
        assert_eq!((whole.minor.count, whole.paused().longest_ns), (300, 100));
        assert_eq!(line.interval(500_000, 600_000).heap_bytes, None, "known behind the end");
    }

    /// A pause is recorded when it ends. What is not in the sidecar is not known.
    #[test]
    fn no_interval_was_paused_longer_than_it_lasted() {
        let mut history = History::default();
        let start = Start { trace_start: 0, word_size: 8, ..Start::default() };
        history.add(Timed { time: 2_000_000_000, event: Event::Start(start) });
        for (time, total_ns) in [(5_000_000_000, 0), (6_000_000_000, 2_500_000_000)] {
            let (kind, count) = (SliceKind::Major, 1);
            let pauses = Pauses { kind, count, total_ns, longest_ns: total_ns };
            history.add(Timed { time, event: Event::Pauses(pauses) });
        }
        let line = TimeLine::new(&history, LiveBuckets { bucket_us: 1, most_bytes: &[] });
        let mut rows = line.intervals(1_000_000, 8);
        let shares = paused_shares(&rows);
        let known = [Some(0.0), Some(0.5), Some(1.0), Some(1.0)];
        assert_eq!(
            (&shares[..2], &shares[2..6], &shares[6..]),
            (&[None; 2][..], &known[..], &[None; 2][..])
        );
        // Of five domains, each may stand still all the time.
        rows.iter_mut().for_each(|row| row.domains = Some(5));
        assert_eq!(paused_shares(&rows)[5], Some(0.5));
    }

    /// A program that does nothing has a heap all the same.
    #[test]
    fn what_does_not_change_is_known_to_the_end() {
        let mut history = history(false);
        let idle = Event::Log { text: "idle".to_owned() };
        history.add(Timed { time: 61_000_000_000, event: idle });
        let line = TimeLine::new(&history, LiveBuckets { bucket_us: 1, most_bytes: &[] });
        assert_eq!(line.interval(59_000_000, 60_000_000).heap_bytes, Some(8 * 100));
        assert_eq!(line.interval(60_000_000, 61_000_000).heap_bytes, None);
    }

    /// What an earlier file has counted is not counted again.
    #[test]
    fn totals_of_a_file_that_continues_another_grow_from_its_start() {
        let history = history(true);
        let line = TimeLine::new(&history, LiveBuckets { bucket_us: 1, most_bytes: &[] });
        for width in [700, 50_000, 200_000] {
            let rows = line.intervals(width, 100_000_u64.div_ceil(width) as usize);
            let collections = rows.iter().filter_map(|row| row.minor_collections).sum::<u64>();
            let pauses = rows.iter().map(|row| row.minor.count).sum::<u64>();
            assert_eq!((collections, pauses), (297, 297), "{width}");
            assert!(rows[0].heap_bytes.is_some(), "the state at the start is not known");
        }
    }

    /// What was thinned to rows of a minute has the same rate in any interval, and the same sums.
    #[test]
    fn intervals_may_be_shorter_than_the_time_between_rows() {
        let mut thinner =
            Thinner::new(Thinning { now: 9_000 * 1_000_000_000, level: 0, drop_log: 0 });
        let mut few = History::default();
        let mut keep = |timed: Timed| -> Result<(), ()> {
            few.add(timed);
            Ok(())
        };
        let start = Start { trace_start: 60_000_000, word_size: 8, ..Start::default() };
        thinner.add(Timed { time: 60_000_000_000, event: Event::Start(start) }, &mut keep).unwrap();
        for tick in 1..=36_000_u64 {
            let time = 60_000_000_000 + tick * 100_000_000;
            let heap = Heap { minor_collections: Some(tick * 10), ..Heap::default() };
            thinner.add(Timed { time, event: Event::Heap(heap) }, &mut keep).unwrap();
        }
        thinner.finish(&mut keep).unwrap();
        assert!(few.heap.points.len() < 70, "{} rows", few.heap.points.len());
        let line = TimeLine::new(&few, LiveBuckets { bucket_us: 1, most_bytes: &[] });
        for width in [7_000_000, 18_000_000, 60_000_000] {
            let rows = line.intervals(width, 3_600_000_000_u64.div_ceil(width) as usize);
            let sum: u64 = rows.iter().filter_map(|row| row.minor_collections).sum();
            assert_eq!(sum, 360_000, "{width}");
            let (due, whole) = (width / 10_000, rows.split_last().unwrap().1);
            for row in whole {
                let found = row.minor_collections.unwrap();
                assert!(found.abs_diff(due) <= due / 50, "{found} for {due} in {width}: {row:?}");
            }
        }
    }

    #[test]
    fn widths_are_round() {
        assert_eq!(round_width(10_000_000, 20), 500_000);
        assert_eq!(round_width(10_000_001, 20), 1_000_000);
        assert_eq!((round_width(0, 20), round_width(19, 20), round_width(1, 0)), (1, 1, 1));
        assert!(round_width(u64::MAX, 1) > u64::MAX / 20);
    }
}
