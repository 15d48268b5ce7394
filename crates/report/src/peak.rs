//! The peak of the live size, and its time.
//!
//! The largest of many noisy values overestimates the true maximum, since it is
//! chosen for its noise. So every sample is put at random into one of three parts.
//! Each two parts choose a moment by their sum, and the third, which is independent
//! of them, estimates the size at that moment. The sum of the three estimates does
//! not have this bias, but two thirds of the samples choose a worse moment than all
//! of them do, so it is too low where the live size varies by no more than its
//! noise. The estimate is the mean of both values, and its interval covers both:
//! with a clear peak they are equal, and `docs/statistics.md` shows the coverage
//! without one.

use crate::estimate::{Estimate, Sampled, Scale, Z95};
use crate::thinning::scramble;

/// An object's samples by part.
pub(crate) type Parts = [u64; 3];

/// The samples of a block that comes alive or goes.
#[derive(Clone, Copy)]
pub(crate) struct LiveSamples {
    pub(crate) all: Sampled,
    /// All if the block is outside the heap, and otherwise 0.
    pub(crate) external: Sampled,
    pub(crate) parts: Parts,
}

impl LiveSamples {
    pub(crate) const NONE: LiveSamples = LiveSamples { all: NONE, external: NONE, parts: [0; 3] };

    /// Adds those of another block.
    pub(crate) fn add(&mut self, other: LiveSamples) {
        self.all = came(self.all, other.all);
        self.external = came(self.external, other.external);
        for (sum, part) in self.parts.iter_mut().zip(other.parts) {
            *sum = sum.wrapping_add(part);
        }
    }
}

const NONE: Sampled = Sampled { count: 0, variance: 0 };

/// With what came alive. It is taken away again when it goes, whatever the sum was in between.
#[inline]
fn came(live: Sampled, new: Sampled) -> Sampled {
    Sampled {
        count: live.count.wrapping_add(new.count),
        variance: live.variance.wrapping_add(new.variance),
    }
}

/// Without what has gone.
#[inline]
fn went(live: Sampled, gone: Sampled) -> Sampled {
    Sampled {
        count: live.count.wrapping_sub(gone.count),
        variance: live.variance.wrapping_sub(gone.variance),
    }
}

/// The moment that two parts chose.
#[derive(Clone, Copy, Default)]
struct Choice {
    largest: u64,
    /// The third part at that time.
    other: u64,
}

/// The live samples, and their largest number so far.
#[derive(Clone, Default)]
pub(crate) struct Peak {
    live: Sampled,
    /// Of these, the samples outside the heap.
    external: Sampled,
    parts: Parts,
    largest: Sampled,
    /// Of these, the samples outside the heap.
    largest_external: Sampled,
    /// Samples alive when their file ended, of processes that went on in another one. Any
    /// number of them may still be alive.
    carried: Sampled,
    /// The most that can have been alive at once, if all of these were.
    bound: Sampled,
    time: u64,
    level: u32,
    /// The number of peaks so far.
    number: u64,
    choices: [Choice; 3],
    /// If there are several rates: what was alive when the upper end of its interval was largest, and
    /// that end. It may be another moment than that of the largest size, with a larger error.
    reach: Sampled,
    reach_end: f64,
    /// A unit of variance in squared units of counts; 0 if there is one rate.
    square: f64,
}

impl Peak {
    /// Of nothing so far.
    pub(crate) fn new(scale: &Scale) -> Peak {
        Peak { square: scale.square(), ..Peak::default() }
    }

    /// Samples appear.
    pub(crate) fn add(&mut self, samples: LiveSamples, time: u64, level: u32) {
        let LiveSamples { all, external, parts } = samples;
        self.live = came(self.live, all);
        self.external = came(self.external, external);
        let bound = came(self.live, self.carried);
        if bound.count > self.bound.count {
            self.bound = bound;
        }
        if self.live.count > self.largest.count {
            self.largest = self.live;
            self.largest_external = self.external;
            self.time = time;
            self.level = level;
            self.number += 1;
        }
        if self.square > 0.0 {
            let variance = self.live.variance as f64 * self.square;
            let end = self.live.count as f64 + Z95 * variance.sqrt();
            if end > self.reach_end {
                (self.reach, self.reach_end) = (self.live, end);
            }
        }
        for ((part, new), choice) in self.parts.iter_mut().zip(parts).zip(&mut self.choices) {
            *part = part.wrapping_add(new);
            let others = self.live.count.wrapping_sub(*part);
            if others > choice.largest {
                *choice = Choice { largest: others, other: *part };
            }
        }
    }

