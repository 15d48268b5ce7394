//! Finding the number of a thing by the thing itself: a hash table of numbers.
//!
//! The things stay with the caller, in the order of their numbers, so that they
//! can lie side by side. Places are probed one after the other and half of them
//! at least are empty; nothing is ever taken out.

use std::hash::{BuildHasher, Hasher};

use crate::seeded::Seeded;

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
        let mut at = hash.0 as usize;
        loop {
            let place = *self.places.get(at & self.places.len().wrapping_sub(1))?;
            let number = (place as u32).checked_sub(1)?;
            if hash_of(place) == hash && is(number) {
                return Some(number);
            }
            at += 1;
        }
    }

    /// Adds a thing that is not there yet. The largest number is none.
    pub(crate) fn add(&mut self, hash: Hash, number: u32) {
        if 2 * (self.used + 1) > self.places.len() {
            let more = (4 * self.places.len()).max(FIRST);
            let before = std::mem::replace(&mut self.places, vec![EMPTY; more]);
            for place in before.into_iter().filter(|&place| place != EMPTY) {
                self.put(place);
            }
        }
        if let Some(next) = number.checked_add(1) {
            self.put(u64::from(hash.0) << 32 | u64::from(next));
            self.used += 1;
        }
    }

    /// Puts it into the first empty place from its own on.
    fn put(&mut self, place: Place) {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hash_of(place).0 as usize & mask;
        while self.places.get(at).is_some_and(|&there| there != EMPTY) {
            at = (at + 1) & mask;
        }
        if let Some(there) = self.places.get_mut(at) {
            *there = place;
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
            let hash = index.hash_number(thing);
            assert_eq!(index.find(hash, |other| things[other as usize] == thing), None);
            index.add(hash, number as u32);
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
            index.add(hash, number);
        }
        for number in 0..600 {
            assert_eq!(index.find(hash, |found| found == number), Some(number));
        }
        assert_eq!(index.find(hash, |_| false), None);
    }
}
