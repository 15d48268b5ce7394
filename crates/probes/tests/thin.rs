//! A thinned file says the same as the whole one, however often and however much it was thinned.

use heaptap_probes::thin::log_bytes;
use heaptap_probes::{
    Dropped, Encoder, Event, Heap, History, Pauses, ProbeKind, Sample, SliceKind, Spacing, Start,
    System, Thinner, Thinning, Timed,
};

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A whole minute.
const START: u64 = 1_699_999_980 * SECOND;
const TICK: u64 = SECOND / 10;

/// A file of this many ticks, in which everything changes at each, and a log line each second.
fn file(ticks: u64, probes: u32) -> Vec<Timed> {
    let at = |tick: u64, event: Event| Timed { time: START + tick * TICK, event };
    let start = Start { trace_start: START / 1_000, word_size: 8, ..Start::default() };
    let mut events = vec![at(0, Event::Start(start))];
    for probe in 0..probes {
        let kind = if probe == 0 { ProbeKind::Count } else { ProbeKind::Value };
        events.push(at(1, Event::Probe { probe, kind, name: format!("p/{probe}") }));
    }
    let mut seed = 1_u64;
    for tick in 1..=ticks {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = seed >> 40;
        let kind = SliceKind::Minor;
        events.push(at(tick, Event::Slice { kind, domain: 0, ns: random }));
        let pauses = Pauses { kind, count: tick, total_ns: tick * 7, longest_ns: random };
        events.push(at(tick, Event::Pauses(pauses)));
        let heap = Heap {
            minor_collections: Some(tick),
            heap_words: Some(random % 1_000),
            live_words: Some(random % 777),
            ..Heap::default()
        };
        events.push(at(tick, Event::Heap(heap)));
        let rss = Some(random % 5_000);
        events.push(at(tick, Event::System(System { rss, threads: Some(2), ..System::default() })));
        for probe in 0..probes {
            let value = (random % 100 + u64::from(probe)) as f64;
            events.push(at(
                tick,
                match probe {
                    0 => Event::Count { probe, total: 3 * tick },
                    _ => Event::Value { probe, last: value, least: -value, greatest: value },
                },
            ));
        }
        if tick % 10 == 0 {
            events.push(at(tick, Event::Log { text: format!("tick {tick:07}") }));
        }
    }
    events
}

fn thinned(events: &[Timed], thinning: Thinning) -> (Vec<Timed>, Dropped) {
    let mut kept = Vec::new();
    let mut keep = |timed: Timed| -> Result<(), ()> {
        kept.push(timed);
        Ok(())
    };
    let mut thinner = Thinner::new(thinning);
    events.iter().for_each(|timed| thinner.add(timed.clone(), &mut keep).unwrap());
    let dropped = thinner.finish(&mut keep).unwrap();
    (kept, dropped)
}

fn history(events: &[Timed]) -> History {
    let mut history = History::default();
    events.iter().for_each(|timed| history.add(timed.clone()));
    history
}

fn bytes(events: &[Timed]) -> usize {
    let mut encoder = Encoder::new(1);
    let full: usize = events.iter().filter_map(|timed| encoder.add(timed)).map(|p| p.len()).sum();
    full + encoder.take().map_or(0, |packet| packet.len())
}

/// What must be the same however many rows there are: in each minute, the growth of totals, the longest
/// pause and the largest sizes, and the least and greatest of a value.
fn by_minute(history: &History, ticks: u64) -> Vec<[u64; 8]> {
    let minute = |time: u64| (time - START) / MINUTE;
    let minutes = minute(START + ticks * TICK) + 1;
    let pauses = &history.pauses[0].points;
    let heap = &history.heap.points;
    let value = history.probes().nth(1).unwrap();
    let most = |times: &mut dyn Iterator<Item = (u64, u64)>, at: u64| {
        times.filter(|&(time, _)| minute(time) == at).map(|(_, value)| value).max().unwrap_or(0)
    };
    let row = |at: u64| {
        let end = START + (at + 1) * MINUTE - 1;
        let count = match history.probes().next().unwrap().series.at(end) {
            Some(Sample::Count(total)) => *total,
            other => panic!("{other:?}"),
        };
        let sums = history.pauses[0].at(end).unwrap();
        let extremes = value.series.points.iter().filter_map(|(time, sample)| match sample {
            Sample::Value { least, greatest, .. } => {
                assert_eq!(*least, -*greatest);
                Some((*time, *greatest as u64))
            }
            _ => None,
        });
        [
            count,
            sums.count,
            sums.total_ns,
            history.heap.at(end).unwrap().minor_collections.unwrap(),
            most(&mut pauses.iter().map(|(time, p)| (*time, p.longest_ns)), at),
            most(&mut heap.iter().map(|(time, h)| (*time, h.heap_words.unwrap())), at),
            most(&mut history.system.points.iter().map(|(t, s)| (*t, s.rss.unwrap())), at),
            most(&mut { extremes }, at),
        ]
    };
    (0..minutes).map(row).collect()
}

fn check_minutes(few: &History, whole: &History, ticks: u64) {
    let (few, whole) = (by_minute(few, ticks), by_minute(whole, ticks));
    assert_eq!(few.len(), whole.len());
    for (minute, (few, whole)) in few.iter().zip(&whole).enumerate() {
        assert_eq!(few, whole, "minute {minute}");
    }
}

