//! Programs whose blocks were sampled at several rates.
//!
//! The rate of each word is known, and so is the true variance of each estimate. Over many samplings of the
//! same programs, estimates must be unbiased and have that variance, each within four standard deviations, and
//! their 95 % intervals must hold the truth in 93 to 97 % of the cases, three standard deviations of a
//! thousand. Bringing all samples to the lowest rate, which is unbiased too, must have larger errors.

use heaptap_report::rows::By;
use heaptap_report::{
    Aggregate, Aggregator, BlockTable, Depth, Estimate, Metric, Options, Rates, Sampled,
};
use heaptap_trace::EventSource as _;
use heaptap_trace::{EventKind, LocationTable, Mode, Reader};

use crate::calibration::{assert_calibrated, holds, true_peak};
use crate::made::{Dice, Life, Writer, write_program};
use crate::programs::{Shape, program};

const WORD: f64 = 8.0;

/// Sites that allocate in one stretch only: in the one with the lowest rate, and in the one with the highest.
const IN_LOWEST: u64 = 20;
const IN_HIGHEST: u64 = 21;

/// A program with the rate of each block.
struct MixedProgram {
    lives: Vec<Life>,
    rates: Vec<f64>,
}

impl MixedProgram {
    /// A program of this shape in two to five stretches, each with a rate of its own. One block in ten is
    /// still sampled at the rate before.
    fn new(shape: Shape, seed: u64) -> MixedProgram {
        const RATES: [f64; 6] = [0.6, 0.25, 0.1, 0.07, 0.03, 0.012];
        let mut lives = program(shape, seed);
        let mut dice = Dice::new(seed ^ 0x5a5a);
        let count = 2 + dice.below(4) as usize;
        let first = dice.below(6) as usize;
        let stretches: Vec<f64> = (0..count).map(|at| RATES[(first + at * 5) % 6]).collect();
        let of_turn = |turn: usize| turn * count / lives.len();
        let rates: Vec<f64> = (0..lives.len())
            .map(|turn| {
                let stretch = of_turn(turn);
                stretches[stretch.saturating_sub(usize::from(dice.below(10) == 0))]
            })
            .collect();
        let lowest = stretches.iter().copied().fold(1.0, f64::min);
        let highest = stretches.iter().copied().fold(0.0, f64::max);
        for (turn, life) in lives.iter_mut().enumerate().filter(|(turn, _)| turn % 4 == 1) {
            if rates[turn] == lowest {
                life.site = IN_LOWEST;
            } else if rates[turn] == highest {
                life.site = IN_HIGHEST;
            }
        }
        MixedProgram { lives, rates }
    }

    /// The trace of one sampling, with the rate of each block in it.
    fn traced(&self, seed: u64) -> (Vec<u8>, Vec<f64>) {
        let mut dice = Dice::new(seed);
        let mut all: Vec<f64> = self.rates.clone();
        all.sort_by(f64::total_cmp);
        all.dedup();
        // For each rate, the words of its blocks so far, and the next that is sampled.
        let mut passed = vec![0_u64; all.len()];
        let mut next: Vec<u64> = all.iter().map(|&rate| dice.gap(rate)).collect();
        let mut of_blocks = Vec::new();
        let trace = write_program(&self.lives, Writer::new(all[0]), |number, life| {
            let at = all.iter().position(|&rate| rate == self.rates[number]).unwrap();
            passed[at] += life.length + 1;
            let mut samples = 0;
            while next[at] <= passed[at] {
                samples += 1;
                next[at] += dice.gap(all[at]);
            }
            of_blocks.extend((samples > 0).then_some(all[at]));
            samples
        });
        (trace, of_blocks)
    }

    /// The true words of these blocks, and the variance of their estimate.
    fn truth(&self, chosen: impl Fn(&Life) -> bool) -> (f64, f64) {
        let of_blocks = self.lives.iter().zip(&self.rates).filter(|(life, _)| chosen(life));
        of_blocks.fold((0.0, 0.0), |(sum, variance), (life, rate)| {
            let words = (life.length + 1) as f64;
            (sum + words, variance + words * (1.0 - rate) / rate)
        })
    }

    fn end(&self) -> u64 {
        self.lives.iter().map(|life| life.born.max(life.dies.unwrap_or(0))).max().unwrap()
    }
}

/// What is gathered from a trace and the rate of each block in it.
pub(crate) fn gathered_mixed(
    trace: &(Vec<u8>, Vec<f64>),
    options: Options,
) -> (Aggregate, BlockTable, LocationTable) {
    gathered_with_ids(trace, 0, options)
}

