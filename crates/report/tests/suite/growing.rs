//! An aggregate that is looked at while it grows: a look in the middle shows what
//! a trace that ends there would, and changes nothing for the events to come.

use std::fmt::Write as _;

use heaptap_report::rows::By;
use heaptap_report::{Aggregate, Aggregator, Counts, Depth, Follow, Metric, Options, StackShape};
use heaptap_trace::{LocationTable, Mode, Reader};
use proptest::prelude::*;

use crate::made::{METRICS, START, programs, traced};

/// Every figure that a report could show, as text. Sums of fractions are rounded:
/// the order of their terms is that of a hash table.
fn figures(aggregate: &Aggregate, table: &LocationTable, options: &Options) -> String {
    let (peak, promotion) = (aggregate.peak(), aggregate.promotion_rate());
    let mut text = format!("{} events, {} µs, ", aggregate.events(), aggregate.duration());
    let samples = (aggregate.samples(), aggregate.peak_samples(), aggregate.peak_time());
    let limits = (aggregate.nodes(), aggregate.thinning(), aggregate.missing_from_paths());
    writeln!(text, "{samples:?} {limits:?} {peak:?} {promotion:?}").unwrap();
    writeln!(text, "{:?}\n{:?}", aggregate.timeline(), aggregate.lifetimes()).unwrap();
    for metric in METRICS {
        let total = aggregate.total(metric);
        writeln!(text, "{metric:?} {:?}", aggregate.estimate(metric, total)).unwrap();
    }
    for by in [By::Function, By::Location, By::File, By::Module, By::Label, By::Domain] {
        for row in aggregate.rows(table, by, Metric::Allocated) {
            writeln!(text, "{:?} {}", row.site, counts(&row.counts)).unwrap();
        }
    }
    if options.depth == Depth::Whole {
        let stacks = aggregate.stacks(table, By::Location, StackShape::default());
        for stack in stacks.iter() {
            let flows = stack.flows();
            writeln!(text, "{:?} {} {flows:?}", stack.sites(), counts(&stack.counts)).unwrap();
        }
        writeln!(text, "{:?}", aggregate.hot(table, By::Function, Metric::Live, 0.1, true))
            .unwrap();
    }
    if options.follow == Follow::LiveSize {
        writeln!(text, "{:?}", aggregate.leaks(table, 3)).unwrap();
    }
    text
}

fn counts(counts: &Counts) -> String {
    let &Counts { allocated, promoted, live, peak, at, died, lifetime, blocks, .. } = counts;
    format!("{allocated} {promoted} {live} {peak} {at} {died} {lifetime:.6e} {blocks:.6e}")
}

/// The figures after each of these numbers of events, in order, and at the end.
fn looks(trace: &[u8], options: &Options, at: &[usize]) -> Vec<String> {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let mut aggregator = Aggregator::new(reader.info(), options.clone());
    let (mut found, mut events) = (Vec::new(), 0);
    while let Some((event, table)) = reader.next_located().unwrap() {
        aggregator.event(&event, table);
        events += 1;
        if at.contains(&events) {
            found.push(figures(aggregator.aggregate(), table, options));
        }
    }
    found.push(figures(&aggregator.finish(), reader.locations(), options));
    found
}

/// The figures of a trace that ends after `events` events.
fn figures_of_first(trace: &[u8], options: &Options, events: usize) -> String {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let mut aggregator = Aggregator::new(reader.info(), options.clone());
    for _ in 0..events {
        let (event, table) = reader.next_located().unwrap().unwrap();
        aggregator.event(&event, table);
    }
    figures(&aggregator.finish(), reader.locations(), options)
}

fn options() -> impl Strategy<Value = Options> {
    let depth = prop_oneof![Just(Depth::Innermost), Just(Depth::Whole), Just(Depth::Domain)];
    let follow = prop_oneof![Just(Follow::Nothing), Just(Follow::LiveSize), Just(Follow::Flows)];
    (depth, follow, prop::option::of(0..4000_u64)).prop_map(|(depth, follow, at)| Options {
        depth,
        follow,
        at,
        ..Options::default()
    })
}

/// The time of each event, in microseconds since the start.
fn times(trace: &[u8]) -> Vec<u64> {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let mut times = Vec::new();
    while let Some(event) = reader.next_event().unwrap() {
        times.push(event.time - START);
    }
    times
}

proptest! {
    #[test]
    fn a_look_is_a_reading_that_ends_there_and_leaves_no_trace(
        // With short waits, many events have the same time.
        program in prop_oneof![programs(2), programs(50)],
        mut options in options(),
        // After these twentieths of the events.
        parts in prop::collection::btree_set(1..20_usize, 1..5),
        at_first_look in any::<bool>(),
    ) {
        let trace = traced(&program, 1.0, 0);
        let times = times(&trace);
        let mut at: Vec<usize> =
            parts.iter().map(|part| (times.len() * part / 20).max(1)).collect();
        at.dedup();
        if at_first_look {
            options.at = Some(times[at[0] - 1]);
        }
        let mut found = looks(&trace, &options, &at);
        let last = found.pop();
        prop_assert_eq!(last, looks(&trace, &options, &[]).pop());
        prop_assert_eq!(found.len(), at.len());
        for (found, at) in found.iter().zip(at) {
            prop_assert_eq!(found, &figures_of_first(&trace, &options, at), "after {} events", at);
        }
    }

    /// A program of seconds, in which slices of time become longer.
    #[test]
    fn looks_do_not_move_slices_of_time(
        program in programs(50_000),
        follow in prop_oneof![Just(Follow::LiveSize), Just(Follow::Flows)],
        every in 1..40_usize,
    ) {
        let options = Options { depth: Depth::Whole, follow, ..Options::default() };
        let trace = traced(&program, 1.0, 0);
        let mut reader = Reader::from_slice(&trace, Mode::Strict).unwrap();
        let mut aggregator = Aggregator::new(reader.info(), options.clone());
        let mut events = 0;
        while let Some((event, table)) = reader.next_located().unwrap() {
            aggregator.event(&event, table);
            events += 1;
            if events % every == 0 {
                prop_assert_eq!(aggregator.aggregate().events(), events as u64);
            }
        }
        let found = figures(&aggregator.finish(), reader.locations(), &options);
        prop_assert_eq!(Some(found), looks(&trace, &options, &[]).pop());
    }
}
