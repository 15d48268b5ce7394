//! Samples in the young heap, which is filled downwards.
//!
//! The next sample is an address: the word just below [`YoungSamples::limit`]. An allocation
//! that moves the runtime's pointer below the limit contains that word. So the comparison
//! that the runtime makes anyway finds the samples, without one more instruction, and
//! addresses alone decide which parts of a combined allocation are sampled.

use crate::sampling::{Gaps, WORD};

/// The next sample in one young heap.
pub(crate) struct YoungSamples {
    /// The end address of the next sampled word. If below `start`, this heap has no more.
    next_end: usize,
    /// The heap's lowest address.
    start: usize,
}

/// A sampled part of a combined allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampledPart {
    /// Its index, in the order of addresses.
    pub(crate) index: usize,
    /// Its lowest address, header included.
    pub(crate) address: usize,
    /// Its size, header included.
    pub(crate) words: usize,
    /// The number of samples in it, at least 1.
    pub(crate) samples: u64,
}

/// The size in words of each part of an allocation, header included, in the order of
/// addresses.
pub(crate) trait PartSizes:
    DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone
{
}

impl<I: DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone> PartSizes for I {}

impl YoungSamples {
    /// No heap yet.
    pub(crate) const NONE: YoungSamples = YoungSamples { next_end: 0, start: 0 };

    /// A heap in which allocations went by uncounted. The limit is such that the next
    /// allocation is a hit, which shows where the pointer is.
    pub(crate) fn lost_count(start: usize) -> YoungSamples {
        YoungSamples { next_end: usize::MAX, start }
    }

    /// Whether there is a heap.
    pub(crate) fn is_set(&self) -> bool {
        self.start != 0
    }

    /// What the runtime's limit must be: an allocation that moves the pointer below it is
    /// sampled or does not fit the heap.
    pub(crate) fn limit(&self) -> usize {
        self.next_end.max(self.start)
    }

    /// The heap's lowest address: the limit while sampling is off.
    pub(crate) fn start(&self) -> usize {
        self.start
    }

    /// Places the next sample a new gap below `pointer`, which has moved.
    ///
    /// The geometric distribution is memoryless: that no sample fell on the words so far says
    /// nothing about the next ones, so a new gap is as good as the rest of the old one.
    pub(crate) fn renew(&mut self, gaps: &mut Gaps, pointer: usize, start: usize) {
        self.start = start;
        self.next_end = below(pointer, gaps.next() - 1);
    }

    /// Handles an allocation of `parts`, which begin at `pointer`: calls `sampled` for each
    /// sampled part, from the highest address down, and moves on to the next sample.
    pub(crate) fn hit(
        &mut self,
        gaps: &mut Gaps,
        pointer: usize,
        parts: impl PartSizes,
        mut sampled: impl FnMut(&mut Gaps, SampledPart),
    ) {
        let total = parts.clone().fold(0usize, usize::saturating_add);
        let mut end = pointer.saturating_add(total.saturating_mul(WORD));
        if self.next_end > end {
            // Some allocations went by uncounted.
            self.next_end = below(end, gaps.next() - 1);
        }
        for (index, words) in parts.enumerate().rev() {
            let address = end.saturating_sub(words.saturating_mul(WORD));
            let samples = self.samples_above(gaps, address);
            if samples != 0 {
                sampled(gaps, SampledPart { index, address, words, samples });
            }
            end = address;
        }
    }

    /// Counts the samples at words above `address` and moves on to the next one.
    fn samples_above(&mut self, gaps: &mut Gaps, address: usize) -> u64 {
        if gaps.are_all_one() {
            let words = self.next_end.saturating_sub(address) / WORD;
            self.next_end = self.next_end.min(address);
            return words as u64;
        }
        let mut samples = 0;
        while self.next_end > address {
            samples += 1;
            self.next_end = below(self.next_end, gaps.next());
        }
        samples
    }
}