#[test]
fn sums_and_extremes_are_those_of_all_rows() {
    let ticks = 40_000 + 77;
    let all = file(ticks, 3);
    let now = START + ticks * TICK;
    let (kept, dropped) = thinned(&all, Thinning { now, level: 0, drop_log: 0 });
    let (whole, few) = (history(&all), history(&kept));
    check_minutes(&few, &whole, ticks);
    // 407 s by the minute, the last hour by the second, its last minute by the tick; up to three rows
    // where sizes fall.
    let rows = few.pauses[0].points.len();
    assert!((7 + 3_540 + 600..=9 + 3_541 + 601).contains(&rows), "{rows} rows");
    let heaps = few.heap.points.len();
    assert!((rows..=3 * rows).contains(&heaps), "{heaps} rows");
    // No line is lost; slices are counted.
    assert_eq!(few.log, whole.log);
    assert_eq!(dropped, Dropped { logs: 0, slices: ticks - few.slices.len() as u64 });
    assert_eq!(few.span, whole.span);
    // The longest pause is there with its time.
    let longest = |history: &History| history.slices.iter().map(|s| (s.ns, s.time)).max();
    assert_eq!(longest(&few), longest(&whole));
}

/// A program that runs for long is thinned again and again.
#[test]
fn thinning_again_says_the_same_as_once() {
    let ticks = 40_000;
    let all = file(ticks, 2);
    let mut file = Vec::new();
    for (tick, timed) in all.iter().enumerate() {
        file.push(timed.clone());
        if tick % 50_000 == 49_999 {
            file = thinned(&file, Thinning { now: timed.time, level: 0, drop_log: 0 }).0;
        }
    }
    let end = Thinning { now: START + ticks * TICK, level: 0, drop_log: 0 };
    let (again, once) = (thinned(&file, end).0, thinned(&all, end).0);
    check_minutes(&history(&again), &history(&all), ticks);
    assert_eq!(bytes(&again), bytes(&once));
    assert_eq!(thinned(&once, end).0.len(), once.len(), "it has not settled");
}

/// However many quantities there are, some level makes them fit.
#[test]
fn a_higher_level_keeps_less_and_the_same_sums() {
    let ticks = 36_000;
    let all = file(ticks, 4);
    let now = START + ticks * TICK;
    let sizes: Vec<usize> = (0..=Thinning::MAX_LEVEL)
        .map(|level| {
            let (kept, _) = thinned(&all, Thinning { now, level, drop_log: u64::MAX });
            let last = history(&kept);
            assert_eq!(last.pauses[0].last().unwrap().count, ticks, "level {level}");
            bytes(&kept)
        })
        .collect();
    let halves = sizes.windows(2).filter(|pair| pair[0] > 20_000);
    halves.for_each(|pair| assert!(pair[1] * 3 < pair[0] * 2, "{sizes:?}"));
    assert!(*sizes.last().unwrap() < 2_000, "{sizes:?}");
}

#[test]
fn the_oldest_lines_go_first_and_are_counted() {
    let all = file(1_000, 0);
    let line = log_bytes(&Event::Log { text: "tick 0000010".into() });
    let thinning = Thinning { now: START, level: 0, drop_log: 3 * line - 1 };
    let (kept, dropped) = thinned(&all, thinning);
    assert_eq!(dropped, Dropped { logs: 3, slices: 0 });
    let log = history(&kept).log;
    assert_eq!((log.len(), log[0].1.as_str()), (97, "tick 0000040"));
}

/// Nothing changes for a day but the time.
#[test]
fn what_does_not_change_takes_no_room() {
    let mut events = file(1, 0);
    let system = System { rss: Some(7), ..System::default() };
    for second in 1..=86_400 {
        let time = START + second * SECOND;
        events.push(Timed { time, event: Event::System(system) });
    }
    let now = START + 86_400 * SECOND;
    let (kept, _) = thinned(&events, Thinning { now, level: 0, drop_log: 0 });
    assert!(bytes(&kept) < 5_000, "{} bytes", bytes(&kept));
    let few = history(&kept);
    assert_eq!(few.span.unwrap().1, now);
    assert_eq!(few.system.at(START + HOUR), Some(&system));
}

/// A file that continues another begins with what was before: growth counts from there.
#[test]
fn what_was_before_the_file_stays_apart() {
    let mut events = file(2_000, 1);
    let before = Pauses { kind: SliceKind::Minor, count: 900, total_ns: 9, longest_ns: 0 };
    let rest = events.split_off(2);
    events.push(Timed { time: START, event: Event::Pauses(before) });
    events.extend(rest);
    let now = START + 7_200 * SECOND;
    let (kept, _) = thinned(&events, Thinning { now, level: 3, drop_log: 0 });
    let few = history(&kept);
    assert_eq!(few.pauses[0].at(START), Some(&before));
    assert_eq!(few.pauses[0].last().unwrap().count, 2_000);
}

/// Where rows were apart already, they stay known to be.
#[test]
fn the_file_says_how_far_apart_its_rows_are() {
    let mut events = file(100, 0);
    let paced = Spacing { until: u64::MAX, ns: 5 * SECOND };
    events.push(Timed { time: START + 20 * SECOND, event: Event::Spacing(paced) });
    let now = START + 2 * HOUR;
    let thinning = Thinning { now, level: 0, drop_log: 0 };
    let (kept, _) = thinned(&events, thinning);
    let (again, _) = thinned(&kept, Thinning { now: now + SECOND, ..thinning });
    for file in [kept, again] {
        let spacing = history(&file).spacing;
        assert_eq!(spacing.at(START + 10 * SECOND), 10 * SECOND);
        assert_eq!(spacing.at(START + 90 * SECOND), MINUTE);
        assert_eq!(spacing.at(START + HOUR + 9 * SECOND), 5 * SECOND);
        assert_eq!(spacing.at(now), 5 * SECOND);
        assert_eq!(spacing.at(START - 1), 0);
    }
}
