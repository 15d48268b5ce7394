//! The intervals hold what they promise.
//!
//! Programs whose every word is known are sampled, a thousand times in all for
//! each figure. The 95 % intervals must hold the truth in 93 to 97 % of the cases:
//! that is three standard deviations on each side, and the seeds are fixed. The
//! estimators were chosen with other programs and other seeds.

use heaptap_report::rows::By;
use heaptap_report::{
    Aggregate, Aggregator, BlockTable, Depth, Estimate, Metric, Options, Regex, Selection, Span,
};
use heaptap_trace::EventSource as _;
use heaptap_trace::{EventKind, LocationTable, Mode, Reader};

use crate::made::{Life, gathered, traced};
use crate::programs::{SITES, Shape, program};

const WORD: f64 = 8.0;

/// Bytes alive when the most is.
pub(crate) fn true_peak(program: &[Life]) -> f64 {
    let mut changes: Vec<(u64, i64)> = Vec::new();
    for life in program {
        let words = life.length as i64 + 1;
        changes.push((life.born, words));
        changes.extend(life.dies.map(|at| (at, -words)));
    }
    // Deaths come first: they are written before a birth of the same time.
    changes.sort_unstable();
    let mut live = 0;
    let peak = changes.iter().map(|&(_, words)| {
        live += words;
        live
    });
    peak.max().unwrap() as f64 * WORD
}

pub(crate) fn holds(estimate: &Estimate, truth: f64) -> u64 {
    u64::from(estimate.low <= truth && truth <= estimate.high)
}

pub(crate) fn assert_calibrated(what: &str, held: u64, cases: u64) {
    let share = held as f64 / cases as f64;
    println!("{what}: {held} of {cases} intervals hold the truth, {share:.3}");
    assert!((0.93..=0.97).contains(&share), "{what}: {share}");
}

/// Programs of each shape, and how often each is sampled.
const PROGRAMS: u64 = 20;
const SEEDS: u64 = 50;
const CASES: u64 = PROGRAMS * SEEDS;

/// Shows what is gathered from each program of a shape, again and again.
fn each_case(shape: Shape, rate: f64, mut look: impl FnMut(&[Life], &Aggregate, &LocationTable)) {
    println!("{shape:?} at {rate}: programs 12000 to {}, seeds from 900000 on", 12_000 + PROGRAMS);
    for number in 0..PROGRAMS {
        let program = program(shape, 12_000 + number);
        for seed in 0..SEEDS {
            let trace = traced(&program, rate, 900_000 + number * SEEDS + seed);
            let (aggregate, table) = gathered(&trace, Options::default());
            look(&program, &aggregate, &table);
        }
    }
}

fn bytes<'a>(lives: impl Iterator<Item = &'a Life>) -> f64 {
    lives.map(|life| (life.length + 1) as f64 * WORD).sum()
}

#[test]
fn totals_and_sites_hold_the_truth() {
    for shape in [Shape::Wavering, Shape::Sessions, Shape::HeavyTails] {
        let (mut totals, mut sites) = (0, 0);
        each_case(shape, 0.02, |program, aggregate, table| {
            let all = aggregate.total(Metric::Allocated);
            let total = bytes(program.iter());
            totals += holds(&aggregate.estimate(Metric::Allocated, all), total);
            let rows = aggregate.rows(table, By::Function, Metric::Allocated);
            for site in 0..SITES {
                let name = format!("Site.f{site}");
                let row = rows.iter().find(|row| row.site.name == name);
                let samples = row.map(|row| Metric::Allocated.of(&row.counts)).unwrap_or_default();
                let truth = bytes(program.iter().filter(|life| life.site == site));
                sites += holds(&aggregate.estimate(Metric::Allocated, samples), truth);
            }
        });
        assert_calibrated(&format!("totals of {shape:?}"), totals, CASES);
        assert_calibrated(&format!("sites of {shape:?}"), sites, CASES * SITES);
    }
}

const SHAPES: [Shape; 8] = [
    Shape::Ramp,
    Shape::Hill,
    Shape::Spike,
    Shape::Phases,
    Shape::Sessions,
    Shape::HeavyTails,
    Shape::Wavering,
    Shape::Flat,
];

