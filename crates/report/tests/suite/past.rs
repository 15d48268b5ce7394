//! Any earlier moment of a trace, from its table of blocks. How long that takes is for
//! `benches/past.rs` to say.

use heaptap_report::{Aggregate, Aggregator, Depth, MOST_BLOCKS, Options, OverTime};
use heaptap_trace::LocationTable;
use proptest::prelude::*;

use crate::blocks::{Program, crowd, options, whole};
use crate::figures::figures;
use crate::made::programs;

/// All figures but the number of events and of nodes, which are those of the whole trace.
fn figures_of_past(aggregate: &Aggregate, table: &LocationTable, options: &Options) -> String {
    let all = figures(aggregate, table, options);
    let (_counts, rest) = all.split_once('\n').unwrap();
    let samples = (aggregate.samples(), aggregate.peak_samples(), aggregate.peak_time());
    let (peak, promotion) = (aggregate.peak(), aggregate.promotion_rate());
    format!("{} µs {samples:?} {peak:?} {promotion:?}\n{rest}", aggregate.duration())
}

proptest! {
    /// The past is what a reading shows of a program that was killed then.
    #[test]
    fn a_past_moment_is_a_trace_that_ends_there(
        lives in prop_oneof![programs(2), programs(50), programs(50_000)],
        options in options(),
        rate in prop_oneof![Just(1.0), Just(0.01)],
        part in 0..=20_usize,
    ) {
        let program = Program::new(lives.clone());
        let (aggregate, blocks) = program.read(rate, whole());
        let times: Vec<u64> = program.times().collect();
        let time = times[(times.len() - 1) * part / 20];
        let table = &program.locations;
        let found = blocks.aggregate_until(time, &aggregate, table, &options);
        let expected = Program::new(lives).until(time).stream(rate, &options);
        prop_assert_eq!(
            figures_of_past(&found, table, &options),
            figures_of_past(&expected, table, &options)
        );
        let at_end = blocks.aggregate_until(u64::MAX, &aggregate, table, &options);
        let of_all = blocks.aggregate(&aggregate, table, &options);
        prop_assert_eq!(figures(&at_end, table, &options), figures(&of_all, table, &options));
    }
}

/// While a trace grows, its table so far gives the same as at its end.
#[test]
fn the_past_of_a_growing_trace() {
    let program = crowd(5000);
    let (aggregate, blocks) = program.read(0.5, whole());
    let options = Options { depth: Depth::Whole, ..Options::default() };
    let table = &program.locations;
    let expected = blocks.aggregate_until(2000, &aggregate, table, &options);
    let mut growing = Aggregator::new(&crate::made::info(0.5), whole());
    crowd(5000).until(3000).pass_to(&mut growing);
    let (so_far, blocks) = growing.aggregate_with_blocks();
    let found = blocks.aggregate_until(2000, so_far, table, &options);
    assert_eq!(
        figures_of_past(&found, table, &options),
        figures_of_past(&expected, table, &options)
    );
}

/// A full table, just before the end.
#[test]
fn the_past_of_a_full_table() {
    let program = crowd(MOST_BLOCKS as u64);
    let options =
        Options { depth: Depth::Whole, over_time: OverTime::Nothing, ..Options::default() };
    let (aggregate, blocks) =
        program.read(0.5, Options { most_blocks: MOST_BLOCKS, ..options.clone() });
    assert!(blocks.len() > MOST_BLOCKS * 9 / 10);
    let time = program.times().filter(|&time| time < aggregate.duration()).max().unwrap();
    let found = blocks.aggregate_until(time, &aggregate, &program.locations, &options);
    assert!(found.samples() > 0);
    let expected = crowd(MOST_BLOCKS as u64).until(time).stream(0.5, &options);
    assert_eq!(
        figures_of_past(&found, &program.locations, &options),
        figures_of_past(&expected, &program.locations, &options)
    );
}
