//! The format's limits, one by one: each test makes sure that its trace really
//! is at the limit it is about.

use std::collections::HashSet;

use heaptap_trace::TraceReader as _;
use heaptap_trace::{Block, Code, Encoder, EventSink as _, Format, Frames, Mode, Reader, Source};
use proptest::prelude::*;

use crate::debug_info::DebugInfo;
use crate::generate::{NUMBER_LIMITS, cases, plain_info};
use crate::oracle::{self, PlainTrace};
use crate::reading::{RecordedEvent, RecordedKind, read_strictly};
use crate::round_trip::check;
use crate::script::{Script, Step, Style};

pub(crate) const SMALL: Block = Block { length: 2, samples: 1, source: Source::Minor };

/// An allocation right after the last event.
pub(crate) fn alloc(domain: u16, keep: usize, calls: Vec<(Code, usize)>) -> Step {
    Step::Alloc { domain, wait: 1, block: SMALL, keep, calls }
}

/// Calls of different functions.
pub(crate) fn distinct(codes: std::ops::Range<Code>) -> Vec<(Code, usize)> {
    codes.map(|code| (code, 1)).collect()
}

pub(crate) fn script(format: Format, steps: Vec<Step>) -> Script {
    Script {
        format,
        info: plain_info(),
        steps,
        debug_info: DebugInfo { files: 50, ..DebugInfo::default() },
    }
}

/// The depths at which a script's backtraces and the trace's end.
fn depths(script: &Script, trace: &PlainTrace) -> Vec<(usize, usize)> {
    let want = script.perform(Style::Whole).recorded;
    want.iter().zip(trace.recorded()).map(|(a, b)| (a.frames().len(), b.frames().len())).collect()
}

fn longest_runs(trace: &PlainTrace) -> usize {
    trace.events().map(|event| event.longest_runs).sum()
}

#[test]
fn a_recursion_of_thousands_of_frames_is_whole() {
    let steps = vec![
        alloc(0, 0, vec![(7, 5000)]),
        alloc(0, 4000, vec![(8, 1), (7, 3000), (9, 1)]),
        alloc(0, 0, vec![(7, 9000)]),
    ];
    let script = script(Format::V2, steps);
    let trace = check(&script);
    assert_eq!(depths(&script, &trace), [(5000, 5000), (7002, 7002), (9000, 9000)]);
}

#[test]
fn a_backtrace_over_4096_bytes_is_cut_and_later_ones_may_share_what_was_cut() {
    let steps = vec![
        // 409 misses of 10 bytes each are 4,090 bytes.
        alloc(0, 0, distinct(1000..1600)),
        // More in common than the reader has: it keeps what it has.
        alloc(0, 500, distinct(2000..2010)),
        alloc(0, 505, distinct(3000..3001)),
        // Just what it has, and less: whole again.
        alloc(0, 409, distinct(4000..4005)),
        alloc(0, 100, distinct(5000..5005)),
        // The same codes are in the cache now, and take little room.
        alloc(0, 0, distinct(1000..1400)),
    ];
    let script = script(Format::V2, steps);
    let trace = check(&script);
    let want = [(600, 409), (510, 409), (506, 409), (414, 414), (105, 105), (400, 400)];
    assert_eq!(depths(&script, &trace), want);
}

#[test]
fn a_backtrace_may_end_at_any_byte_near_the_limit() {
    // Hits take 2 bytes where predictions fail, misses 10: each number of
    // leading hits brings the limit to another place in an entry.
    for hits in 0..10 {
        let shuffled = (0..hits).map(|at| (1 + at * 7 % 12, 1)).collect();
        let mut calls: Vec<_> = shuffled;
        calls.extend(distinct(10_000..10_500));
        // The last frames are known: coded as hits, right at the limit.
        for known in 402..410 {
            let mut calls = calls.clone();
            calls.truncate(hits as usize + known);
            calls.extend(vec![(1, 1), (3, 1), (2, 1), (1, 600), (5, 1), (5, 300)]);
            let steps = vec![alloc(0, 0, distinct(1..13)), alloc(0, 0, calls)];
            check(&script(Format::V2, steps));
        }
    }
}

#[test]
fn a_recursion_of_a_million_frames_is_cut_like_any_other() {
    // Runs of 256 frames in 3 bytes: 4,086 bytes hold some 348,000 frames.
    for depth in [347_000, 349_000, 3_000_000] {
        let steps = vec![alloc(0, 0, vec![(7, 3)]), alloc(0, 0, vec![(7, depth), (8, 1)])];
        let script = script(Format::V2, steps);
        let trace = check(&script);
        let recorded = depths(&script, &trace)[1].1;
        if depth < 348_000 {
            assert_eq!(recorded, depth + 1);
        } else {
            assert!((348_000..350_000).contains(&recorded), "{recorded} frames of {depth}");
        }
    }
}

