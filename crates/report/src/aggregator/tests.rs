//! Bounds on memory cost precision, not truth.

use heaptap_trace::{Allocation, Backtrace, Event, EventKind, Location, Source};
use regex::bytes::Regex;

use super::*;
use crate::aggregate::Metric;
use crate::archive::Archive;
use crate::block_counter::OverTime;
use crate::depth::Depth;
use crate::estimate::Sampled;
use crate::own_code::SiteFrame;
use crate::rows::{By, Grouping};
use crate::select::Selection;
use crate::stacks::StackShape;
use crate::thinning::scramble;
use crate::trace_ending::TraceEnding;

const RATE: f64 = 0.01;

/// The description of a trace that has nothing else to describe.
pub(crate) fn info(sample_rate: f64) -> TraceInfo {
    TraceInfo {
        sample_rate,
        word_size: 64,
        executable: Vec::new(),
        host: Vec::new(),
        runtime_params: Vec::new(),
        pid: 1,
        context: Vec::new(),
        start_time: 0,
        domain: 0,
    }
}

/// A program of many stacks, of whose blocks half stay.
fn run(aggregator: Aggregator) -> Aggregate {
    run_with_looks(aggregator, u64::MAX)
}

/// The same, with a look at the aggregate at regular intervals.
fn run_with_looks(mut aggregator: Aggregator, every: u64) -> Aggregate {
    for id in 0..40_000_u64 {
        live_and_die(&mut aggregator, id);
        if (id + 1) % every == 0 {
            assert_eq!(aggregator.aggregate().events(), 2 * (id + 1));
        }
    }
    aggregator.finish()
}

/// The same in two processes, one after the other.
fn run_as_two(mut aggregator: Aggregator) -> Aggregate {
    for id in 0..40_000_u64 {
        if id == 20_000 {
            aggregator.end_trace(0..id, TraceEnding::Process);
        }
        live_and_die(&mut aggregator, id);
    }
    aggregator.finish()
}

/// The same in two halves, with batches of events between them.
fn run_in_halves(aggregator: Aggregator) -> (Aggregate, BlockTable) {
    let (mut resolver, mut counter) = aggregator.split();
    let table = LocationTable::default();
    let mut batch = Vec::new();
    for id in 0..40_000_u64 {
        with_events(id, &mut |event| {
            if let Some(moves) = resolver.make_room(event) {
                batch.drain(..).for_each(|event| counter.event(&event));
                counter.move_paths(&moves);
            }
            batch.push(resolver.resolve(event, &table));
            if batch.len() == 1000 {
                batch.drain(..).for_each(|event| counter.event(&event));
            }
        });
    }
    batch.drain(..).for_each(|event| counter.event(&event));
    Aggregator::join(resolver, counter).finish_with_blocks()
}

/// The events of one block.
fn live_and_die(aggregator: &mut Aggregator, id: u64) {
    let table = LocationTable::default();
    with_events(id, &mut |event| aggregator.event(event, &table));
}

