//! Which blocks are tracked where there are too many.
//!
//! At level L, a block with s samples is tracked with probability s/2^L, to the next
//! power of two, and each of its samples then counts that much more. So a block of any
//! size stands for about 2^L samples: one of 2^L and more is always tracked, and no
//! single one decides an estimate. A hash of the id chooses. If there are several rates,
//! s is how many samples of the highest its samples stand for.

/// Whether a block is tracked at this level. What is tracked at one level is
/// tracked at those below.
pub(crate) fn is_tracked(id: u64, samples: u64, level: u32) -> bool {
    let level = level_of(samples, level);
    level == 0 || scramble(id ^ 0x0bad_5eed) >> (64 - level.min(63)) == 0
}

/// The last level at which the block is tracked.
pub(crate) fn last_level(id: u64, samples: u64) -> u32 {
    samples.max(1).ilog2() + scramble(id ^ 0x0bad_5eed).leading_zeros()
}

/// The level of a block with this many samples: each of them counts 2^level times.
pub(crate) fn level_of(samples: u64, level: u32) -> u32 {
    level.saturating_sub(samples.max(1).ilog2())
}

/// A pseudo-random number: the output function of `SplitMix64`.
pub(crate) fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_is_tracked_up_to_its_last_level() {
        for id in 0..10_000_u64 {
            let samples = 1 + id % 40;
            let last = last_level(id, samples);
            assert!(is_tracked(id, samples, last) && !is_tracked(id, samples, last + 1), "{id}");
        }
    }
}
