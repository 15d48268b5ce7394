//! Bounds on memory cost precision, not truth.

use heaptap_trace::{Backtrace, Event, Source};

use super::*;
use crate::aggregate::Metric;
use crate::options::Depth;
use crate::rows::By;
use crate::stacks::StackShape;
use crate::tally::Follow;
use crate::thinning::scramble;

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
    let table = LocationTable::default();
    for id in 0..40_000_u64 {
        let dice = scramble(id);
        let frames = [1, 10 + dice % 3000, 5000 + id % 7];
        let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
        let samples = 1 + id % 3;
        let allocation = Allocation { id, length: 9, samples, source: Source::Minor, backtrace };
        let mut happen = |kind| aggregator.event(&Event { time: id, domain: 0, kind }, &table);
        happen(EventKind::Alloc(allocation));
        if id % 2 == 0 {
            happen(EventKind::Promote(id));
        } else {
            happen(EventKind::Collect(id));
        }
        if (id + 1) % every == 0 {
            assert_eq!(aggregator.aggregate().events(), 2 * (id + 1));
        }
    }
    aggregator.finish()
}

fn options() -> Options {
    Options { depth: Depth::Whole, follow: Follow::LiveSize, ..Options::default() }
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
    assert_eq!(pruned.peak_samples(), pruned.total(Metric::Peak));
}

#[test]
fn looks_do_not_disturb_thinning_and_pruning() {
    let few = Bounds { nodes: 2000, paths: 2000 };
    for follow in [Follow::LiveSize, Follow::Flows] {
        let aggregator =
            || Aggregator::bounded(&info(RATE), Options { follow, ..options() }, 1000, few);
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