/// Passes the events of one block to `take`.
fn with_events(id: u64, take: &mut dyn FnMut(&Event<'_>)) {
    let dice = scramble(id);
    let frames = [1, 10 + dice % 3000, 5000 + id % 7];
    let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
    let samples = 1 + id % 3;
    let allocation = Allocation { id, length: 9, samples, source: Source::Minor, backtrace };
    let mut happen = |kind| take(&Event { time: id, domain: 0, kind });
    happen(EventKind::Alloc(allocation));
    if id.is_multiple_of(2) {
        happen(EventKind::Promote(id));
    } else {
        happen(EventKind::Collect(id));
    }
}

#[test]
fn what_a_process_had_at_its_end_is_alive_no_more_but_counts() {
    for over_time in [OverTime::Nothing, OverTime::LiveSize, OverTime::Flows] {
        let options = || Options { over_time, ..options() };
        let one = run(Aggregator::new(&info(RATE), options()));
        let two = run_as_two(Aggregator::new(&info(RATE), options()));
        for metric in [Metric::Allocated, Metric::Promoted, Metric::Live] {
            assert_eq!(two.total(metric), one.total(metric), "{metric:?}");
        }
        assert_eq!(two.lifetimes().survivors(), one.lifetimes().survivors());
        assert_eq!(two.live_young(), one.live_young());
        assert_eq!(two.survivors.len(), one.survivors.len());
        // At most half of it is alive at the same time.
        let ratio = two.peak_samples() as f64 / one.peak_samples() as f64;
        assert!((ratio - 0.5).abs() < 0.01, "{ratio}");
        // Thinning before and after the first one's end.
        let thin = Aggregator::bounded(&info(RATE), options(), 1000, Bounds::USUAL);
        let thin = run_as_two(thin);
        assert!(thin.thinning() >= 3, "thinned {} times", thin.thinning());
        for metric in [Metric::Live, Metric::Peak, Metric::Promoted] {
            let [exact, rough] = [&two, &thin].map(|run| run.estimate(metric, run.total(metric)));
            // Four standard errors.
            let apart = (rough.bytes - exact.bytes).abs();
            assert!(apart < 4.0 * rough.error, "{over_time:?} {metric:?}: {rough:?} for {exact:?}");
        }
    }
}

fn options() -> Options {
    Options { depth: Depth::Whole, over_time: OverTime::LiveSize, ..Options::default() }
}

#[test]
fn a_thinned_heap_has_the_same_size_within_its_error() {
    let whole = run(Aggregator::new(&info(RATE), options()));
    let thin = run(Aggregator::bounded(&info(RATE), options(), 1000, Bounds::USUAL));
    assert_eq!(whole.thinning(), 0);
    assert!(thin.thinning() >= 4, "thinned {} times", thin.thinning());
    assert_eq!(thin.total(Metric::Allocated), whole.total(Metric::Allocated));
    for metric in [Metric::Live, Metric::Peak, Metric::Promoted] {
        let (exact, rough) = (whole.total(metric), thin.total(metric));
        let (exact, rough) = (whole.estimate(metric, exact), thin.estimate(metric, rough));
        assert!(rough.error > 2.0 * exact.error, "{metric:?}");
        // Four standard errors.
        let apart = (rough.bytes - exact.bytes).abs();
        assert!(apart < 4.0 * rough.error, "{metric:?}: {rough:?} for {exact:?}");
    }
}

#[test]
fn a_pruned_tree_has_the_same_sites_and_totals() {
    let whole = run(Aggregator::new(&info(RATE), options()));
    let few = Bounds { nodes: 2000, paths: 2000 };
    let pruned = run(Aggregator::bounded(&info(RATE), options(), live::MOST, few));
    assert!(pruned.nodes() <= 2010 && pruned.missing_from_paths() > 0);
    let table = LocationTable::default();
    let rows = |aggregate: &Aggregate, metric| -> Vec<u64> {
        let rows = aggregate.rows(&table, By::Location, metric);
        rows.iter().map(|row| metric.samples(&row.counts)).collect()
    };
    for metric in [Metric::Allocated, Metric::Live, Metric::Peak, Metric::Promoted] {
        assert_eq!(rows(&pruned, metric), rows(&whole, metric), "{metric:?}");
        assert_eq!(pruned.total(metric), whole.total(metric));
    }
    assert_eq!(pruned.peak_samples(), pruned.total(Metric::Peak).count);
}

/// A tree that is pruned keeps the callers of what is in the table of blocks.
#[test]
fn a_table_gives_the_figures_of_a_filter_whatever_was_pruned() {
    let mut table = LocationTable::default();
    for code in (10..3010).chain(5000..5007) {
        let (file, definition) = (&b"x.ml"[..], format!("f{}", code % 10));
        let definition = definition.as_bytes();
        table.insert(code, &[Location { file, line: 1, start_char: 0, end_char: 0, definition }]);
    }
    let read = |options, bounds, most_live| {
        let mut aggregator = Aggregator::bounded(&info(RATE), options, most_live, bounds);
        (0..40_000).for_each(|id| with_events(id, &mut |event| aggregator.event(event, &table)));
        aggregator.finish_with_blocks()
    };
    for most_blocks in [100_000, 1_000] {
        let whole = Options { depth: Depth::Whole, most_blocks, ..Options::default() };
        let (whole, blocks) = read(whole, Bounds { nodes: 2000, paths: 2000 }, live::MOST);
        assert!(whole.missing_from_paths() > 0 && !whole.table_lacks_callers());
        for pattern in ["f3", "f[12]", "f7"] {
            let include = vec![Regex::new(pattern).unwrap()];
            let selection = Selection { include, ..Selection::default() };
            let options = Options { selection, ..Options::default() };
            let (expected, _) = read(options.clone(), Bounds::USUAL, live::MOST);
            let found = blocks.aggregate(&whole, &table, &options);
            for metric in [Metric::Allocated, Metric::Live, Metric::Promoted] {
                let (found_samples, samples) = (found.total(metric), expected.total(metric));
                if most_blocks == 100_000 {
                    assert_eq!(found_samples, samples, "{pattern} {metric:?}");
                }
                let estimate = found.estimate(metric, found_samples);
                let apart = (estimate.bytes - expected.estimate(metric, samples).bytes).abs();
                assert!(apart <= 4.0 * estimate.error, "{pattern} {metric:?}: {estimate:?}");
            }
        }
    }
}

#[test]
fn a_pruned_tree_has_the_same_rows_of_own_code() {
    let mut table = LocationTable::default();
    fn at<'a>(file: &'a [u8], definition: &'a [u8]) -> Location<'a> {
        Location { file, line: 1, start_char: 0, end_char: 0, definition }
    }
    (5000..5007).for_each(|code| table.insert(code, &[at(b"list.ml", b"Stdlib__List.map")]));
    for code in 10..3010 {
        table.insert(code, &[at(b"own.ml", format!("Own.f{code}").as_bytes())]);
    }
    let read = |bounds| {
        let mut aggregator = Aggregator::bounded(&info(RATE), options(), live::MOST, bounds);
        for id in 0..40_000 {
            with_events(id, &mut |event| aggregator.event(event, &table));
        }
        aggregator.finish()
    };
    let rows = |aggregate: &Aggregate| {
        let grouping = Grouping { by: By::Location, site: SiteFrame::Own };
        let rows = aggregate.rows(&table, grouping, Metric::Allocated);
        rows.into_iter().map(|row| (row.site, row.counts.allocated)).collect::<Vec<_>>()
    };
    let (whole, pruned) = (read(Bounds::USUAL), read(Bounds { nodes: 4000, paths: 4000 }));
    assert!(pruned.missing_from_paths() > 0);
    assert!(rows(&whole).len() > 1000, "{} callers", rows(&whole).len());
    assert_eq!(rows(&pruned), rows(&whole));
}

#[test]
fn halves_have_the_figures_of_the_whole() {
    let few = Bounds { nodes: 2000, paths: 2000 };
    for over_time in [OverTime::LiveSize, OverTime::Flows] {
        for depth in [Depth::Whole, Depth::Innermost] {
            let options = || Options { over_time, depth, most_blocks: 3000, ..options() };
            let aggregator = || Aggregator::bounded(&info(RATE), options(), 1000, few);
            let mut one = aggregator();
            (0..40_000).for_each(|id| live_and_die(&mut one, id));
            let (one, two) = (one.finish_with_blocks(), run_in_halves(aggregator()));
            assert!(two.0.thinning() >= 4 && two.1.thinning() >= 2);
            assert_eq!(two.0.missing_from_paths() > 0, depth == Depth::Whole);
            let all = |(aggregate, blocks): (Aggregate, BlockTable)| {
                let table = LocationTable::default();
                let stacks = aggregate.stacks(&table, By::Location, StackShape::default());
                let flows: Vec<_> =
                    stacks.iter().map(|s| format!("{:?} {:?}", s.counts, s.flows())).collect();
                let archive = Archive {
                    name: String::new(),
                    info: info(RATE),
                    cut_short: None,
                    incomplete: None,
                    notices: Vec::new(),
                    locations: table,
                    aggregate,
                    blocks,
                    answers: Vec::new(),
                };
                (flows, archive.to_bytes())
            };
            assert!(all(two) == all(one), "{over_time:?} {depth:?}");
        }
    }
}

#[test]
fn looks_do_not_disturb_thinning_and_pruning() {
    let few = Bounds { nodes: 2000, paths: 2000 };
    for over_time in [OverTime::LiveSize, OverTime::Flows] {
        let aggregator =
            || Aggregator::bounded(&info(RATE), Options { over_time, ..options() }, 1000, few);
        let (plain, looked) = (run(aggregator()), run_with_looks(aggregator(), 777));
        let sorted = |aggregate: &Aggregate| {
            let table = LocationTable::default();
            let mut stacks: Vec<_> = aggregate
                .stacks(&table, By::Location, StackShape::default())
                .iter()
                .map(|stack| format!("{:?} {:?}", stack.counts, stack.flows()))
                .collect();
            stacks.sort_unstable();
            stacks
        };
        assert!(looked.thinning() >= 4 && looked.missing_from_paths() > 0);
        assert_eq!(sorted(&looked), sorted(&plain));
        assert_eq!(looked.lifetimes().survivors(), plain.lifetimes().survivors());
        assert_eq!(looked.peak(), plain.peak());
    }
}

/// A block of one sample that is allocated at a time.
fn born(id: u64, time: u64, source: Source) -> Event<'static> {
    let backtrace = Backtrace { frames: &[1], common_prefix: 0, new: &[1] };
    let allocation = Allocation { id, length: 1, samples: 1, source, backtrace };
    Event { time, domain: 0, kind: EventKind::Alloc(allocation) }
}