#[test]
fn predictions_run_over_255() {
    for depth in [254, 255, 256, 257, 258, 510, 511, 512, 513, 514, 768, 1025] {
        let steps = vec![
            alloc(0, 0, vec![(7, depth)]),
            alloc(0, 0, vec![(6, 1), (7, depth), (8, 1)]),
            alloc(0, 0, vec![(7, depth), (9, 2)]),
        ];
        let trace = check(&script(Format::V2, steps));
        assert_eq!(longest_runs(&trace) > 0, depth > 255, "at {depth}");
    }
}

#[test]
fn predictions_of_different_frames_run_over_255_too() {
    let ring = || distinct(1..300);
    let steps = vec![
        alloc(0, 0, ring()),
        alloc(0, 0, [vec![(999, 1)], ring()].concat()),
        alloc(0, 0, [vec![(998, 1)], ring(), ring(), ring()].concat()),
        alloc(0, 0, [vec![(997, 1)], ring(), ring(), ring()].concat()),
    ];
    let trace = check(&script(Format::V2, steps));
    assert!(longest_runs(&trace) >= 3);
}

#[test]
fn more_codes_than_slots_evict_each_other() {
    let mut steps = Vec::new();
    // 20,000 codes in two rounds, eight apart so that stacks overlap.
    for round in 0..2 {
        for first in (1..20_000).step_by(8) {
            steps.push(alloc(0, round, distinct(first..first + 12)));
        }
    }
    let trace = check(&script(Format::V2, steps));
    let explained: usize = trace.events().filter(|event| event.recorded.is_none()).count() - 1;
    assert_eq!(trace.locations.len(), 20_004);
    assert!(explained > 25_000, "only {explained} misses: few codes were evicted");
}

#[test]
fn numbers_at_every_limit() {
    let mut steps = Vec::new();
    for length in NUMBER_LIMITS {
        for samples in NUMBER_LIMITS {
            for source in [Source::Minor, Source::Major, Source::External] {
                let block = Block { length, samples: samples.clamp(1, length + 1), source };
                steps.push(Step::Alloc { domain: 0, wait: 0, block, keep: 1, calls: vec![(5, 1)] });
            }
        }
    }
    check(&script(Format::V2, steps));
}

#[test]
fn distances_at_every_limit() {
    let debug_info = DebugInfo::default();
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &plain_info()).unwrap();
    let (first, time) = (100_000_000_000 * 10_000_000, plain_info().start_time);
    encoder.domain(0).renumber(time, first).unwrap();
    let whole = Frames::Whole(&[5]);
    assert_eq!(encoder.domain(0).alloc(time, SMALL, whole, &mut &debug_info).unwrap(), first);
    let mut recorded = vec![RecordedKind::Alloc { id: first, block: SMALL, frames: vec![5] }];
    for distance in NUMBER_LIMITS.into_iter().filter(|&distance| distance <= first) {
        encoder.domain(0).promote(time, first - distance, &mut &debug_info).unwrap();
        recorded.push(RecordedKind::Promote(first - distance));
        // Collections may also be of younger objects, of other domains.
        for id in [first - distance, first + distance, first + distance + 1] {
            encoder.domain(0).collect(time, id, &mut &debug_info).unwrap();
            recorded.push(RecordedKind::Collect(id));
        }
    }
    let bytes = encoder.finish(&mut &debug_info).unwrap();
    let reading = read_strictly(&bytes);
    assert!(reading.recorded.iter().map(|recorded| &recorded.kind).eq(&recorded));
    assert!(oracle::read(&bytes).recorded().eq(&reading.recorded));
}

#[test]
fn domains_interleave_and_take_ids_in_blocks() {
    let mut steps = Vec::new();
    for turn in 0..24_000_u64 {
        let domain = [0, 3, 65_535][(turn % 3) as usize];
        steps.push(alloc(domain, 3, vec![(1 + turn % 5, 1), (10 + turn % 7, 2)]));
        if turn % 5 == 0 {
            // Any domain may see any object die.
            steps.push(Step::Collect { domain, wait: 3, back: (turn % 91) as usize });
            steps.push(Step::Promote { domain: 3, wait: 0, back: 1 });
        }
    }
    steps.extend((0..12_500).map(|_| alloc(3, 1, vec![])));
    let trace = check(&script(Format::V3, steps));
    let ids = trace.recorded().filter_map(|recorded| match recorded.kind {
        RecordedKind::Alloc { id, .. } => Some(id),
        _ => None,
    });
    let ids: HashSet<u64> = ids.collect();
    assert_eq!(ids.len(), 36_500, "no id is given out twice");
    let blocks: HashSet<u64> = ids.iter().map(|id| id / 10_000).collect();
    assert_eq!(blocks.len(), 5, "8,000 ids are one block, 20,500 are three");
    // The first domain has the first block: others' ids are ahead of it.
    let ahead = |recorded: &&RecordedEvent| matches!(recorded.kind, RecordedKind::Collect(10_000..) if recorded.domain == 0);
    assert!(trace.recorded().filter(ahead).count() > 100);
}

