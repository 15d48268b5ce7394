//! The intervals hold what they promise.
//!
//! A program whose every word is known is sampled a thousand times. The 95 %
//! intervals must hold the truth in 93 to 97 % of the cases: for a thousand
//! cases that is three standard deviations on each side, and the seeds are fixed.

use heaptap_report::rows::By;
use heaptap_report::{Aggregate, Estimate, Metric, Options};

use crate::made::{Dice, Life, gathered, traced};

const SEEDS: u64 = 1000;
const SITES: u64 = 8;
const WORD: f64 = 8.0;

/// How lives go.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// As much dies as is born, on average: the peak is anywhere.
    Wavering,
    /// Exactly as much dies as is born.
    Flat,
    /// Everything lives to the end.
    Ramp,
    /// Much is built up, dropped, and a little built again.
    Hill,
}

fn program(shape: Shape) -> Vec<Life> {
    let mut dice = Dice::new(7);
    (0..3000)
        .map(|turn| {
            let born = turn * 100;
            // Mostly small blocks, some of which have many samples.
            let large = dice.below(50) == 0;
            let length = match shape {
                Shape::Flat => 15,
                _ if large => 200 + dice.below(400),
                _ => 1 + dice.below(20),
            };
            let dies = match shape {
                Shape::Wavering => Some(born + dice.wait(30_000.0)),
                Shape::Flat => Some(born + 30_000),
                Shape::Ramp => None,
                Shape::Hill if turn < 1800 => Some(180_000 + dice.below(9000)),
                Shape::Hill => Some(born + dice.wait(3000.0)),
            };
            Life { length, site: turn % SITES, born, promoted: None, dies }
        })
        .collect()
}

/// Bytes alive when the most is.
fn true_peak(program: &[Life]) -> f64 {
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

fn holds(estimate: &Estimate, truth: f64) -> u64 {
    u64::from(estimate.low <= truth && truth <= estimate.high)
}

fn assert_calibrated(what: &str, held: u64, cases: u64) {
    let share = held as f64 / cases as f64;
    println!("{what}: {held} of {cases} intervals hold the truth, {share:.3}");
    assert!((0.93..=0.97).contains(&share), "{what}: {share}");
}

fn each_seed(
    program: &[Life],
    rate: f64,
    mut look: impl FnMut(&Aggregate, &heaptap_trace::LocationTable),
) {
    println!("seeds 0 to {SEEDS}");
    for seed in 0..SEEDS {
        let (aggregate, table) = gathered(&traced(program, rate, seed), Options::default());
        look(&aggregate, &table);
    }
}

#[test]
fn totals_and_sites_hold_the_truth() {
    let program = program(Shape::Wavering);
    let bytes = |lives: &mut dyn Iterator<Item = &Life>| {
        lives.map(|life| (life.length + 1) as f64 * WORD).sum::<f64>()
    };
    let total = bytes(&mut program.iter());
    let (mut totals, mut sites) = (0, 0);
    each_seed(&program, 0.02, |aggregate, table| {
        let all = aggregate.total(Metric::Allocated);
        totals += holds(&aggregate.estimate(Metric::Allocated, all), total);
        let rows = aggregate.rows(table, By::Function, Metric::Allocated);
        for site in 0..SITES {
            let name = format!("Site.f{site}");
            let row = rows.iter().find(|row| row.site.name == name);
            let samples = row.map_or(0, |row| row.counts.allocated);
            let truth = bytes(&mut program.iter().filter(|life| life.site == site));
            sites += holds(&aggregate.estimate(Metric::Allocated, samples), truth);
        }
    });
    assert_calibrated("totals", totals, SEEDS);
    assert_calibrated("sites", sites, SEEDS * SITES);
}

#[test]
fn the_peak_holds_the_truth_whatever_its_shape() {
    for shape in [Shape::Ramp, Shape::Hill, Shape::Flat, Shape::Wavering] {
        let program = program(shape);
        let truth = true_peak(&program);
        let (mut held, mut naive, mut sum) = (0, 0, 0.0);
        each_seed(&program, 0.05, |aggregate, _| {
            held += holds(&aggregate.peak(), truth);
            sum += aggregate.peak().bytes / truth;
            let largest = aggregate.estimate(Metric::Peak, aggregate.peak_samples());
            naive += holds(&largest, truth);
        });
        println!("{shape:?}: mean {:.3}, largest value alone {naive}", sum / SEEDS as f64);
        assert_calibrated(&format!("{shape:?}"), held, SEEDS);
    }
}

#[test]
fn at_rate_one_all_is_exact() {
    let program = program(Shape::Hill);
    let (aggregate, _) = gathered(&traced(&program, 1.0, 1), Options::default());
    let peak = aggregate.peak();
    assert_eq!((peak.bytes, peak.error), (true_peak(&program), 0.0));
    let words: u64 = program.iter().map(|life| life.length + 1).sum();
    assert_eq!(aggregate.total(Metric::Allocated), words);
    let blocks: f64 = aggregate.paths().map(|(_, counts)| counts.blocks).sum();
    assert!((blocks - program.len() as f64).abs() < 1e-6);
}