#[test]
fn a_block_that_was_promoted_is_in_the_major_heap() {
    let options = Options { depth: Depth::Source, at: Some(3), ..Options::default() };
    let mut aggregator = Aggregator::new(&info(1.0), options);
    let table = LocationTable::default();
    let happens = |time, kind| Event { time, domain: 0, kind };
    // At the peak two are young and one is old. Of four that are alive at the end, two are
    // in the major heap, one of which was allocated there.
    for event in [
        born(0, 1, Source::Minor),
        born(1, 2, Source::Minor),
        happens(3, EventKind::Promote(0)),
        born(2, 4, Source::Minor),
        born(3, 5, Source::Major),
        happens(6, EventKind::Collect(2)),
        born(4, 7, Source::External),
        happens(8, EventKind::Promote(1)),
        happens(9, EventKind::Collect(0)),
        born(5, 10, Source::Minor),
    ] {
        aggregator.event(&event, &table);
    }
    let aggregate = aggregator.finish();
    let rows = |metric| {
        let rows = aggregate.rows(&table, By::Source, metric);
        let mut rows: Vec<(String, u64)> = rows
            .into_iter()
            .map(|row| (row.site.name, metric.samples(&row.counts)))
            .filter(|&(_, samples)| samples > 0)
            .collect();
        rows.sort();
        rows.into_iter().map(|(name, samples)| format!("{name} {samples}")).collect::<Vec<_>>()
    };
    let external = "external: outside the heap 1";
    assert_eq!(rows(Metric::Allocated), [external, "major heap 1", "minor heap 4"]);
    assert_eq!(rows(Metric::Promoted), ["minor heap 2"]);
    assert_eq!(rows(Metric::At), ["major heap 1", "minor heap 1"]);
    assert_eq!(rows(Metric::Peak), ["major heap 2", "minor heap 2"]);
    assert_eq!(rows(Metric::Live), [external, "major heap 2", "minor heap 1"]);
    assert_eq!(rows(Metric::Survived), [external, "major heap 2"]);
    let bytes = |estimate: crate::Estimate| estimate.bytes;
    assert_eq!(bytes(aggregate.live_external()), 8.0);
    assert_eq!(bytes(aggregate.peak_external()), 0.0);
}

