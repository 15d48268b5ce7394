//! From samples to bytes, with the error.
//!
//! Every word, headers included, is a sample with probability λ, independently.
//! So of `w` words `s ~ Binomial(w, λ)` are samples, `s/λ` estimates `w` without
//! bias, and `s(1−λ)/λ²` its variance. `docs/statistics.md` has the derivation,
//! its assumptions, and the test that compares it with the truth.

/// The two-sided 95 % quantile of the normal distribution.
pub(crate) const Z95: f64 = 1.959_963_984_540_054;

/// How likely it is that words beyond [`Scale::unseen_words`] have no sample.
const UNSEEN: f64 = 0.05;

/// What a count stands for in one trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The probability with which a word was sampled; of several, the lowest.
    rate: f64,
    /// Bytes in a word.
    pub word_bytes: f64,
    /// If the words were sampled at several rates: the units of counts. Otherwise they are
    /// samples.
    units: Option<Units>,
}

/// The units of counts of blocks that were sampled at several rates: [`crate::Rates`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Units {
    /// How many make a word.
    pub(crate) words: f64,
    /// How many make a variance of one squared word.
    pub(crate) squares: f64,
    /// The variance of all words of the trace, in squared words for each of them.
    pub(crate) whole_spread: f64,
}

/// A count with its variance, which only a trace with several rates has: that of one rate follows
/// from the count. The units are those of the trace's [`Scale`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sampled {
    /// Samples; of several rates, what they stand for.
    pub count: u64,
    /// The variance of that.
    pub variance: u64,
}

impl Sampled {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Sampled) -> Sampled {
        Sampled {
            count: self.count.saturating_add(other.count),
            variance: self.variance.saturating_add(other.variance),
        }
    }

    /// What is left without a part.
    #[must_use]
    pub fn without(self, part: Sampled) -> Sampled {
        Sampled {
            count: self.count.saturating_sub(part.count),
            variance: self.variance.saturating_sub(part.variance),
        }
    }

    /// So many of the same.
    #[inline]
    #[must_use]
    pub(crate) fn times(self, times: u64) -> Sampled {
        Sampled {
            count: self.count.saturating_mul(times),
            variance: self.variance.saturating_mul(times),
        }
    }
}

impl std::iter::Sum for Sampled {
    fn sum<I: Iterator<Item = Sampled>>(all: I) -> Sampled {
        all.fold(Sampled::default(), Sampled::plus)
    }
}

/// An estimated number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub bytes: f64,
    /// Its standard error, in bytes. That of no sample is not known, whatever is here.
    pub error: f64,
    /// The lower end of the 95 % confidence interval.
    pub low: f64,
    /// The upper end of that interval.
    pub high: f64,
}

impl Scale {
    /// That of a trace in which each word was sampled with the same probability.
    pub fn new(rate: f64, word_bytes: f64) -> Scale {
        Scale { rate, word_bytes, units: None }
    }

    /// That of a trace with several rates, of which this is the lowest.
    pub(crate) fn mixed(rate: f64, word_bytes: f64, units: Units) -> Scale {
        Scale { rate, word_bytes, units: Some(units) }
    }

    /// Whether the trace has several rates.
    pub(crate) fn is_mixed(&self) -> bool {
        self.units.is_some()
    }

    /// The lowest rate.
    pub fn lowest_rate(&self) -> f64 {
        self.rate
    }

    /// Whether every word was sampled.
    pub(crate) fn is_exact(&self) -> bool {
        self.rate >= 1.0
    }

    /// The bytes that a count of one stands for.
    pub fn unit_bytes(&self) -> f64 {
        self.units.map_or(self.word_bytes / self.rate, |units| self.word_bytes / units.words)
    }

    /// The bytes that a count stands for, without an error.
    pub fn bytes_of(&self, count: u64) -> f64 {
        match self.units {
            Some(_) => count as f64 * self.unit_bytes(),
            None => count as f64 * self.word_bytes / self.rate,
        }
    }

    /// How many blocks of this length a count is, on average: each has rate·(length + 1) samples.
    pub fn blocks(&self, count: u64, length: u64) -> f64 {
        let in_word = self.units.map_or(self.rate, |units| units.words);
        count as f64 / ((length as f64 + 1.0) * in_word)
    }

    /// The bytes that samples of a trace with one rate stand for.
    pub fn bytes(&self, samples: u64) -> Estimate {
        self.estimate(Sampled { count: samples, variance: 0 })
    }

    /// The bytes that a count stands for.
    pub fn estimate(&self, sampled: Sampled) -> Estimate {
        self.with_variance(sampled.count as f64, self.spread(sampled))
    }