#[test]
fn the_peak_holds_the_truth_whatever_its_shape() {
    let mut failed = Vec::new();
    for shape in SHAPES {
        let (mut held, mut naive, mut sum) = (0, 0, 0.0);
        each_case(shape, 0.05, |program, aggregate, _| {
            let truth = true_peak(program);
            held += holds(&aggregate.peak(), truth);
            sum += aggregate.peak().bytes / truth;
            let largest = aggregate.estimate(Metric::Peak, aggregate.total(Metric::Peak));
            naive += holds(&largest, truth);
        });
        let (mean, share) = (sum / CASES as f64, held as f64 / CASES as f64);
        println!("{shape:?}: {share:.3} hold, mean {mean:.3}, largest value alone {naive}");
        if !(0.93..=0.97).contains(&share) {
            failed.push((shape, share));
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

/// The intervals of selections from a table in which one block of four or eight has a
/// row.
#[test]
fn selections_from_a_thinned_table_hold_the_truth() {
    const RATE: f64 = 0.1;
    let selection = |pattern: &str| Options {
        selection: Selection {
            include: vec![Regex::new(pattern).unwrap()],
            lifetime: Span { from: 10_000, to: u64::MAX },
            ..Selection::default()
        },
        depth: Depth::Whole,
        ..Options::default()
    };
    let (first, second) = (selection("^Site.f[0-3]$"), selection("^Site.f[4-7]$"));
    for shape in [Shape::Sessions, Shape::Ramp] {
        let (mut allocated, mut live, mut thinned) = (0, 0, 0);
        for number in 0..PROGRAMS {
            let program = program(shape, 13_000 + number);
            for seed in 0..SEEDS {
                let trace = traced(&program, RATE, 950_000 + number * SEEDS + seed);
                let (aggregate, blocks, table) =
                    recorded(&trace, 500, (number * SEEDS + seed) << 20);
                thinned += u64::from(blocks.thinning() >= 1);
                for (options, sites) in [(&first, 0..4), (&second, 4..8)] {
                    let found = blocks.aggregate(&aggregate, &table, options);
                    let end = aggregate.duration();
                    let chosen = |life: &&Life| {
                        let lifetime = life.dies.unwrap_or(end).saturating_sub(life.born);
                        sites.contains(&life.site) && lifetime >= 10_000
                    };
                    let truth = bytes(program.iter().filter(chosen));
                    let all = found.total(Metric::Allocated);
                    allocated += holds(&found.estimate(Metric::Allocated, all), truth);
                    let alive = |life: &&Life| chosen(life) && life.dies.is_none();
                    let truth = bytes(program.iter().filter(alive));
                    let all = found.total(Metric::Live);
                    live += holds(&found.estimate(Metric::Live, all), truth);
                }
            }
        }
        assert_eq!(thinned, CASES, "{shape:?}: the table is thinned in every case");
        assert_calibrated(&format!("allocated of {shape:?}, selected"), allocated, 2 * CASES);
        if shape == Shape::Ramp {
            assert_calibrated("live of Ramp, selected", live, 2 * CASES);
        }
    }
}

/// A reading with a table of up to `most` blocks. Ids begin at `first_id`: a hash of
/// them chooses the rows, and would choose alike in every case.
fn recorded(
    trace: &[u8],
    most_blocks: usize,
    first_id: u64,
) -> (Aggregate, BlockTable, LocationTable) {
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let options = Options { depth: Depth::Whole, most_blocks, ..Options::default() };
    let mut aggregator = Aggregator::new(reader.info(), options);
    while let Some((mut event, table)) = reader.next_located().unwrap() {
        match &mut event.kind {
            EventKind::Alloc(allocation) => allocation.id += first_id,
            EventKind::Promote(id) | EventKind::Collect(id) => *id += first_id,
            _ => {}
        }
        aggregator.event(&event, table);
    }
    let (aggregate, blocks) = aggregator.finish_with_blocks();
    (aggregate, blocks, reader.into_locations())
}

#[test]
fn at_rate_one_all_is_exact() {
    let program = program(Shape::Hill, 7);
    let (aggregate, _) = gathered(&traced(&program, 1.0, 1), Options::default());
    let peak = aggregate.peak();
    assert_eq!((peak.bytes, peak.error), (true_peak(&program), 0.0));
    let words: u64 = program.iter().map(|life| life.length + 1).sum();
    assert_eq!(aggregate.total(Metric::Allocated).count, words);
    let blocks: f64 = aggregate.paths().map(|(_, counts)| counts.blocks).sum();
    assert!((blocks - program.len() as f64).abs() < 1e-6);
}