/// The same with other ids, by which it is chosen what a thinned table has.
fn gathered_with_ids(
    (trace, of_blocks): &(Vec<u8>, Vec<f64>),
    first_id: u64,
    options: Options,
) -> (Aggregate, BlockTable, LocationTable) {
    let rates = Rates::of(of_blocks.iter().map(|&rate| (rate, 1000)));
    let mut reader = Reader::from_slice(trace, Mode::Strict).unwrap();
    let options = Options { rates: rates.clone(), ..options };
    let mut aggregator = Aggregator::new(reader.info(), options);
    let mut blocks = of_blocks.iter();
    let mut rate = 0;
    while let Some((mut event, table)) = reader.next_located().unwrap() {
        match &mut event.kind {
            EventKind::Alloc(allocation) => {
                allocation.id += first_id;
                rate = rates.number(*blocks.next().unwrap()).unwrap_or(0);
            }
            EventKind::Promote(id) | EventKind::Collect(id) => *id += first_id,
            _ => {}
        }
        aggregator.event_at(&event, table, rate);
    }
    let (aggregate, blocks) = aggregator.finish_with_blocks();
    (aggregate, blocks, reader.into_locations())
}

/// The words that a levelled reading estimates, of all blocks and of those that are alive at the end: each
/// sample is kept with the quotient of the rates.
fn levelled(program: &MixedProgram, trace: &(Vec<u8>, Vec<f64>), dice: &mut Dice) -> (f64, f64) {
    let lowest = program.rates.iter().copied().fold(1.0, f64::min);
    let mut reader = Reader::from_slice(&trace.0, Mode::Strict).unwrap();
    let mut rates = trace.1.iter();
    let (mut all, mut live) = (0_u64, std::collections::HashMap::new());
    while let Some((event, _)) = reader.next_located().unwrap() {
        match event.kind {
            EventKind::Alloc(allocation) => {
                let share = lowest / rates.next().unwrap();
                let kept = (0..allocation.samples).filter(|_| dice.unit() < share).count() as u64;
                all += kept;
                live.insert(allocation.id, kept);
            }
            EventKind::Collect(id) => {
                live.remove(&id);
            }
            _ => {}
        }
    }
    (all as f64 / lowest, live.values().sum::<u64>() as f64 / lowest)
}

/// How far estimates are from the truth, in true standard deviations.
#[derive(Default)]
struct Distances {
    count: f64,
    sum: f64,
    squares: f64,
    held: u64,
}

impl Distances {
    fn add(&mut self, estimate: &Estimate, (words, variance): (f64, f64)) {
        if variance == 0.0 {
            return;
        }
        let distance = (estimate.bytes / WORD - words) / variance.sqrt();
        self.count += 1.0;
        self.sum += distance;
        self.squares += distance * distance;
        self.held += holds(estimate, words * WORD);
    }

    /// Four standard deviations of the mean, and of the mean square of a normal variable. `cautious`: the
    /// intervals may hold the truth more often than they say.
    fn check(&self, what: &str, cautious: bool) {
        let (mean, square) = (self.sum / self.count, self.squares / self.count);
        println!("{what}: {} cases, mean {mean:.3}, rms {:.3}", self.count, square.sqrt());
        assert!(mean.abs() < 4.0 / self.count.sqrt(), "{what}: mean {mean}");
        assert!((square - 1.0).abs() < 4.0 * (2.2 / self.count).sqrt(), "{what}: {square}");
        // Three standard deviations.
        let share = self.held as f64 / self.count;
        println!("{what}: {share:.3} of the intervals hold the truth");
        let bound = 3.0 * (0.95 * 0.05 / self.count).sqrt();
        assert!(share > 0.95 - bound, "{what}: {share}");
        assert!(cautious || share < 0.95 + bound, "{what}: {share}");
    }
}

const PROGRAMS: u64 = 25;
const SEEDS: u64 = 40;