    /// Samples disappear.
    pub(crate) fn remove(&mut self, samples: LiveSamples) {
        self.live = went(self.live, samples.all);
        self.external = went(self.external, samples.external);
        for (part, gone) in self.parts.iter_mut().zip(samples.parts) {
            *part = part.wrapping_sub(gone);
        }
    }

    /// Samples were removed because their file ended, but may still be alive.
    pub(crate) fn carry(&mut self, sampled: Sampled) {
        self.carried = self.carried.plus(sampled);
    }

    /// Sets the live samples after thinning.
    pub(crate) fn recount(&mut self, live: LiveSamples) {
        (self.live, self.external, self.parts) = (live.all, live.external, live.parts);
    }

    /// Everything, as numbers.
    pub(crate) fn state(&self) -> Vec<u64> {
        let Peak { live, external, parts, largest, largest_external, carried, bound, .. } = self;
        let Peak { time, level, number, choices, .. } = self;
        let sums = [live, external, largest, largest_external, carried, bound, &self.reach];
        let mut state: Vec<u64> = sums.iter().map(|sum| sum.count).collect();
        state.extend([*time, u64::from(*level), *number]);
        state.extend(parts);
        state.extend(choices.iter().flat_map(|choice| [choice.largest, choice.other]));
        state.extend(sums.iter().map(|sum| sum.variance));
        state
    }

    /// From [`Peak::state`]; `None` if that is not one.
    pub(crate) fn from_state(state: &[u64]) -> Option<Peak> {
        let &[live, external, largest, largest_external, carried, bound, reach, ref state @ ..] =
            state
        else {
            return None;
        };
        let &[time, level, number, p, q, r, a, b, c, d, e, f, ref variances @ ..] = state else {
            return None;
        };
        let counts = [live, external, largest, largest_external, carried, bound, reach];
        let variances = <[u64; 7]>::try_from(variances).ok()?;
        let sampled = |at: usize| Sampled { count: counts[at], variance: variances[at] };
        let choices = [(a, b), (c, d), (e, f)].map(|(largest, other)| Choice { largest, other });
        let level = u32::try_from(level).ok().filter(|&level| level < 64)?;
        Some(Peak {
            live: sampled(0),
            external: sampled(1),
            parts: [p, q, r],
            largest: sampled(2),
            largest_external: sampled(3),
            carried: sampled(4),
            bound: sampled(5),
            time,
            level,
            number,
            choices,
            reach: sampled(6),
            ..Peak::default()
        })
    }

    pub(crate) fn live(&self) -> Sampled {
        self.live
    }

    /// Changes whenever there is a new peak.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// When the sampled live size was largest.
    pub(crate) fn time(&self) -> u64 {
        self.time
    }

    /// The level of thinning at the peak.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// The largest number of live samples.
    pub(crate) fn largest(&self) -> Sampled {
        self.largest
    }

    /// Of these, the samples outside the heap.
    pub(crate) fn largest_external(&self) -> Sampled {
        self.largest_external
    }

    /// The samples outside the heap that are alive now.
    pub(crate) fn external(&self) -> Sampled {
        self.external
    }

    /// Samples alive when their file ended that may still be alive: see [`Peak::bound`].
    pub(crate) fn carried(&self) -> Sampled {
        self.carried
    }

    /// The most samples that can have been alive at once.
    pub(crate) fn bound(&self) -> Sampled {
        self.bound
    }

    /// The estimate: see the module. At rate 1 it is the largest number itself. `level` is that of
    /// thinning then.
    pub(crate) fn estimate(&self, scale: &Scale, level: u32, cluster: f64) -> Estimate {
        if scale.is_exact() {
            return scale.thinned(self.largest, level, cluster);
        }
        let honest: f64 = self.choices.iter().map(|choice| choice.other as f64).sum();
        let largest = self.largest.count as f64;
        let honest = honest.min(largest);
        // The largest size may have been that of a moment with a larger error, which was seen too small.
        let spread = scale.thinned_spread(self.largest, level, cluster);
        let spread = match self.reach.count {
            0 => spread,
            _ => spread.max(scale.thinned_spread(self.reach, level, cluster)),
        };
        let middle = scale.with_variance(f64::midpoint(honest, largest), spread);
        let low = scale.with_variance(honest, spread).low;
        Estimate { low, error: (middle.high - low) / 2.0 / Z95, ..middle }
    }
}

/// The samples of an object by part: multinomial with equal probabilities, and a
/// function of the object's id, so that it is the same at every call.
pub(crate) fn parts(id: u64, samples: u64, level: u32) -> Parts {
    const EXACT: u64 = 1 << 12;
    if samples > EXACT {
        return normal_parts(id, samples).map(|part| part << level);
    }
    let mut parts = [0; 3];
    let mut state = id.wrapping_mul(0x2545_f491_4f6c_dd1d);
    let mut left = samples;
    while left > 0 {
        // Digits in base three of one random number.
        state = scramble(state);
        let mut digits = state;
        for _ in 0..left.min(24) {
            parts[third(digits)] += 1 << level;
            digits = digits.wrapping_mul(3);
        }
        left = left.saturating_sub(24);
    }
    parts
}

