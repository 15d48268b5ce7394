//! Hash tables by the id of a block.
//!
//! Blocks are numbered as they are allocated, and die in about that order. So ids that
//! are close to each other have slots that are close to each other: the low bits of an
//! id are those of its hash, and only the rest is mixed, with a random seed. A trace made
//! for it can leave 63 in 64 slots unused, but cannot make more ids share one.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashMap};

use crate::thinning::scramble;

/// A table by id.
pub(crate) type IdMap<T> = HashMap<u64, T, IdHash>;

/// The low bits of an id that keep their order.
const RUN_BITS: u32 = 6;

/// Makes hashes of ids.
#[derive(Clone)]
pub(crate) struct IdHash {
    seed: u64,
}

impl Default for IdHash {
    fn default() -> Self {
        IdHash { seed: DefaultHashBuilder::default().hash_one(0_u64) }
    }
}

impl BuildHasher for IdHash {
    type Hasher = IdHasher;

    fn build_hasher(&self) -> IdHasher {
        IdHasher { seed: self.seed, hash: 0 }
    }
}

/// The hash of one id.
pub(crate) struct IdHasher {
    seed: u64,
    hash: u64,
}

impl Hasher for IdHasher {
    #[inline]
    fn write_u64(&mut self, id: u64) {
        let mixed = scramble((id >> RUN_BITS) ^ self.seed);
        // The table finds the slot by the low bits, and compares the seven highest before
        // it looks at a slot.
        let low = id & ((1 << RUN_BITS) - 1);
        self.hash = (mixed & !((1 << RUN_BITS) - 1) | low) ^ low << 57;
    }

    fn write(&mut self, bytes: &[u8]) {
        // Ids are numbers. This is correct for other keys, and slow.
        for &byte in bytes {
            self.write_u64(self.hash << 8 ^ u64::from(byte));
        }
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.hash
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn neighbours_have_neighbouring_slots() {
        let hash = IdHash::default();
        for run in [0_u64, 1, 1000, u64::MAX >> RUN_BITS] {
            let first = hash.hash_one(run << RUN_BITS) << 7;
            for step in 1..1 << RUN_BITS {
                assert_eq!(hash.hash_one(run << RUN_BITS | step) << 7, first + (step << 7));
            }
        }
    }

    #[test]
    fn ids_at_any_distance_are_spread() {
        // As many ids as slots. With random hashes 63 % of the slots would be used, of
        // which there are fewer where the low bits of all ids are the same.
        const IDS: u64 = 1 << 15;
        for shift in 0..48 {
            let hash = IdHash::default();
            let low = if shift >= RUN_BITS { RUN_BITS } else { shift };
            let slots: HashSet<u64> =
                (0..IDS).map(|id| hash.hash_one(id << shift) & (IDS - 1)).collect();
            let expected = 0.5 * (IDS >> low) as f64;
            assert!(slots.len() as f64 > expected, "{} slots at shift {shift}", slots.len());
            let high: HashSet<u64> =
                (0..1000_u64).map(|id| hash.hash_one(id << shift) >> 57).collect();
            assert!(high.len() > 60, "{} of 128 high parts at shift {shift}", high.len());
        }
    }

    #[test]
    fn ids_are_found_again() {
        let mut map: IdMap<u64> = IdMap::default();
        let ids = || (0..5000_u64).flat_map(|n| [n, n << 20, u64::MAX - n, n << 58]);
        for id in ids() {
            map.insert(id, !id);
        }
        assert!(ids().all(|id| map.get(&id) == Some(&!id)));
        assert_eq!(map.remove(&4999), Some(!4999));
        assert_eq!(map.get(&4999), None);
    }
}