#[test]
fn what_is_outside_the_heap_at_the_peak_is_corrected_with_it() {
    let mut aggregator = Aggregator::new(&info(RATE), Options::default());
    let table = LocationTable::default();
    for id in 0..90 {
        let source = if id % 3 == 0 { Source::External } else { Source::Minor };
        aggregator.event(&born(id, id, source), &table);
    }
    for id in 0..60 {
        aggregator.event(&Event { time: 100, domain: 0, kind: EventKind::Collect(id) }, &table);
    }
    let aggregate = aggregator.finish();
    let (peak, external) = (aggregate.peak(), aggregate.peak_external());
    assert!((external.bytes / peak.bytes - 1.0 / 3.0).abs() < 1e-9);
    assert!(external.low < external.bytes && external.bytes < external.high);
    assert_eq!(
        aggregate.live_external(),
        aggregate.estimate(Metric::Live, Sampled { count: 10, variance: 0 })
    );
}

#[test]
fn files_that_are_carried_over_give_bounds() {
    let mut aggregator = Aggregator::new(&info(1.0), Options::default());
    let table = LocationTable::default();
    for id in 0..10 {
        aggregator.event(&born(id, id, Source::Minor), &table);
    }
    aggregator.end_trace(0..10, TraceEnding::Continued);
    for id in 10..14 {
        aggregator.event(&born(id, id, Source::Minor), &table);
    }
    aggregator.event(&Event { time: 20, domain: 0, kind: EventKind::Collect(10) }, &table);
    let aggregate = aggregator.finish();
    assert!(aggregate.is_carried_over());
    let range = |size: crate::Estimate| (size.low, size.high, size.error);
    let total = aggregate.total_counts();
    // All of the first file may be alive at the end, or none.
    let live = aggregate.size(Metric::Live, &total);
    assert_eq!(range(live), (24.0, 104.0, f64::INFINITY));
    assert_eq!(range(aggregate.peak()), (80.0, 112.0, f64::INFINITY));
    assert_eq!(range(aggregate.size(Metric::Allocated, &total)), (112.0, 112.0, 0.0));
}