#[test]
fn estimates_over_several_rates_are_unbiased_and_calibrated() {
    println!("programs from 21000 on, seeds from 800000 on");
    let mut figures: [Distances; 6] = Default::default();
    let names = ["total", "live", "low row", "high row", "row", "promoted"];
    let (mut mixed, mut level, mut mixed_live, mut level_live) = (0.0, 0.0, 0.0, 0.0);
    for (number, shape) in
        (0..PROGRAMS).zip([Shape::Ramp, Shape::Sessions, Shape::Hill].iter().cycle())
    {
        let program = MixedProgram::new(*shape, 21_000 + number);
        let alive = |life: &Life| life.dies.is_none();
        let of_site = |site: u64| move |life: &Life| life.site == site;
        let end = program.end();
        let promoted = |life: &Life| {
            life.promoted
                .is_some_and(|at| life.dies.is_none_or(|dies| dies > at) && at <= end + 1_000_000)
        };
        let truths = [
            program.truth(|_| true),
            program.truth(alive),
            program.truth(of_site(IN_LOWEST)),
            program.truth(of_site(IN_HIGHEST)),
            program.truth(of_site(3)),
            program.truth(promoted),
        ];
        let mut dice = Dice::new(number);
        for seed in 0..SEEDS {
            let trace = program.traced(800_000 + number * SEEDS + seed);
            let (aggregate, _, table) = gathered_mixed(&trace, Options::default());
            let rows = aggregate.rows(&table, By::Function, Metric::Allocated);
            let row = |site: u64| {
                let name = format!("Site.f{site}");
                let row = rows.iter().find(|row| row.site.name == name);
                let size = row.map(|row| aggregate.size(Metric::Allocated, &row.counts));
                size.unwrap_or(aggregate.estimate(Metric::Allocated, Sampled::default()))
            };
            let counts = aggregate.total_counts();
            let found = [
                aggregate.size(Metric::Allocated, &counts),
                aggregate.size(Metric::Live, &counts),
                row(IN_LOWEST),
                row(IN_HIGHEST),
                row(3),
                aggregate.size(Metric::Promoted, &counts),
            ];
            for ((figure, estimate), truth) in figures.iter_mut().zip(&found).zip(truths) {
                figure.add(estimate, truth);
            }
            let other = levelled(&program, &trace, &mut dice);
            mixed += (found[0].bytes / WORD / truths[0].0 - 1.0).powi(2);
            level += (other.0 / truths[0].0 - 1.0).powi(2);
            if truths[1].0 > 0.0 {
                mixed_live += (found[1].bytes / WORD / truths[1].0 - 1.0).powi(2);
                level_live += (other.1 / truths[1].0 - 1.0).powi(2);
            }
        }
    }
    println!(
        "relative errors: {mixed} by weights, {level} levelled; live {mixed_live}, {level_live}"
    );
    assert!(mixed * 1.5 < level && mixed_live * 1.3 < level_live);
    for (figure, name) in figures.iter().zip(names) {
        // Of what was sampled at a high rate only, it is not known that it was.
        figure.check(name, !matches!(name, "total" | "low row"));
    }
}

#[test]
fn the_peak_over_several_rates_holds_the_truth() {
    for shape in [Shape::Ramp, Shape::Hill, Shape::Spike, Shape::Phases, Shape::Sessions] {
        let (mut held, mut sum) = (0, 0.0);
        for number in 0..PROGRAMS {
            let program = MixedProgram::new(shape, 22_000 + number);
            let truth = true_peak(&program.lives);
            for seed in 0..SEEDS {
                let trace = program.traced(860_000 + number * SEEDS + seed);
                let (aggregate, _, _) = gathered_mixed(&trace, Options::default());
                held += holds(&aggregate.peak(), truth);
                sum += aggregate.peak().bytes / truth;
            }
        }
        let cases = PROGRAMS * SEEDS;
        println!("{shape:?}: {held} of {cases} hold, mean {:.3}", sum / cases as f64);
        assert_calibrated(&format!("{shape:?}"), held, cases);
    }
}

