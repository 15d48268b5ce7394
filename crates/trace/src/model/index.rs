//! Finding the number of a thing by the thing itself: a hash table of numbers.
//!
//! The things stay with the caller, in the order of their numbers, so that they
//! can lie side by side. Places are probed one after the other and half of them
//! at least are empty; nothing is ever taken out.

use std::hash::{BuildHasher, Hasher};

use crate::model::seeded::Seeded;

/// Numbers by what they stand for.
#[derive(Default)]
pub(crate) struct Index {
    /// A power of two of them, or none.
    places: Vec<Place>,
    used: usize,
    seeded: Seeded,
}

/// A hash above, the number plus one below; 0 if there is none, so that an
/// empty index is memory that nobody has touched yet.
type Place = u64;

const EMPTY: Place = 0;

/// How many places there are at first.
const FIRST: usize = 1024;

/// A thing's hash, under this index's secret.
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

    /// The number of the thing with this hash that `is` recognises.
    pub(crate) fn find(&self, hash: Hash, is: impl Fn(u32) -> bool) -> Option<u32> {
        self.probe(hash, is).ok()
    }

    /// The same, and if there is none, adds the thing under this number. The
    /// largest number is none.
    pub(crate) fn find_or_add(
        &mut self,
        hash: Hash,
        number: u32,
        is: impl Fn(u32) -> bool,
    ) -> Option<u32> {
        if 2 * (self.used + 1) > self.places.len() {
            self.grow();
        }
        let empty = match self.probe(hash, is) {
            Ok(there) => return Some(there),
            Err(empty) => empty,
        };
        if let (Some(place), Some(next)) = (self.places.get_mut(empty), number.checked_add(1)) {
            *place = u64::from(hash.0) << 32 | u64::from(next);
            self.used += 1;
        }
        None
    }

    /// The number of the thing, or the empty place where it would be.
    #[inline(always)]
    fn probe(&self, hash: Hash, is: impl Fn(u32) -> bool) -> Result<u32, usize> {
        let mut at = hash.0 as usize;
        loop {
            at &= self.places.len().wrapping_sub(1);
            let place = self.places.get(at).copied().unwrap_or(EMPTY);
            let Some(number) = (place as u32).checked_sub(1) else { return Err(at) };
            if hash_of(place) == hash && is(number) {
                return Ok(number);
            }
            at += 1;
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        let more = (4 * self.places.len()).max(FIRST);
        let before = std::mem::replace(&mut self.places, vec![EMPTY; more]);
        for place in before.into_iter().filter(|&place| place != EMPTY) {
            if let Err(empty) = self.probe(hash_of(place), |_| false)
                && let Some(there) = self.places.get_mut(empty)
            {
                *there = place;
            }
        }
    }
}

fn hash_of(place: Place) -> Hash {
    Hash((place >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thing_is_found_and_no_other() {
        let mut index = Index::default();
        let things: Vec<u64> = (0..5_000).map(|number| number * 16).collect();
        for (number, &thing) in things.iter().enumerate() {
            let (hash, number) = (index.hash_number(thing), number as u32);
            let is = |other: u32| things[other as usize] == thing;
            assert_eq!(index.find(hash, is), None);
            assert_eq!(index.find_or_add(hash, number, is), None);
            assert_eq!(index.find_or_add(hash, number + 1, is), Some(number));
        }
        for (number, &thing) in things.iter().enumerate() {
            let hash = index.hash_number(thing);
            let found = index.find(hash, |other| things[other as usize] == thing);
            assert_eq!(found, Some(number as u32));
            let other = index.hash_number(thing + 1);
            assert_eq!(index.find(other, |found| things[found as usize] == thing + 1), None);
        }
    }

    #[test]
    fn things_of_one_hash_are_told_apart() {
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
