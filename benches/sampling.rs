//! The cost of choosing samples: drawing a gap, and finding the sampled parts of an
//! allocation. Nothing is recorded.
//!
//! The module is private to the package, so its files are compiled into this bench.

use core::time::Duration;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use sampling::{Countdown, Gaps, Rate, WORD, YoungSamples};

#[allow(dead_code, unused_imports, reason = "the package uses more of it")]
#[path = "../src/sampling/mod.rs"]
mod sampling;

const RATES: [f64; 6] = [1e-7, 1e-5, 1e-3, 1e-2, 0.5, 1.0];

fn gaps(rate: f64) -> Gaps {
    Gaps::new(Rate::new(rate).expect("in range"), 1, 0)
}

/// The sum of n gaps is n ÷ p ± √(n (1 − p)) ÷ p: 6 sigma.
fn assert_mean(rate: f64, count: u64, sum: u64) {
    let sigma = (count as f64 * (1.0 - rate)).sqrt() / rate;
    let off = (sum as f64 - count as f64 / rate).abs();
    assert!(off <= 6.0 * sigma, "rate {rate}: {count} gaps are {sum} words");
}

fn gap(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gap");
    for rate in RATES {
        let mut gaps = gaps(rate);
        let (mut count, mut sum) = (0, 0);
        group.bench_function(BenchmarkId::from_parameter(rate), |bencher| {
            bencher.iter(|| {
                count += 1;
                sum += black_box(&mut gaps).next() as u64;
            });
        });
        assert_mean(rate, count, sum);
    }
    group.finish();
}

/// The young heap: addresses only, no memory.
const HEAP: usize = 1 << 20;
const HEAP_WORDS: usize = 1 << 40;

/// Allocations that all end at the next sample, so that each is a hit.
fn split(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("split");
    for parts in [&[3][..], &[3, 2, 9, 5, 2]] {
        for rate in [1e-3, 1.0] {
            let mut gaps = gaps(rate);
            let mut young = YoungSamples::NONE;
            let words: usize = parts.iter().sum();
            let (mut hits, mut samples) = (0u64, 0);
            let mut pointer = 0;
            let name = format!("{} of {words} words", parts.len());
            group.bench_function(BenchmarkId::new(name, rate), |bencher| {
                bencher.iter(|| {
                    if pointer < HEAP + 8 * words * WORD {
                        pointer = HEAP + HEAP_WORDS * WORD;
                        young.renew(&mut gaps, pointer, HEAP);
                    }
                    pointer = young.limit() - words * WORD;
                    hits += 1;
                    young.hit(&mut gaps, pointer, black_box(parts).iter().copied(), |_, part| {
                        samples += black_box(part).samples;
                    });
                    pointer = young.limit();
                });
            });
            assert_samples(rate, words, hits, samples);
        }
    }
    group.finish();
}

/// Of each hit's words the highest is sampled; the m others are with probability p: n (1 + m
/// p) ± √(n m p (1 − p)), 6 sigma.
fn assert_samples(rate: f64, words: usize, hits: u64, samples: u64) {
    let others = hits as f64 * (words - 1) as f64;
    let sigma = (others * rate * (1.0 - rate)).sqrt();
    let off = (samples as f64 - hits as f64 - others * rate).abs();
    assert!(off <= 6.0 * sigma, "rate {rate}: {samples} samples in {hits} hits of {words} words");
}

/// An allocation outside the young heap that is sampled.
fn countdown(criterion: &mut Criterion) {
    let rate = 1e-3;
    let mut gaps = gaps(rate);
    let (mut hits, mut samples) = (0, 0);
    criterion.bench_function("countdown, 8 words", |bencher| {
        bencher.iter(|| {
            let mut left = -8;
            hits += 1;
            samples += Countdown::hit(&mut gaps, black_box(&mut left), 8).expect("negative");
        });
    });
    assert_samples(rate, 8, hits, samples);
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(1));
    targets = gap, split, countdown
}
criterion_main!(benches);