/// The address `words` words lower, or 0.
fn below(address: usize, words: usize) -> usize {
    address.saturating_sub(words.saturating_mul(WORD))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::Rate;

    const HEAP: usize = 0x10_0000;
    const HEAP_WORDS: usize = 1 << 15;

    fn gaps(rate: f64, seed: u64) -> Gaps {
        Gaps::new(Rate::new(rate).unwrap(), seed, 9)
    }

    /// Allocates like a runtime: `parts`, until `rounds` heaps are full. Returns the samples of
    /// each part and the number of allocations.
    fn run(rate: f64, seed: u64, rounds: usize, parts: &[usize]) -> (Vec<u64>, usize) {
        let mut gaps = gaps(rate, seed);
        let mut young = YoungSamples::NONE;
        let mut samples = vec![0; parts.len()];
        let total: usize = parts.iter().sum();
        let mut allocations = 0;
        for _ in 0..rounds {
            let mut pointer = HEAP + HEAP_WORDS * WORD;
            young.renew(&mut gaps, pointer, HEAP);
            while pointer - total * WORD >= HEAP {
                pointer -= total * WORD;
                allocations += 1;
                if pointer >= young.limit() {
                    continue;
                }
                young.hit(&mut gaps, pointer, parts.iter().copied(), |_, part| {
                    let before: usize = parts[..part.index].iter().sum();
                    assert_eq!(part.address, pointer + before * WORD);
                    assert_eq!(part.words, parts[part.index]);
                    samples[part.index] += part.samples;
                });
                assert!(young.limit() <= pointer.max(HEAP));
            }
        }
        (samples, allocations)
    }

    #[test]
    fn at_rate_1_each_part_gets_all_its_words() {
        let (samples, allocations) = run(1.0, 1, 3, &[2, 3, 7]);
        assert_eq!(samples, [2, 3, 7].map(|words| words * allocations as u64));
    }

    /// Of n samples a part with share s of the words gets n s ± √(n s (1 − s)),
    /// and n itself is N p ± √(N p (1 − p)): 4 sigma each.
    #[test]
    fn parts_of_2_and_3_words_get_two_and_three_samples_in_five() {
        for (rate, rounds) in [(0.5, 20), (0.1, 60), (1e-3, 2_000)] {
            let (samples, allocations) = run(rate, 7, rounds, &[2, 3]);
            let words = (allocations * 5) as f64;
            let total = (samples[0] + samples[1]) as f64;
            let sigma = (words * rate * (1.0 - rate)).sqrt();
            assert!((total - words * rate).abs() < 4.0 * sigma, "rate {rate}: {samples:?}");
            let sigma = (total * 0.4 * 0.6).sqrt();
            let off = (samples[0] as f64 - total * 0.4) / sigma;
            assert!(off.abs() < 4.0, "rate {rate}: {samples:?}, {off:.2} sigma");
        }
    }

    /// The rate changes at any time, and is taken up as a mutator does: after a hit, or where the
    /// pointer has moved. Each sample counts by the rate by which it was placed. The estimate of the
    /// words of each part is without bias, and its variance is the sum over samples of
    /// (1 − p) ÷ p²: over 600 runs the mean of z is within 4.5 ÷ √600, and its mean square within
    /// 4.5 √(2 ÷ 600) of 1.
    #[test]
    fn estimates_hold_over_changes_of_the_rate() {
        const RUNS: usize = 600;
        let rates = [0.02, 0.5, 0.004, 0.1].map(|rate| Rate::new(rate).unwrap());
        let parts = [2, 3];
        let (mut z, mut squares) = ([0.0; 2], [0.0; 2]);
        for run in 0..RUNS {
            let mut gaps = gaps(0.02, 77 + run as u64);
            let mut young = YoungSamples::NONE;
            let mut wanted = rates[0];
            let (mut words, mut estimate, mut variance) = ([0.0; 2], [0.0_f64; 2], [0.0_f64; 2]);
            for heap in 0..4 {
                let mut pointer = HEAP + HEAP_WORDS * WORD;
                let mut used = wanted;
                gaps.use_rate(used.bits());
                young.renew(&mut gaps, pointer, HEAP);
                for allocation in 0_usize.. {
                    if pointer < HEAP + 5 * WORD {
                        break;
                    }
                    pointer -= 5 * WORD;
                    (0..2).for_each(|part| words[part] += parts[part] as f64);
                    if allocation == 1_000 + 211 * (run % 17) + 1_300 * heap {
                        wanted = rates[(heap + run) % 4];
                    }
                    if pointer >= young.limit() {
                        continue;
                    }
                    let rate = used.get();
                    young.hit(&mut gaps, pointer, parts.iter().copied(), |_, part| {
                        estimate[part.index] += part.samples as f64 / rate;
                        variance[part.index] += part.samples as f64 * (1.0 - rate) / (rate * rate);
                    });
                    if used != wanted {
                        used = wanted;
                        gaps.use_rate(used.bits());
                        young.renew(&mut gaps, pointer, HEAP);
                    }
                }
            }
            for part in 0..2 {
                let off = (estimate[part] - words[part]) / variance[part].sqrt();
                z[part] += off / RUNS as f64;
                squares[part] += off * off / RUNS as f64;
            }
        }
        let n = RUNS as f64;
        for part in 0..2 {
            assert!(z[part].abs() < 4.5 / n.sqrt(), "part {part}: mean of z {}", z[part]);
            let off = (squares[part] - 1.0).abs();
            // The variance is itself estimated: 2 % of it, with some 2,500 samples.
            assert!(off < 4.5 * (2.0 / n).sqrt() + 0.04, "part {part}: {}", squares[part]);
        }
    }

    #[test]
    fn a_skipped_hit_does_no_harm() {
        let mut gaps = gaps(0.9, 2);
        let mut young = YoungSamples::NONE;
        young.renew(&mut gaps, HEAP + 800, HEAP);
        let mut sampled = Vec::new();
        young.hit(&mut gaps, HEAP + 80, [2].into_iter(), |_, part| sampled.push(part));
        assert!(sampled.iter().all(|part| part.address == HEAP + 80 && part.samples <= 2));
        assert!(young.limit() <= HEAP + 80);
    }

    #[test]
    fn absurd_sizes_do_not_overflow() {
        let mut gaps = gaps(1.0, 2);
        let mut young = YoungSamples::NONE;
        young.renew(&mut gaps, HEAP + 800, HEAP);
        young.hit(&mut gaps, HEAP, [usize::MAX, usize::MAX, 3].into_iter(), |_, _| {});
        assert!(young.limit() <= HEAP + 800);
    }
}