#[test]
fn one_rate_among_several_gives_the_figures_of_that_rate() {
    // A trace whose samples are all of one rate, read as one of two.
    let program = MixedProgram::new(Shape::Sessions, 5);
    let lives = program.lives;
    let program = MixedProgram { rates: vec![0.1; lives.len()], lives };
    let trace = program.traced(7);
    let (one, _, table) = gathered_mixed(&trace, Options::default());
    assert!(!one.rates().are_several());
    let mut others = trace.clone();
    others.1.push(0.1 + f64::EPSILON);
    let (two, _, _) = gathered_mixed(&others, Options::default());
    assert!(two.rates().are_several());
    let close = |one: f64, other: f64| (one - other).abs() <= 1e-5 * one.abs();
    for metric in crate::made::METRICS {
        let rows = one.rows(&table, By::Function, metric).into_iter();
        for (row, other) in rows.zip(two.rows(&table, By::Function, metric)) {
            assert_eq!(row.site, other.site);
            let sizes = (one.size(metric, &row.counts), two.size(metric, &other.counts));
            let (first, second) = sizes;
            assert!(close(first.bytes, second.bytes) && close(first.error, second.error));
            assert!(close(first.low, second.low) && close(first.high, second.high), "{sizes:?}");
            let samples = (metric.samples(&row.counts), two.samples_of(metric.of(&other.counts)));
            assert_eq!(samples.0, samples.1);
        }
    }
    assert!(close(one.peak().bytes, two.peak().bytes) && close(one.peak().error, two.peak().error));
    let rates = (one.promotion_rate(), two.promotion_rate());
    assert!(
        close(rates.0.share, rates.1.share) && close(rates.0.error, rates.1.error),
        "{rates:?}"
    );
    for share in [0.1, 0.5, 0.9] {
        let of = |aggregate: &Aggregate| aggregate.lifetimes().quantile(share, &aggregate.scale());
        let pair = of(&one).zip(of(&two));
        assert!(
            pair.is_none_or(|(one, two)| close(one.micros, two.micros)
                && (one.error / two.error - 1.0).abs() < 0.1)
        );
    }
}

#[test]
fn a_table_of_blocks_has_the_figures_of_the_reading() {
    let options = Options { depth: Depth::Whole, most_blocks: 1 << 20, ..Options::default() };
    for (number, shape) in (0..3).zip([Shape::Sessions, Shape::Hill, Shape::Ramp]) {
        let trace = MixedProgram::new(shape, 300 + number).traced(number);
        let (read, blocks, table) = gathered_mixed(&trace, options.clone());
        let replayed = blocks.aggregate(&read, &table, &options);
        for metric in crate::made::METRICS {
            assert_eq!(read.total(metric), replayed.total(metric), "{metric:?}");
            let rows = |aggregate: &Aggregate| -> Vec<_> {
                let rows = aggregate.rows(&table, By::Function, metric);
                rows.iter().map(|row| (row.site.clone(), metric.of(&row.counts))).collect()
            };
            assert_eq!(rows(&read), rows(&replayed));
        }
        assert_eq!(read.peak(), replayed.peak());
        assert_eq!(read.promotion_rate(), replayed.promotion_rate());
    }
}

/// Selections from a table in which most blocks have no row hold the truth too.
#[test]
fn a_thinned_table_of_several_rates_holds_the_truth() {
    let (mut total, mut live, mut low, mut high, mut thinned) = (0, 0, 0, 0, 0);
    for number in 0..PROGRAMS {
        let program = MixedProgram::new(Shape::Ramp, 23_000 + number);
        let of_site = |site: u64| program.truth(|life| life.site == site).0 * WORD;
        let truth = [program.truth(|_| true).0 * WORD, of_site(IN_LOWEST), of_site(IN_HIGHEST)];
        for seed in 0..SEEDS {
            let seed = number * SEEDS + seed;
            let options = Options { depth: Depth::Whole, most_blocks: 300, ..Options::default() };
            let trace = program.traced(890_000 + seed);
            let (read, blocks, table) = gathered_with_ids(&trace, seed << 20, options.clone());
            thinned += u64::from(blocks.thinning() > 0);
            let found = blocks.aggregate(&read, &table, &options);
            let rows = found.rows(&table, By::Function, Metric::Allocated);
            let row = |site: u64| {
                let name = format!("Site.f{site}");
                let row = rows.iter().find(|row| row.site.name == name);
                let size = row.map(|row| found.size(Metric::Allocated, &row.counts));
                size.unwrap_or(found.estimate(Metric::Allocated, Sampled::default()))
            };
            let counts = found.total_counts();
            total += holds(&found.size(Metric::Allocated, &counts), truth[0]);
            live += holds(&found.size(Metric::Live, &counts), truth[0]);
            low += holds(&row(IN_LOWEST), truth[1]);
            high += holds(&row(IN_HIGHEST), truth[2]);
        }
    }
    let cases = PROGRAMS * SEEDS;
    println!("{total}, {live}, {low}, {high} of {cases}, {thinned} thinned");
    assert!(thinned * 2 > cases, "hardly a table is thinned: {thinned}");
    // An error that is an average over blocks of all sizes is too wide for some rows.
    for held in [total, live, low, high] {
        assert!((0.93..=1.0).contains(&(held as f64 / cases as f64)), "{held} of {cases}");
    }
}