    /// The same for samples of which only one in 2^`level` objects was tracked,
    /// and counted 2^`level` times. `cluster` is what the samples of a sample's object
    /// count, on average: they are allocated and collected together.
    pub fn thinned(&self, sampled: Sampled, level: u32, cluster: f64) -> Estimate {
        let spread = self.thinned_spread(sampled, level, cluster);
        self.with_variance(sampled.count as f64, spread)
    }

    /// A unit of variance in squared units of counts; 0 if there is one rate.
    pub(crate) fn square(&self) -> f64 {
        self.units.map_or(0.0, |units| units.words * units.words / units.squares)
    }

    /// What a sample of the lowest rate counts.
    fn lowest_count(&self) -> f64 {
        self.units.map_or(1.0, |units| units.words / self.rate)
    }

    /// The variance of a count for each unit of it.
    pub(crate) fn spread(&self, sampled: Sampled) -> f64 {
        match self.units {
            Some(_) if sampled.count == 0 => 1.0 - self.rate,
            Some(units) => {
                let count = sampled.count as f64;
                let own = sampled.variance as f64 / count * self.square();
                own.max((units.whole_spread * units.words).min(own + self.unseen_spread(count)))
            }
            None => 1.0 - self.rate,
        }
    }

    /// For each unit of a count, the variance of what chance may have left unseen of it at the lowest
    /// rate: that of the samples by which the score interval corrects a count.
    fn unseen_spread(&self, count: f64) -> f64 {
        let sample = self.lowest_count();
        Z95 * Z95 / 2.0 * (1.0 - self.rate) * sample * sample / count
    }

    /// The variance of a count.
    pub(crate) fn variance(&self, sampled: Sampled) -> f64 {
        sampled.count as f64 * self.spread(sampled)
    }

    /// The variance of a sum of such blocks that come and go by chance, for each of them. What a block
    /// counts comes and goes as a whole, so it is the square of that. Of several rates, it is what it would
    /// be on average if all had been sampled at the lowest; it is never less than the variance of sampling.
    pub(crate) fn block_variance(&self, block: Sampled) -> f64 {
        let count = block.count as f64;
        match self.units {
            Some(units) if block.count > 0 => {
                let sample = block.variance as f64 / count * self.square() + units.words;
                count * (count + (self.lowest_count() - sample).max(0.0))
            }
            _ => count * count,
        }
    }

    /// The same with the variance of thinning.
    pub(crate) fn thinned_spread(&self, sampled: Sampled, level: u32, cluster: f64) -> f64 {
        self.spread(sampled) + thinning_spread(level, cluster)
    }

    /// How many samples a count is of. Of several rates, how many of one rate give the same
    /// relative error: all, if they are of one rate.
    pub fn samples(&self, sampled: Sampled) -> u64 {
        match self.units {
            Some(units) if sampled.count > 0 => {
                let each = self.spread(sampled) + units.words;
                ((sampled.count as f64 / each).round() as u64).max(1)
            }
            _ => sampled.count,
        }
    }

    /// The least number of words that have a sample with a probability of 95 %: if there is
    /// none, there were fewer. At rate 1 it is none. Of several rates, it is that of the lowest.
    pub fn unseen_words(&self) -> f64 {
        (UNSEEN.ln() / (-self.rate).ln_1p()).ceil()
    }

    /// From a count in which each sample has the variance `spread`. The interval
    /// is the score interval, which is accurate from a few samples on. That of no sample is
    /// exact: up to [`Scale::unseen_words`].
    pub(crate) fn with_variance(&self, count: f64, spread: f64) -> Estimate {
        let unit = self.unit_bytes();
        if count == 0.0 {
            // Where blocks were thinned, one that is tracked stands for others.
            let thinning = (spread - (1.0 - self.rate)).max(0.0) / self.lowest_count();
            let high = self.unseen_words() * self.word_bytes * (1.0 + thinning);
            return Estimate { high, ..Estimate::default() };
        }
        let middle = count + Z95 * Z95 * spread / 2.0;
        let half = Z95 * (count * spread + Z95 * Z95 * spread * spread / 4.0).sqrt();
        Estimate {
            bytes: count * unit,
            error: (count * spread).sqrt() * unit,
            low: (middle - half).max(0.0) * unit,
            high: (middle + half) * unit,
        }
    }
}

/// The variance that thinning adds to a sample.
pub(crate) fn thinning_spread(level: u32, cluster: f64) -> f64 {
    cluster * (2_f64.powi(level as i32) - 1.0)
}

impl Estimate {
    /// The standard error as a share of the estimate.
    pub fn relative_error(&self) -> f64 {
        if self.bytes > 0.0 { self.error / self.bytes } else { 0.0 }
    }
}

/// An estimated share of something, between 0 and 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Share {
    /// The estimate.
    pub share: f64,
    /// Its standard error.
    pub error: f64,
}

