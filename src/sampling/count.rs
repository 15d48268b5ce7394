//! Samples outside the young heap.
//!
//! The inline functions of the C header subtract the words of each allocation from a
//! countdown and call the tracer when it becomes negative. So an allocation that is not
//! sampled costs one subtraction and one branch.

use crate::sampling::Gaps;

/// Counts down to the next sample.
pub(crate) struct Countdown;

impl Countdown {
    /// The countdown while sampling is off: no sum of allocations reaches its end.
    pub(crate) const NEVER: isize = isize::MAX;

    /// The initial countdown: how many words precede the first sample.
    pub(crate) fn start(gaps: &mut Gaps) -> isize {
        gaps.next() as isize - 1
    }

    /// The number of samples in an allocation of `words` words, which the caller has just
    /// subtracted from `left`. Sets `left` to the countdown to the next sample.
    ///
    /// `None`, and nothing changes, if `left` is not negative or more negative than `words`
    /// can have made it.
    pub(crate) fn hit(gaps: &mut Gaps, left: &mut isize, words: usize) -> Option<u64> {
        let beyond = left.checked_neg().filter(|&beyond| beyond > 0)?.unsigned_abs();
        if beyond > words {
            return None;
        }
        if gaps.are_all_one() {
            *left = 0;
            return Some(beyond as u64);
        }
        let mut samples = 0;
        let mut at = *left;
        while at < 0 {
            at = at.saturating_add_unsigned(gaps.next());
            samples += 1;
        }
        *left = at;
        Some(samples)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Rate;

    /// The samples of consecutive allocations, counted as in the header.
    fn samples(rate: f64, seed: u64, sizes: &[usize]) -> Vec<u64> {
        let mut gaps = Gaps::new(Rate::new(rate).unwrap(), seed, 0);
        let mut left = Countdown::start(&mut gaps);
        sizes
            .iter()
            .map(|&words| {
                left -= words as isize;
                if left < 0 { Countdown::hit(&mut gaps, &mut left, words).unwrap() } else { 0 }
            })
            .collect()
    }

    #[test]
    fn every_word_is_sampled_at_rate_1() {
        let sizes = [1, 2, 300, 1, 100_000];
        assert_eq!(samples(1.0, 1, &sizes), [1, 2, 300, 1, 100_000]);
    }

    /// The same words are sampled however they are grouped into blocks.
    #[test]
    fn samples_are_on_words_not_on_blocks() {
        for seed in 0..50 {
            let single = samples(0.05, seed, &[1; 600]);
            let grouped = samples(0.05, seed, &[100, 1, 199, 250, 50]);
            let sum = |range: std::ops::Range<usize>| single[range].iter().sum::<u64>();
            let want = [sum(0..100), sum(100..101), sum(101..300), sum(300..550), sum(550..600)];
            assert_eq!(grouped, want, "seed {seed}");
        }
    }

    #[test]
    fn an_impossible_countdown_is_refused() {
        let mut gaps = Gaps::new(Rate::DEFAULT, 1, 0);
        for mut left in [0, 5, isize::MAX, isize::MIN, -100] {
            let before = left;
            assert_eq!(Countdown::hit(&mut gaps, &mut left, 99), None);
            assert_eq!(left, before);
        }
    }
}