#[test]
fn the_clock_stands_still_and_leaps() {
    let waits = [
        0,
        0,
        0,
        29_999_999,
        1,
        30_000_000,
        30_000_001,
        33_554_431,
        33_554_432,
        33_554_433,
        3_600_000_000,
        1 << 50,
        0,
        5,
    ];
    for flushes in [false, true] {
        let mut steps = Vec::new();
        for wait in waits {
            steps.push(Step::Alloc { domain: 0, wait, block: SMALL, keep: 0, calls: vec![(1, 1)] });
            steps.push(Step::Collect { domain: 0, wait, back: 0 });
            if flushes {
                steps.push(Step::Flush);
            }
        }
        let script = script(Format::V2, steps);
        let trace = check(&script);
        let times: Vec<u64> =
            trace.recorded().map(|recorded: &RecordedEvent| recorded.time).collect();
        assert!(times.windows(2).any(|pair| pair[0] == pair[1]));
        assert!(times.windows(2).any(|pair| pair[1] - pair[0] > 30_000_000));
    }
}

proptest! {
    #![proptest_config(cases(24))]

    /// Stacks that grow and shrink by a lot, in few events.
    #[test]
    fn deep_stacks(
        changes in proptest::collection::vec(
            (any::<usize>(), 1..60_u64, 1..700_u64, 0..400_usize), 1..25,
        ),
    ) {
        let steps = changes.into_iter().map(|(keep, first, count, times)| {
            let calls = distinct(first * 100..first * 100 + count);
            alloc(0, keep, [calls, vec![(first, times)]].concat())
        });
        check(&script(Format::V2, steps.collect()));
    }

    /// A flush after any event changes packets, not events.
    #[test]
    fn flushes_anywhere(flushes in proptest::collection::vec(any::<bool>(), 80)) {
        let mut steps = Vec::new();
        for (at, &flush) in flushes.iter().enumerate() {
            let at = at as u64;
            steps.push(alloc((at % 2) as u16, 2, distinct(at..at + 3).split_off(1)));
            if flush {
                steps.push(Step::Flush);
            }
        }
        let quiet = steps.iter().filter(|step| !matches!(step, Step::Flush)).cloned().collect();
        let flushed = script(Format::V3, steps);
        check(&flushed);
        let recorded = flushed.perform(Style::Whole).recorded;
        prop_assert_eq!(recorded, script(Format::V3, quiet).perform(Style::Whole).recorded);
    }
}

/// An idle program has a trace that lasts as long as it did, with the same events.
#[test]
fn a_trace_covers_the_time_after_its_last_event() {
    let debug_info = DebugInfo::default();
    let start = plain_info().start_time;
    for (format, events, until) in [
        (Format::V2, 0, start + 60_000_000),
        (Format::V2, 3, start + 60_000_000),
        (Format::V3, 3, start + 3_600_000_000),
        // Times have 63 bits, and the last event may be later.
        (Format::V3, 3, u64::MAX),
        (Format::V2, 3, start + 1),
    ] {
        let mut encoder = Encoder::new(Vec::new(), format, &plain_info()).unwrap();
        let mut locate = &debug_info;
        for event in 1..=events {
            let frames = Frames::Whole(&[7, 8]);
            encoder.domain(0).alloc(start + event, SMALL, frames, &mut locate).unwrap();
        }
        encoder.cover(until, &mut locate).unwrap();
        let bytes = encoder.finish(&mut locate).unwrap();
        assert_eq!(read_strictly(&bytes).recorded.len() as u64, events, "{format:?}");
        let mut reader = Reader::from_slice(&bytes, Mode::Strict).unwrap();
        while reader.next_event().unwrap().is_some() {}
        let written = i64::try_from(until).map_or(0, |_| until - start);
        assert_eq!(reader.covered(), written.max(events), "{format:?}");
        assert_eq!(oracle::read(&bytes).recorded().count() as u64, events);
    }
}
