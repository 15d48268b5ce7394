//! Gaps between samples: geometric variates, by inversion of the exponential distribution.
//!
//! With U uniform on (0, 1) and λ = −ln(1 − p), the number 1 + ⌊−ln U ÷ λ⌋ is the index of
//! the first success in trials of probability p: the probability that it exceeds k is
//! P(−ln U ≥ kλ) = (1 − p)ᵏ, exactly (Devroye, *Non-Uniform Random Variate Generation*,
//! X.2).
//!
//! The effects of floating point:
//! - U = (r + ½) ÷ 2⁶⁴ with a 64-bit r. So the tail reaches 45 means, where 53 bits would
//!   cut it at 36. What lies beyond has probability 2⁻⁶⁵.
//! - λ comes from `ln_1p`, which is accurate for small p too. It is infinite for p = 1, where
//!   every gap is 1.
//! - The quotient has a relative error of some 10⁻¹⁵. It changes a gap by one word only if
//!   the exact quotient is that close to an integer: at p = 10⁻⁷, one gap in 10⁷.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::sampling::logarithm::{floor, minus_ln_uniform};

/// The probability with which each word is sampled: from 1e-7 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate(f64);

impl Rate {
    /// The lowest rate. Gaps stay below 2³² at this rate.
    pub(crate) const MIN: f64 = 1e-7;

    /// The default of the original memtrace.
    pub(crate) const DEFAULT: Rate = Rate(1e-5);

    pub(crate) fn new(rate: f64) -> Option<Rate> {
        (Self::MIN..=1.0).contains(&rate).then_some(Rate(rate))
    }

    pub(crate) fn get(self) -> f64 {
        self.0
    }

    /// The rate as a number that atomics and records can hold.
    pub(crate) fn bits(self) -> u64 {
        self.0.to_bits()
    }

    /// The rate with these [bits](Rate::bits).
    pub(crate) fn from_bits(bits: u64) -> Option<Rate> {
        Rate::new(f64::from_bits(bits))
    }
}

/// How many gaps are drawn at a time. The compiler vectorises the logarithms of a batch,
/// and their latencies overlap (bench `gap`).
const BATCH: usize = 32;

/// A stream of gaps.
pub(crate) struct Gaps {
    generator: Xoshiro256PlusPlus,
    /// The bits of the rate.
    rate: u64,
    /// Whether the rate is 1.
    all_one: bool,
    /// 1 ÷ λ.
    mean: f64,
    drawn: [u32; BATCH],
    /// The first `left` of `drawn` are not used yet.
    left: usize,
}

impl Gaps {
    /// Stream number `stream` of a seed. Streams of one seed are as independent as those of
    /// different seeds.
    pub(crate) fn new(rate: Rate, seed: u64, stream: u64) -> Gaps {
        let generator = Xoshiro256PlusPlus::seed_from_u64(mix(seed ^ mix(stream)));
        let (rate, all_one, mean) = (rate.bits(), rate.get() >= 1.0, mean_of(rate));
        Gaps { generator, rate, all_one, mean, drawn: [0; BATCH], left: 0 }
    }

    /// Draws gaps of this rate from now on, given by its bits. A gap that was drawn before, and is
    /// not over, belongs to the other rate: its user draws another one or uses it up.
    #[inline]
    pub(crate) fn use_rate(&mut self, bits: u64) {
        if bits != self.rate {
            self.change_rate(bits);
        }
    }

    #[cold]
    fn change_rate(&mut self, bits: u64) {
        if let Some(rate) = Rate::from_bits(bits) {
            (self.rate, self.all_one, self.mean) = (bits, rate.get() >= 1.0, mean_of(rate));
            self.left = 0;
        }
    }

    /// Whether every word is a sample.
    #[inline]
    pub(crate) fn are_all_one(&self) -> bool {
        self.all_one
    }

    /// The distance in words from one sample to the next: at least 1.
    #[inline]
    pub(crate) fn next(&mut self) -> usize {
        if self.left == 0 {
            self.refill();
        }
        self.left -= 1;
        self.drawn.get(self.left).map_or(1, |&gap| gap as usize)
    }