impl Share {
    /// Of `all`, `part` has the property.
    pub fn of(part: Sampled, all: Sampled, scale: &Scale) -> Share {
        if all.count == 0 {
            return Share::default();
        }
        let share = (part.count as f64 / all.count as f64).min(1.0);
        if !scale.is_mixed() {
            let error = (share * (1.0 - share) / all.count as f64 * (1.0 - scale.rate)).sqrt();
            return Share { share, error };
        }
        // What has the property and what does not were sampled independently.
        let (with, others) = (scale.variance(part), scale.variance(all.without(part)));
        let variance = with * (1.0 - share).powi(2) + others * share.powi(2);
        Share { share, error: variance.sqrt() / all.count as f64 }
    }

    /// The same with an error that is right for few samples too: that of the score interval. If all of
    /// three samples have the property, 100 % is not certain. Exact at rate 1.
    pub fn scored(part: Sampled, all: Sampled, scale: &Scale) -> Share {
        let Share { share, error } = Share::of(part, all, scale);
        if all.count == 0 {
            return Share::default();
        }
        let inflation = Z95 * Z95 * scale.spread(all) / all.count as f64;
        let variance = error * error + inflation * inflation / (4.0 * Z95 * Z95);
        Share { share, error: variance.sqrt() / (1.0 + inflation) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_rate_one_everything_is_exact() {
        let exact = Scale::new(1.0, 8.0).bytes(1000);
        assert_eq!(exact, Estimate { bytes: 8000.0, error: 0.0, low: 8000.0, high: 8000.0 });
    }

    #[test]
    fn the_error_falls_with_the_root_of_the_samples() {
        let scale = Scale::new(1e-4, 8.0);
        let samples = |count| Sampled { count, variance: 0 };
        let (few, many) = (scale.bytes(100), scale.bytes(10_000));
        assert!((few.relative_error() - 0.1).abs() < 1e-4);
        assert!((many.relative_error() - 0.01).abs() < 1e-5);
        assert!(few.low < few.bytes && few.bytes < few.high);
        assert_eq!(scale.bytes(0).low, 0.0);
        assert!(scale.thinned(samples(0), 2, 1.0).high > 3.9 * scale.bytes(0).high);
    }

    #[test]
    fn words_beyond_the_bound_of_no_sample_have_one_in_19_of_20_cases() {
        for rate in [1e-9, 1e-6, 1e-4, 0.1, 0.5, 0.9, 0.99] {
            let scale = Scale::new(rate, 8.0);
            let words = scale.unseen_words();
            let none = |words: f64| (words * (-rate).ln_1p()).exp();
            assert!(none(words) <= 0.05 && none(words - 1.0) > 0.05, "{rate}: {words}");
            assert_eq!(scale.bytes(0), Estimate { high: words * 8.0, ..Estimate::default() });
        }
        assert_eq!(Scale::new(1e-4, 8.0).unseen_words(), 29_956.0);
        assert_eq!(Scale::new(1.0, 8.0).bytes(0), Estimate::default());
    }

    #[test]
    fn a_share_of_few_samples_is_not_certain() {
        let samples = |count| Sampled { count, variance: 0 };
        assert_eq!(
            Share::scored(samples(3), samples(3), &Scale::new(1.0, 8.0)),
            Share { share: 1.0, error: 0.0 }
        );
        assert_eq!(Share::scored(samples(0), samples(0), &Scale::new(0.01, 8.0)), Share::default());
        let few = Share::scored(samples(3), samples(3), &Scale::new(1e-9, 8.0));
        assert_eq!(few.share, 1.0);
        // Wilson's interval for 3 of 3 is 0.438 to 1: half of that in units of 1.96.
        assert!((few.error - (1.0 - 0.438) / 2.0 / Z95).abs() < 1e-3, "{few:?}");
        let (many, plain) = (
            Share::scored(samples(900), samples(1000), &Scale::new(1e-9, 8.0)),
            Share::of(samples(900), samples(1000), &Scale::new(1e-9, 8.0)),
        );
        assert!((many.error / plain.error - 1.0).abs() < 0.01, "{many:?} {plain:?}");
    }

    #[test]
    fn thinning_keeps_the_estimate_and_widens_the_error() {
        let scale = Scale::new(1e-4, 8.0);
        let samples = |count| Sampled { count, variance: 0 };
        let (whole, thin) = (scale.bytes(4096), scale.thinned(samples(4096), 2, 1.0));
        assert_eq!(whole.bytes, thin.bytes);
        assert!((thin.error / whole.error - 2.0).abs() < 1e-3);
        // Objects of three samples: as if there were a third of them.
        let clustered = scale.thinned(samples(4096), 2, 3.0);
        assert!((clustered.error / whole.error - 10_f64.sqrt()).abs() < 1e-3);
    }
}
