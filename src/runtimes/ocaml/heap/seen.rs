//! Numbers that occurred, each once.

use crate::sys::memory::MappedArray;

/// A set of numbers other than 0, of limited size: an open-addressed table.
pub(super) struct SeenSet {
    places: MappedArray<u64>,
    len: usize,
}

impl SeenSet {
    /// For `2^bits / 2` numbers. `None` if there is no memory.
    pub(super) fn new(bits: u32) -> Option<SeenSet> {
        Some(SeenSet { places: MappedArray::new(1 << bits)?, len: 0 })
    }

    /// Whether the number is in the set.
    #[inline]
    pub(super) fn contains(&self, number: u64) -> bool {
        let mut at = self.first_place(number);
        while let Some(&place) = self.places.get(at) {
            if place == number || place == 0 {
                return place != 0;
            }
            at = (at + 1) & self.mask();
        }
        false
    }

    fn mask(&self) -> usize {
        self.places.len().wrapping_sub(1)
    }

    fn first_place(&self, number: u64) -> usize {
        (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & self.mask()
    }

    /// Whether the number is new. Once the set is full nothing is.
    #[inline]
    pub(super) fn insert(&mut self, number: u64) -> bool {
        let mask = self.mask();
        let is_full = self.len * 2 >= self.places.len();
        let mut at = self.first_place(number);
        while let Some(place) = self.places.get_mut(at) {
            if *place == number {
                return false;
            }
            if *place == 0 {
                if is_full || number == 0 {
                    return false;
                }
                *place = number;
                self.len += 1;
                return true;
            }
            at = (at + 1) & mask;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_new_once() {
        let mut seen = SeenSet::new(6).unwrap();
        let numbers: Vec<u64> = (1..=32).map(|number| number * 64).collect();
        assert!(numbers.iter().all(|&number| seen.insert(number)));
        assert!(!numbers.iter().any(|&number| seen.insert(number)));
        assert!(numbers.iter().all(|&number| seen.contains(number)));
        assert!(!seen.contains(7) && !seen.contains(0));
        assert!(!seen.insert(7), "full");
        assert!(!seen.insert(0));
    }
}
