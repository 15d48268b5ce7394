//! Blocks that were sampled at several rates, in one count.
//!
//! A sample that was taken at rate r stands for 1/r words, and its word for that many with the
//! variance (1−r)/r². Both are linear: of blocks of any rates, the sum of samples/r estimates
//! their words without bias, and the sum of samples·(1−r)/r² its variance
//! (`docs/statistics.md`).
//!
//! Counts are integers, so that what is added is taken away again without a rest. With one rate
//! they are samples. With several they are words, in units of 2^-bits of a word, and beside each
//! count there is one of its variance, in units of its own. Both units are chosen by what the
//! whole trace has, which is known from a first reading: no sum overflows, and rounding changes
//! no figure by more than one in 10⁵ unless a trace has more than 2⁴⁰ words.

use crate::estimate::{Sampled, Scale, Units};

/// How many bits sums may take. The others are for rounding, and for samples that stand for those
/// of blocks that are not tracked: they make sums larger by chance.
pub(crate) const SUM_BITS: i32 = 60;

/// The finest units: 2⁻²⁰ of a word.
const FINEST: i32 = 20;

/// The rates at which the blocks of a trace were sampled, with what a sample of each counts.
/// Those of a trace with one rate are empty: a sample counts 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates {
    /// From the lowest to the highest; none or several.
    rates: Vec<f64>,
    weights: Vec<Sampled>,
    units: Option<Units>,
}

/// What a sample counts in a trace with one rate.
const ONE: Sampled = Sampled { count: 1, variance: 0 };

impl Rates {
    /// Those of a trace with one rate.
    pub(crate) const NONE: Rates = Rates { rates: Vec::new(), weights: Vec::new(), units: None };

    /// The rates of a trace, each with the number of samples that were taken at it: at least how
    /// many, if more may follow. A rate may occur several times. Those of one rate are empty.
    pub fn of(samples: impl IntoIterator<Item = (f64, u64)>) -> Rates {
        let samples: Vec<(f64, u64)> =
            samples.into_iter().filter(|&(rate, _)| rate > 0.0 && rate <= 1.0).collect();
        let mut rates: Vec<f64> = samples.iter().map(|&(rate, _)| rate).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        if rates.len() < 2 {
            return Rates::default();
        }
        let sum = |of: fn(f64) -> f64| -> f64 {
            samples.iter().map(|&(rate, samples)| samples.max(1) as f64 * of(rate)).sum()
        };
        let (all, variance) = (sum(words_of_sample), sum(variance_of_sample));
        let words = units_for(all).min(2_f64.powi(FINEST));
        let squares = units_for(variance);
        Rates::with_units(rates, Units { words, squares, whole_spread: variance / all })
    }

    /// Rates in ascending order that count in these units.
    pub(crate) fn with_units(rates: Vec<f64>, units: Units) -> Rates {
        let weights = rates.iter().map(|&rate| Sampled {
            count: (words_of_sample(rate) * units.words).round() as u64,
            // Not rounded to none: only at rate 1 there is no variance.
            variance: (variance_of_sample(rate) * units.squares).ceil() as u64,
        });
        Rates { weights: weights.collect(), rates, units: Some(units) }
    }

    /// Whether there are several.
    pub fn are_several(&self) -> bool {
        self.units.is_some()
    }

    /// The rates, from the lowest to the highest; none if there is only one.
    pub fn all(&self) -> &[f64] {
        &self.rates
    }

    /// The number of a rate; `None` if it is not one of several.
    pub fn number(&self, rate: f64) -> Option<u32> {
        let at = self.rates.binary_search_by(|known| known.total_cmp(&rate)).ok()?;
        u32::try_from(at).ok()
    }

    /// What a sample at the rate with this number counts.
    #[inline]
    pub(crate) fn weight(&self, number: u32) -> Sampled {
        self.weights.get(number as usize).copied().unwrap_or(ONE)
    }

    /// The size by which it is chosen whether a block is tracked ([`crate::thinning`]): its samples; of several
    /// rates, how many samples of the highest they stand for. So no single block decides an estimate
    /// because its rate was low.
    #[inline]
    pub(crate) fn thinning_size(&self, rated: RatedSamples) -> u64 {
        match self.weights.last() {
            None => rated.count(),
            Some(highest) => {
                let counted = self.weight(rated.rate()).times(rated.count()).count;
                counted / highest.count.max(1)
            }
        }
    }

    pub(crate) fn units(&self) -> Option<Units> {
        self.units
    }

    /// The scale of counts of these rates; `rate` is that of a trace with one.
    pub(crate) fn scale(&self, rate: f64, word_bytes: f64) -> Scale {
        match (self.units, self.rates.first()) {
            (Some(units), Some(&lowest)) => Scale::mixed(lowest, word_bytes, units),
            _ => Scale::new(rate, word_bytes),
        }
    }
}

/// The words that a sample stands for.
fn words_of_sample(rate: f64) -> f64 {
    1.0 / rate
}

/// The variance of the words that a sample stands for.
fn variance_of_sample(rate: f64) -> f64 {
    (1.0 - rate) / rate / rate
}

