//! An aggregate that is looked at while it grows: a look in the middle shows what
//! a trace that ends there would, and changes nothing for the events to come.

use heaptap_report::{Aggregator, Depth, Options, OverTime};
use heaptap_trace::EventSource as _;
use heaptap_trace::{Mode, Reader};
use proptest::prelude::*;

use crate::figures::figures;
use crate::made::{START, programs, traced};

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
    let over_time =
        prop_oneof![Just(OverTime::Nothing), Just(OverTime::LiveSize), Just(OverTime::Flows)];
    (depth, over_time, prop::option::of(0..4000_u64)).prop_map(|(depth, over_time, at)| Options {
        depth,
        over_time,
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
        over_time in prop_oneof![Just(OverTime::LiveSize), Just(OverTime::Flows)],
        every in 1..40_usize,
    ) {
        let options = Options { depth: Depth::Whole, over_time, ..Options::default() };
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
