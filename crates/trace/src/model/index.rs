//! A hash table from items to their numbers.
//!
//! The items stay with the caller, in an array in the order of their numbers.
//! Open addressing with linear probing, at most half full; no item is ever removed.

use std::hash::{BuildHasher, Hasher};

use heaptap_codec::seeded::Seeded;

/// The numbers of items, by their hashes.
#[derive(Clone, Default)]
pub(crate) struct Index {
    /// Their number is a power of two, or 0.
    buckets: Vec<Bucket>,
    used: usize,
    seeded: Seeded,
}

/// The hash in the high half, the number plus 1 in the low half; 0 if empty, so
/// that a new table is untouched zeroed memory.
type Bucket = u64;

const EMPTY: Bucket = 0;

/// The initial number of buckets.
const FIRST: usize = 1024;

/// The hash of an item, with this table's secret.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hash(u32);

impl Index {
    pub(crate) fn hash_number(&self, number: u64) -> Hash {
        let mut hasher = self.seeded.build_hasher();
        hasher.write_u64(number);
        Hash(hasher.finish() as u32)
    }

    pub(crate) fn hash_bytes(&self, bytes: &[u8]) -> Hash {
        let mut hasher = self.seeded.build_hasher();
        hasher.write(bytes);
        Hash(hasher.finish() as u32)
    }

    /// The number of the item with this hash for which `is` returns true.
    pub(crate) fn find(&self, hash: Hash, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.probe(hash, is).ok()
    }

    /// The same; if there is none, adds the item with this number. `u32::MAX` is
    /// not a number and is not added.
    pub(crate) fn find_or_add(
        &mut self,
        hash: Hash,
        number: u32,
        is: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if 2 * (self.used + 1) > self.buckets.len() {
            self.grow();
        }
        let empty = match self.probe(hash, is) {
            Ok(there) => return Some(there),
            Err(empty) => empty,
        };
        if let (Some(bucket), Some(next)) = (self.buckets.get_mut(empty), number.checked_add(1)) {
            *bucket = u64::from(hash.0) << 32 | u64::from(next);
            self.used += 1;
        }
        None
    }

    /// The number of the item, or the empty bucket where it belongs.
    #[inline(always)]
    fn probe(&self, hash: Hash, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut at = hash.0 as usize;
        loop {
            at &= self.buckets.len().wrapping_sub(1);
            let bucket = self.buckets.get(at).copied().unwrap_or(EMPTY);
            let Some(number) = (bucket as u32).checked_sub(1) else { return Err(at) };
            if hash_of(bucket) == hash && is(number) {
                return Ok(number);
            }
            at += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let more = (4 * self.buckets.len()).max(FIRST);
        let before = std::mem::replace(&mut self.buckets, vec![EMPTY; more]);
        for bucket in before.into_iter().filter(|&bucket| bucket != EMPTY) {
            if let Err(empty) = self.probe(hash_of(bucket), |_| false)
                && let Some(there) = self.buckets.get_mut(empty)
            {
                *there = bucket;
            }
        }
    }
}

fn hash_of(bucket: Bucket) -> Hash {
    Hash((bucket >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_found_and_no_other() {
        let mut index = Index::default();
        let items: Vec<u64> = (0..5_000).map(|number| number * 16).collect();
        for (number, &item) in items.iter().enumerate() {
            let (hash, number) = (index.hash_number(item), number as u32);
            let is = |other: u32| items[other as usize] == item;
            assert_eq!(index.find(hash, is), None);
            assert_eq!(index.find_or_add(hash, number, is), None);
            assert_eq!(index.find_or_add(hash, number + 1, is), Some(number));
        }
        for (number, &item) in items.iter().enumerate() {
            let hash = index.hash_number(item);
            let found = index.find(hash, |other| items[other as usize] == item);
            assert_eq!(found, Some(number as u32));
            let other = index.hash_number(item + 1);
            assert_eq!(index.find(other, |found| items[found as usize] == item + 1), None);
        }
    }

    #[test]
    fn items_with_the_same_hash_are_distinguished() {
        let mut index = Index::default();
        let hash = index.hash_bytes(b"one");
        for number in 0..600 {
            assert_eq!(index.find_or_add(hash, number, |_| false), None);
        }
        for number in 0..600 {
            assert_eq!(index.find(hash, |found| found == number), Some(number));
        }
        assert_eq!(index.find(hash, |_| false), None);
    }
}