/// As many units as there can be to one, if a sum of so many is to fit: a power of two.
fn units_for(sum: f64) -> f64 {
    2_f64.powi((SUM_BITS - sum.max(1.0).log2().ceil() as i32).clamp(-1000, SUM_BITS))
}

/// The samples of a block, and the number of the rate at which they were taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RatedSamples(u64);

/// The bits of the number of samples.
pub(crate) const COUNT_BITS: u32 = 36;

/// The most rates that are told apart.
pub const MOST_RATES: u32 = 1 << (64 - COUNT_BITS);

impl RatedSamples {
    pub(crate) const NONE: RatedSamples = RatedSamples(0);

    #[inline]
    pub(crate) fn new(samples: u64, rate: u32) -> RatedSamples {
        debug_assert!(samples >> COUNT_BITS == 0 && rate < MOST_RATES);
        RatedSamples(samples & ((1 << COUNT_BITS) - 1) | u64::from(rate) << COUNT_BITS)
    }

    #[inline]
    pub(crate) fn count(self) -> u64 {
        self.0 & ((1 << COUNT_BITS) - 1)
    }

    #[inline]
    pub(crate) fn rate(self) -> u32 {
        (self.0 >> COUNT_BITS) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_with_one_rate_counts_samples() {
        for samples in [vec![], vec![(1e-4, 7)], vec![(1e-4, 7), (1e-4, 9), (0.0, 3), (2.0, 1)]] {
            let rates = Rates::of(samples);
            assert!(!rates.are_several() && rates.all().is_empty());
            assert_eq!(rates.weight(0), ONE);
        }
    }

    #[test]
    fn weights_are_precise_and_their_sums_fit() {
        let cases = [
            vec![(1e-3, 1 << 30), (1e-6, 60)],
            vec![(1.0, 1 << 20), (1e-9, 1 << 30)],
            vec![(0.9, 1 << 36), (0.3, 5), (1e-4, 1 << 20)],
            vec![(1.0, 0), (0.5, 0)],
        ];
        for samples in cases {
            let rates = Rates::of(samples.iter().copied());
            let units = rates.units().unwrap();
            let (mut words, mut squares) = (0_u64, 0_u64);
            for &(rate, samples) in &samples {
                let weight = rates.weight(rates.number(rate).unwrap());
                let precise = weight.count as f64 / units.words * rate;
                assert!((precise - 1.0).abs() < 1e-5, "{rate}: {precise}");
                assert_eq!(weight.variance == 0, rate == 1.0);
                words = words.checked_add(weight.count.checked_mul(samples).unwrap()).unwrap();
                let of_rate = weight.variance.checked_mul(samples).unwrap();
                squares = squares.checked_add(of_rate).unwrap();
            }
            assert!(words < 1 << 62 && squares < 1 << 62, "{samples:?}: {words}, {squares}");
        }
        let rates = Rates::of([(1e-3, 1000), (1e-6, 1000)]);
        let (low, high) = (rates.weight(0), rates.weight(1));
        let ratio = low.variance as f64 / high.variance as f64;
        assert!((ratio / (0.999_999 / 0.999 * 1e6) - 1.0).abs() < 1e-5, "{ratio}");
        assert_eq!(rates.number(1e-4), None);
    }

    /// A row that was allocated at a low rate and at a high one, of the low one so little that it may have no
    /// sample: the interval knows that. Exact, by the Poisson law; each share of the row that is at the low rate.
    #[test]
    fn what_a_low_rate_may_have_missed_is_in_the_interval() {
        let rates = Rates::of([(1e-4, 3_000), (1e-1, 1_000_000)]);
        let (low, high) = (rates.weight(0), rates.weight(1));
        let scale = rates.scale(1e-4, 8.0);
        let words_at_high = 50_000.0;
        for expected in [0.0, 0.05, 0.5, 1.0, 2.0, 4.0, 9.0] {
            let truth = (words_at_high + expected / 1e-4) * 8.0;
            let (mut held, mut chance) = (0.0, f64::exp(-expected));
            for samples in 0..60_u64 {
                // At the high rate, the row has the samples that are to be expected.
                let found = high.times((words_at_high * 1e-1) as u64).plus(low.times(samples));
                let estimate = scale.estimate(found);
                if (estimate.low..=estimate.high).contains(&truth) {
                    held += chance;
                }
                chance *= expected / (samples + 1) as f64;
            }
            assert!(held > 0.9, "{expected} samples are expected: {held:.3} of the intervals hold");
        }
        // A row that is large beside what may be missing has its own error.
        let large = high.times(100_000_000);
        let own = (large.variance as f64 * scale.square()).sqrt() * scale.unit_bytes();
        assert!((scale.estimate(large).error / own - 1.0).abs() < 0.1);
    }

    #[test]
    fn samples_keep_the_number_of_their_rate() {
        for (samples, rate) in [(0, 0), (1, MOST_RATES - 1), ((1 << COUNT_BITS) - 1, 7)] {
            let rated = RatedSamples::new(samples, rate);
            assert_eq!((rated.count(), rated.rate()), (samples, rate));
        }
    }
}