/// The third of all numbers that a number is in: the upper word of its product with 3.
/// WebAssembly has no products of 128 bits, and calls a function for them.
fn third(number: u64) -> usize {
    const LOW: u64 = (1 << 32) - 1;
    let carried = ((number & LOW) * 3) >> 32;
    (((number >> 32) * 3 + carried) >> 32) as usize
}

/// The normal approximation of the multinomial distribution, for thousands of samples.
fn normal_parts(id: u64, samples: u64) -> Parts {
    // Twelve uniform numbers have variance one.
    let uniform = |turn: u64| scramble(scramble(id) ^ turn) as f64 / u64::MAX as f64;
    let deviate = |from: u64| (from..from + 12).map(uniform).sum::<f64>() - 6.0;
    let share = |of: u64, chance: f64, deviate: f64| {
        let spread = (of as f64 * chance * (1.0 - chance)).sqrt();
        ((of as f64 * chance + deviate * spread).round().max(0.0) as u64).min(of)
    };
    let first = share(samples, 1.0 / 3.0, deviate(0));
    let second = share(samples - first, 0.5, deviate(12));
    [first, second, samples - first - second]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_third_is_the_upper_word_of_a_product() {
        let edge = u64::MAX / 3;
        let edges = [0, 1, edge, edge + 1, 2 * edge, 2 * edge + 1, u64::MAX, u64::MAX - 1, 1 << 32];
        let random = (0..10_000).map(scramble);
        for number in edges.into_iter().chain(random) {
            assert_eq!(third(number), ((u128::from(number) * 3) >> 64) as usize, "{number}");
        }
    }

    #[test]
    fn parts_are_multinomial() {
        for samples in [1, 3, 24, 25, 1000, 1 << 13] {
            for part in 0..3 {
                let draws = 4000;
                let (mut sum, mut squares) = (0.0, 0.0);
                for id in 0..draws {
                    let drawn = parts(id, samples, 0);
                    assert_eq!(drawn.iter().sum::<u64>(), samples);
                    let off = drawn[part] as f64 - samples as f64 / 3.0;
                    sum += off;
                    squares += off * off;
                }
                let (count, variance) = (draws as f64, samples as f64 * 2.0 / 9.0);
                // Five standard deviations of the mean, and of the variance.
                assert!(sum.abs() < 5.0 * (count * variance).sqrt(), "{samples}: {sum}");
                let ratio = squares / count / variance;
                assert!((ratio - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "{samples}: {ratio}");
            }
        }
        assert_eq!(parts(7, 3, 2), parts(7, 3, 0).map(|part| part << 2));
    }

    #[test]
    fn the_peak_is_where_most_is_alive() {
        let mut peak = Peak::default();
        let count = |count| Sampled { count, variance: 0 };
        let samples = |all, external, parts| LiveSamples {
            all: count(all),
            external: count(external),
            parts,
        };
        peak.add(samples(10, 0, [5, 2, 3]), 1, 0);
        peak.add(samples(20, 20, [10, 4, 6]), 2, 0);
        peak.remove(samples(25, 20, [12, 6, 7]));
        peak.add(samples(3, 3, [1, 1, 1]), 4, 0);
        assert_eq!((peak.largest(), peak.time(), peak.live()), (count(30), 2, count(8)));
        let found = [peak.largest_external(), peak.external(), peak.bound()];
        assert_eq!(found, [20, 3, 30].map(count));
        let exact = peak.estimate(&Scale::new(1.0, 8.0), 0, 1.0);
        assert_eq!((exact.bytes, exact.error), (240.0, 0.0));
        let sampled = peak.estimate(&Scale::new(0.1, 8.0), 0, 1.0);
        assert!((sampled.bytes - 2400.0).abs() < 1e-9);
        assert_eq!(Peak::from_state(&peak.state()).unwrap().state(), peak.state());
    }

    #[test]
    fn what_may_still_be_alive_counts_for_the_bound_only() {
        let mut peak = Peak::default();
        let count = |count| Sampled { count, variance: 0 };
        let samples = |all| LiveSamples { all: count(all), external: NONE, parts: [all, 0, 0] };
        peak.add(samples(10), 1, 0);
        peak.remove(samples(10));
        peak.carry(count(10));
        peak.add(samples(4), 2, 0);
        let found = [peak.largest(), peak.live(), peak.carried(), peak.bound()];
        assert_eq!(found, [10, 4, 10, 14].map(count));
    }
}