    #[cold]
    #[inline(never)]
    fn refill(&mut self) {
        // Separate from the arithmetic, so that the compiler can vectorise that.
        let random: [u64; BATCH] = std::array::from_fn(|_| self.generator.next_u64());
        for (gap, &r) in self.drawn.iter_mut().zip(&random) {
            // Below 2³²: 46 ÷ 1e-7.
            *gap = floor(minus_ln_uniform(r) * self.mean) + 1;
        }
        self.left = BATCH;
    }
}

/// 1 ÷ λ of a rate.
fn mean_of(rate: Rate) -> f64 {
    -1.0 / (-rate.get()).ln_1p()
}

/// The finisher of `SplitMix64` (Steele, Lea, Flood, *Fast Splittable
/// Pseudorandom Number Generators*, 2014): a bijection in which each bit affects all others.
fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps(rate: f64, stream: u64) -> Gaps {
        Gaps::new(Rate::new(rate).unwrap(), 20_261_115, stream)
    }

    #[test]
    fn rates_outside_the_range_are_refused() {
        for rate in [0.0, -1.0, 0.99e-7, 1.000_001, f64::NAN, f64::INFINITY] {
            assert!(Rate::new(rate).is_none(), "{rate}");
        }
    }

    #[test]
    fn every_word_is_sampled_at_rate_1() {
        let mut gaps = gaps(1.0, 0);
        assert!((0..1000).all(|_| gaps.next() == 1));
    }

    #[test]
    fn a_seed_gives_the_same_gaps_and_streams_differ() {
        let first = |stream| {
            let mut gaps = gaps(1e-3, stream);
            std::array::from_fn::<_, 64, _>(|_| gaps.next())
        };
        assert_eq!(first(1), first(1));
        assert_ne!(first(1), first(2));
    }

    /// The mean of n gaps is 1 ÷ p ± √(1 − p) ÷ p ÷ √n: 5 sigma.
    #[test]
    fn the_mean_gap_is_the_inverse_of_the_rate() {
        const N: usize = 1_000_000;
        for rate in [1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.5, 0.9, 0.999] {
            let mut gaps = gaps(rate, 3);
            let mean = (0..N).map(|_| gaps.next() as f64).sum::<f64>() / N as f64;
            let sigma = (1.0 - rate).sqrt() / rate / (N as f64).sqrt();
            let off = (mean - 1.0 / rate) / sigma;
            assert!(off.abs() < 5.0, "rate {rate}: mean {mean}, {off:.2} sigma off");
        }
    }

    /// How often a gap is exactly k, against p (1 − p)ᵏ⁻¹: χ² over 20 values
    /// of k and the rest, 20 degrees of freedom, 99.9999 % quantile 67.
    #[test]
    fn gaps_follow_the_geometric_law() {
        const N: usize = 2_000_000;
        for rate in [0.02, 0.1, 0.3, 0.5, 0.75, 0.97] {
            let mut gaps = gaps(rate, 4);
            let mut seen = [0u64; 21];
            for _ in 0..N {
                seen[gaps.next().min(21) - 1] += 1;
            }
            let mut left = 1.0;
            let mut chi2 = 0.0;
            for (k, &count) in seen.iter().enumerate() {
                let chance = if k == 20 { left } else { left * rate };
                left -= chance;
                let expected = chance * N as f64;
                if expected > 5.0 {
                    chi2 += (count as f64 - expected).powi(2) / expected;
                }
            }
            assert!(chi2 < 67.0, "rate {rate}: χ² {chi2:.1}, {seen:?}");
        }
    }

    /// The tail, where a uniform of few bits would show: P(gap > 16 ÷ p) is
    /// e⁻¹⁶, about 1.1e-7. Of 2·10⁷ gaps 2.25 are expected: between 0 and 13
    /// at odds of a million to one.
    #[test]
    fn the_tail_is_not_cut() {
        let mut gaps = gaps(1e-6, 5);
        let long = (0..20_000_000).filter(|_| gaps.next() > 16_000_000).count();
        assert!((1..=13).contains(&long), "{long}");
    }
}
