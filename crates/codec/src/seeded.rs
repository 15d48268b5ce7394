//! A fast hash for the tables of codes and names.
//!
//! A trace is hostile input, so the hash depends on a secret drawn for each
//! table: nobody can prepare a file whose codes all collide. The mixing step
//! folds the 128-bit product of two words, as wyhash does; on a single word it is
//! several times faster than the standard library's hash.
//!
//! Not `foldhash`, which the tools use by way of `hashbrown`: this is loaded into traced programs, and `foldhash` is a
//! dependency with unsafe code for the same mixing step.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Builds hashers that share one secret.
#[derive(Clone)]
pub struct Seeded {
    seed: u64,
    factor: u64,
}

impl Default for Seeded {
    fn default() -> Self {
        let random = RandomState::new();
        // Any odd factor of full width will do; the seed is what is secret.
        Seeded { seed: random.hash_one(1u8), factor: random.hash_one(2u8) | 1 }
    }
}

impl BuildHasher for Seeded {
    type Hasher = Fold;

    #[inline]
    fn build_hasher(&self) -> Fold {
        Fold { state: self.seed, factor: self.factor }
    }
}

/// The hash of what was written so far.
pub struct Fold {
    state: u64,
    factor: u64,
}

impl Fold {
    #[inline(always)]
    fn mix(&mut self, word: u64) {
        let product = u128::from(self.state ^ word) * u128::from(self.factor);
        self.state = (product as u64) ^ (product >> 64) as u64;
    }
}

impl Hasher for Fold {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.mix(u64::from_le_bytes(*word));
        }
        let mut last = [0; 8];
        for (to, from) in last.iter_mut().zip(rest) {
            *to = *from;
        }
        // The length distinguishes a short rest from one with zeros.
        self.mix(u64::from_le_bytes(last) ^ (bytes.len() as u64).rotate_right(8));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        self.mix(word);
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.mix(word as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // The table uses the low bits as a position and the high ones as a tag:
        // one more round spreads the last word over both.
        let product = u128::from(self.state) * u128::from(self.factor);
        (product as u64) ^ (product >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_prefixes_have_different_hashes() {
        let seeded = Seeded::default();
        let mut seen = std::collections::HashSet::new();
        for code in 0u64..10_000 {
            assert!(seen.insert(seeded.hash_one(code << 4)), "collision at {code}");
        }
        for len in 0..100 {
            assert!(seen.insert(seeded.hash_one(&[0u8; 100][..len])), "collision at {len}");
        }
    }

    #[test]
    fn every_table_has_its_own_secret() {
        assert_ne!(Seeded::default().hash_one(7u64), Seeded::default().hash_one(7u64));
    }
}
