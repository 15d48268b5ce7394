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

/// What a sample stands for in one trace.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    /// The probability with which a word was sampled.
    pub rate: f64,
    /// Bytes in a word.
    pub word_bytes: f64,
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
    /// The bytes that these samples stand for.
    pub fn bytes(&self, samples: u64) -> Estimate {
        self.with_variance(samples as f64, 1.0 - self.rate)
    }

    /// The same for samples of which only one in 2^`level` objects was tracked,
    /// and counted 2^`level` times. `cluster` is how many samples the object of a
    /// sample has, on average: they are allocated and collected together.
    pub fn thinned(&self, samples: u64, level: u32, cluster: f64) -> Estimate {
        let spread = 1.0 - self.rate + thinning_spread(level, cluster);
        self.with_variance(samples as f64, spread)
    }

    /// The least number of words that have a sample with a probability of 95 %: if there is
    /// none, there were fewer. At rate 1 it is none.
    pub fn unseen_words(&self) -> f64 {
        (UNSEEN.ln() / (-self.rate).ln_1p()).ceil()
    }

    /// From a count in which each sample has the variance `spread`. The interval
    /// is the score interval, which is accurate from a few samples on. That of no sample is
    /// exact: up to [`Scale::unseen_words`].
    pub(crate) fn with_variance(&self, count: f64, spread: f64) -> Estimate {
        let unit = self.word_bytes / self.rate;
        if count == 0.0 {
            // Where blocks were thinned, one that is tracked stands for others.
            let thinning = (spread - (1.0 - self.rate)).max(0.0);
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
    /// Of `all` samples, `part` have the property.
    pub fn of(part: u64, all: u64, rate: f64) -> Share {
        if all == 0 {
            return Share::default();
        }
        let share = (part as f64 / all as f64).min(1.0);
        Share { share, error: (share * (1.0 - share) / all as f64 * (1.0 - rate)).sqrt() }
    }

    /// The same with an error that is right for few samples too: that of the score interval. If all of
    /// three samples have the property, 100 % is not certain. Exact at rate 1.
    pub fn scored(part: u64, all: u64, rate: f64) -> Share {
        let Share { share, error } = Share::of(part, all, rate);
        if all == 0 {
            return Share::default();
        }
        let inflation = Z95 * Z95 * (1.0 - rate) / all as f64;
        let variance = error * error + inflation * inflation / (4.0 * Z95 * Z95);
        Share { share, error: variance.sqrt() / (1.0 + inflation) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_rate_one_everything_is_exact() {
        let exact = Scale { rate: 1.0, word_bytes: 8.0 }.bytes(1000);
        assert_eq!(exact, Estimate { bytes: 8000.0, error: 0.0, low: 8000.0, high: 8000.0 });
    }

    #[test]
    fn the_error_falls_with_the_root_of_the_samples() {
        let scale = Scale { rate: 1e-4, word_bytes: 8.0 };
        let (few, many) = (scale.bytes(100), scale.bytes(10_000));
        assert!((few.relative_error() - 0.1).abs() < 1e-4);
        assert!((many.relative_error() - 0.01).abs() < 1e-5);
        assert!(few.low < few.bytes && few.bytes < few.high);
        assert_eq!(scale.bytes(0).low, 0.0);
        assert!(scale.thinned(0, 2, 1.0).high > 3.9 * scale.bytes(0).high);
    }

    #[test]
    fn words_beyond_the_bound_of_no_sample_have_one_in_19_of_20_cases() {
        for rate in [1e-9, 1e-6, 1e-4, 0.1, 0.5, 0.9, 0.99] {
            let scale = Scale { rate, word_bytes: 8.0 };
            let words = scale.unseen_words();
            let none = |words: f64| (words * (-rate).ln_1p()).exp();
            assert!(none(words) <= 0.05 && none(words - 1.0) > 0.05, "{rate}: {words}");
            assert_eq!(scale.bytes(0), Estimate { high: words * 8.0, ..Estimate::default() });
        }
        assert_eq!(Scale { rate: 1e-4, word_bytes: 8.0 }.unseen_words(), 29_956.0);
        assert_eq!(Scale { rate: 1.0, word_bytes: 8.0 }.bytes(0), Estimate::default());
    }

    #[test]
    fn a_share_of_few_samples_is_not_certain() {
        assert_eq!(Share::scored(3, 3, 1.0), Share { share: 1.0, error: 0.0 });
        assert_eq!(Share::scored(0, 0, 0.01), Share::default());
        let few = Share::scored(3, 3, 1e-9);
        assert_eq!(few.share, 1.0);
        // Wilson's interval for 3 of 3 is 0.438 to 1: half of that in units of 1.96.
        assert!((few.error - (1.0 - 0.438) / 2.0 / Z95).abs() < 1e-3, "{few:?}");
        let (many, plain) = (Share::scored(900, 1000, 1e-9), Share::of(900, 1000, 1e-9));
        assert!((many.error / plain.error - 1.0).abs() < 0.01, "{many:?} {plain:?}");
    }

    #[test]
    fn thinning_keeps_the_estimate_and_widens_the_error() {
        let scale = Scale { rate: 1e-4, word_bytes: 8.0 };
        let (whole, thin) = (scale.bytes(4096), scale.thinned(4096, 2, 1.0));
        assert_eq!(whole.bytes, thin.bytes);
        assert!((thin.error / whole.error - 2.0).abs() < 1e-3);
        // Objects of three samples: as if there were a third of them.
        let clustered = scale.thinned(4096, 2, 3.0);
        assert!((clustered.error / whole.error - 10_f64.sqrt()).abs() < 1e-3);
    }
}
