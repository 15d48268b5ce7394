//! When the live size was largest, and how large.
//!
//! The largest of many noisy values is larger than the true largest: what is
//! chosen for its noise has a bias. So every sample falls, by the toss of a
//! coin, into one of two halves. Each half chooses a moment by its own noise and
//! the other half, which knows nothing of that noise, says how large it was
//! then. The sum of both answers has no such bias, but half of the samples find
//! a worse moment than all of them do, so it is too low where the live size
//! wavers by as much as its noise. The estimate is the middle of the two, and
//! its interval has room for both: with a clear peak they are the same, and
//! `docs/statistics.md` shows what the interval is worth without one.

use crate::estimate::{Estimate, Scale, Z95, thinning_spread};
use crate::live::scramble;

/// One half's choice.
#[derive(Clone, Copy, Default)]
struct Choice {
    largest: u64,
    time: u64,
    /// The other half at that time.
    other: u64,
}

impl Choice {
    fn note(&mut self, own: u64, other: u64, time: u64) {
        if own > self.largest {
            *self = Choice { largest: own, time, other };
        }
    }
}

/// Follows the live samples, and remembers their largest number.
#[derive(Default)]
pub(crate) struct Peak {
    live: u64,
    first_half: u64,
    largest: u64,
    time: u64,
    level: u32,
    /// How often there was a new largest number.
    number: u64,
    choices: [Choice; 2],
}

impl Peak {
    /// Samples appear.
    pub(crate) fn add(&mut self, samples: u64, first_half: u64, time: u64, level: u32) {
        self.live = self.live.wrapping_add(samples);
        self.first_half = self.first_half.wrapping_add(first_half);
        if self.live > self.largest {
            self.largest = self.live;
            self.time = time;
            self.level = level;
            self.number += 1;
        }
        let second_half = self.live.wrapping_sub(self.first_half);
        self.choices[0].note(self.first_half, second_half, time);
        self.choices[1].note(second_half, self.first_half, time);
    }

    /// Samples disappear.
    pub(crate) fn remove(&mut self, samples: u64, first_half: u64) {
        self.live = self.live.wrapping_sub(samples);
        self.first_half = self.first_half.wrapping_sub(first_half);
    }

    /// The live samples were counted anew.
    pub(crate) fn recount(&mut self, live: u64, first_half: u64) {
        self.live = live;
        self.first_half = first_half;
    }

    pub(crate) fn live(&self) -> u64 {
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

    /// How thinned the objects were then.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// The largest number of live samples.
    pub(crate) fn largest(&self) -> u64 {
        self.largest
    }

    /// The estimate: see the module. Where nothing was left to chance it is what
    /// was found.
    pub(crate) fn estimate(&self, scale: &Scale, cluster: f64) -> Estimate {
        if scale.rate >= 1.0 {
            return scale.thinned(self.largest, self.level, cluster);
        }
        let [first, second] = self.choices;
        let honest = first.other as f64 + second.other as f64;
        let middle = f64::midpoint(honest, self.largest as f64);
        // Two halves of different moments do not share the words they saw.
        let shared = if first.time == second.time { scale.rate } else { scale.rate / 2.0 };
        let spread = 1.0 - shared + thinning_spread(self.level, cluster);
        let from = scale.with_variance(honest.min(middle), spread);
        let estimate = scale.with_variance(middle, spread);
        let error = estimate.error + (estimate.low - from.low) / 2.0 / Z95;
        Estimate { low: from.low, error, ..estimate }
    }
}

/// How many of an object's samples fall into the first half: binomial with even
/// chances, and the same whenever the object is asked for.
pub(crate) fn first_half(id: u64, samples: u64) -> u64 {
    const EXACT: u64 = 1 << 12;
    if samples > EXACT {
        return normal_half(id, samples);
    }
    let mut heads = 0;
    let mut left = samples;
    let mut state = id.wrapping_mul(0x2545_f491_4f6c_dd1d);
    while left > 0 {
        let tossed = left.min(64);
        state = scramble(state);
        heads += u64::from((state >> (64 - tossed)).count_ones());
        left -= tossed;
    }
    heads
}

/// The normal law in place of the binomial one, for thousands of tosses.
fn normal_half(id: u64, samples: u64) -> u64 {
    // Twelve uniform numbers have variance one.
    let uniform = |turn: u64| scramble(scramble(id) ^ turn) as f64 / u64::MAX as f64;
    let deviate: f64 = (0..12).map(uniform).sum::<f64>() - 6.0;
    let half = samples as f64 / 2.0 + deviate * (samples as f64).sqrt() / 2.0;
    (half.round().max(0.0) as u64).min(samples)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_binomial() {
        for samples in [1, 3, 64, 65, 1000, 1 << 13] {
            let draws = 4000;
            let (mut sum, mut squares) = (0.0, 0.0);
            for id in 0..draws {
                let off = first_half(id, samples) as f64 - samples as f64 / 2.0;
                sum += off;
                squares += off * off;
            }
            let (count, variance) = (draws as f64, samples as f64 / 4.0);
            // Five standard deviations of the mean, and of the variance.
            assert!(sum.abs() < 5.0 * (count * variance).sqrt(), "{samples}: {sum}");
            let ratio = squares / count / variance;
            assert!((ratio - 1.0).abs() < 5.0 * (2.0 / count).sqrt(), "{samples}: {ratio}");
        }
    }

    #[test]
    fn the_peak_is_where_most_is_alive() {
        let mut peak = Peak::default();
        peak.add(10, 5, 1, 0);
        peak.add(20, 10, 2, 0);
        peak.remove(25, 12);
        peak.add(3, 1, 4, 0);
        assert_eq!((peak.largest(), peak.time(), peak.live()), (30, 2, 8));
        let exact = peak.estimate(&Scale { rate: 1.0, word_bytes: 8.0 }, 1.0);
        assert_eq!((exact.bytes, exact.error), (240.0, 0.0));
        let sampled = peak.estimate(&Scale { rate: 0.1, word_bytes: 8.0 }, 1.0);
        assert!((sampled.bytes - 2400.0).abs() < 1e-9);
    }
}
