//! Which samples are kept when a trace is brought to a lower rate: each with the same probability.

use heaptap_trace::{Allocation, Block};
use rand::Rng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Chooses the samples that are kept.
pub(crate) struct Survivors {
    /// The probability with which each sample is kept.
    pub(crate) share: f64,
    pub(crate) random: Xoshiro256PlusPlus,
}

impl Survivors {
    /// What is left of an allocation, if anything.
    pub(crate) fn block(&mut self, allocation: &Allocation<'_>) -> Option<Block> {
        let samples = self.of(allocation.samples);
        (samples > 0).then_some(Block { samples, ..allocation.block() })
    }

    /// Above this variance a binomial number is drawn from the normal distribution
    /// of the same mean and variance; their distribution functions then differ by
    /// at most 3·10⁻⁴. Real blocks rarely have that many samples, and a hostile one
    /// must not take long.
    const MANY: f64 = 65_536.0;

    /// The number of samples that are kept, which is binomial.
    pub(crate) fn of(&mut self, samples: u64) -> u64 {
        if self.share >= 1.0 {
            return samples;
        }
        if samples == 1 {
            return u64::from(self.uniform() <= self.share);
        }
        let count = samples as f64;
        if count * self.share * (1.0 - self.share) > Self::MANY {
            return self.of_many(count).min(samples);
        }
        // Whichever kind is rarer is counted, by the gaps between its members.
        if self.share <= 0.5 {
            self.rare(samples, self.share)
        } else {
            samples - self.rare(samples, 1.0 - self.share)
        }
    }

    /// The number of successes among `samples` trials with probability `share`. The
    /// gap to the next one is geometric.
    fn rare(&mut self, samples: u64, share: f64) -> u64 {
        let mut left = samples as f64;
        let mut found = 0;
        loop {
            // `ln_1p` keeps the tiniest shares exact.
            let gap = (self.uniform().ln() / (-share).ln_1p()).floor();
            left -= gap + 1.0;
            if left < 0.0 {
                return found;
            }
            found += 1;
        }
    }

    fn of_many(&mut self, count: f64) -> u64 {
        let (mean, deviation) =
            (count * self.share, (count * self.share * (1.0 - self.share)).sqrt());
        // Box and Muller's method.
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let normal = radius * (std::f64::consts::TAU * self.uniform()).cos();
        (mean + deviation * normal).round().max(0.0) as u64
    }

    /// Uniform in (0, 1], a multiple of 2⁻⁵³.
    fn uniform(&mut self) -> f64 {
        const STEP: f64 = 1.0 / (1u64 << 53) as f64;
        ((self.random.next_u64() >> 11) + 1) as f64 * STEP
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng as _;

    use super::*;

    /// Mean and variance of the survivors of `samples`, over many draws,
    /// against those of the binomial law, at 4.5 sigma.
    fn assert_binomial(samples: u64, share: f64, draws: u32, seed: u64) {
        println!("seed {seed}, {samples} samples, share {share}");
        let mut survivors = Survivors { share, random: Xoshiro256PlusPlus::seed_from_u64(seed) };
        let (n, count) = (samples as f64, f64::from(draws));
        let (mean, variance) = (n * share, n * share * (1.0 - share));
        let deviations: Vec<f64> =
            (0..draws).map(|_| survivors.of(samples) as f64 - mean).collect();
        let first = deviations.iter().sum::<f64>() / count;
        let second = deviations.iter().map(|d| d * d).sum::<f64>() / count;
        // Fourth central moment of the binomial law.
        let fourth = variance * (1.0 + 3.0 * (n - 2.0) * share * (1.0 - share));
        let sigma_of_second = ((fourth - variance * variance) / count).sqrt();
        assert!(first.abs() <= 4.5 * (variance / count).sqrt(), "mean off by {first}");
        assert!(
            (second - variance).abs() <= 4.5 * sigma_of_second,
            "variance {second}, not {variance}"
        );
    }

    #[test]
    fn survivors_follow_the_binomial_law_for_few_and_many_samples() {
        let shares = [1e-3, 0.1, 0.5, 0.7, 0.999];
        for (seed, share) in (1..).zip(shares) {
            assert_binomial(1, share, 200_000, seed);
            assert_binomial(2, share, 200_000, seed + 10);
            assert_binomial(17, share, 100_000, seed + 20);
            assert_binomial(5000, share, 2_000, seed + 30);
        }
        assert_binomial(1 << 40, 0.3, 50_000, 99);
    }

    #[test]
    fn hostile_numbers_of_samples_take_no_time_and_stay_in_bounds() {
        for share in [1e-300, 1e-9, 0.5, 1.0 - f64::EPSILON / 2.0, 1.0] {
            let random = Xoshiro256PlusPlus::seed_from_u64(7);
            let mut survivors = Survivors { share, random };
            for samples in [1, 2, 1 << 40, (1 << 62) - 1] {
                assert!(survivors.of(samples) <= samples);
            }
        }
    }
}
