//! What a trace without a sample says: not that nothing was allocated.

use crate::estimate::Scale;

/// The most samples that a better rate should give.
const MOST_SAMPLES: f64 = 1e5;

/// What is known of words of which none was sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unseen {
    /// There were fewer: with a probability of 95 %, so many have a sample.
    pub words: f64,
    /// A rate at which they have samples, up to 100,000: a power of ten.
    pub better_rate: f64,
}

impl Unseen {
    /// At this rate. `None` at rate 1, where no sample means that there were no words.
    pub fn at(rate: f64) -> Option<Unseen> {
        let words = Scale::new(rate, 1.0).unseen_words();
        let highest = (MOST_SAMPLES / words).min(1.0);
        let better_rate = 10_f64.powf(highest.log10().floor());
        (words > 0.0).then_some(Unseen { words, better_rate })
    }

    /// The better rate, as an option takes it.
    pub fn better_rate(&self) -> String {
        if self.better_rate >= 1e-3 {
            format!("{}", self.better_rate)
        } else {
            format!("{:e}", self.better_rate)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_better_rate_has_samples_but_not_too_many() {
        let better = |rate| Unseen::at(rate).map(|unseen| unseen.better_rate());
        let rates = [0.5, 1e-2, 1e-4, 1e-5, 1e-6, 1e-8, 1e-9].map(better);
        let expected = ["1", "1", "1", "0.1", "0.01", "1e-4", "1e-5"];
        assert_eq!(rates.map(Option::unwrap), expected);
        assert_eq!(Unseen::at(1e-4).unwrap().words, 29_956.0);
        assert_eq!(Unseen::at(1.0), None);
    }
}
