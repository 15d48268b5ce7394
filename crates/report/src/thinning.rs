//! Which blocks are followed where there are too many: one in 2^level of them, chosen
//! by a hash of the id, each of which counts 2^level times. Blocks with thousands of
//! samples, each of which matters, are always followed.

/// The samples from which a block is large at level 0; twice as many at each further
/// level.
pub(crate) const LARGE: u64 = 4096;

/// Whether a block is followed at this level. What is followed at one level is
/// followed at those below.
pub(crate) fn follows(id: u64, samples: u64, level: u32) -> bool {
    level == 0
        || is_large(samples, level)
        || scramble(id ^ 0x0bad_5eed) >> (64 - level.min(63)) == 0
}

/// The level of a block of this size: each of its samples counts 2^level times.
pub(crate) fn level_of(samples: u64, level: u32) -> u32 {
    if is_large(samples, level) { 0 } else { level }
}

fn is_large(samples: u64, level: u32) -> bool {
    samples >> level.min(63) >= LARGE
}

/// A pseudo-random number: the output function of `SplitMix64`.
pub(crate) fn scramble(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
