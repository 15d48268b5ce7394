//! A set of numbers from 0 to a bound.

/// A bit for each number.
#[derive(Clone, Debug)]
pub(crate) struct BitSet {
    bits: Vec<u64>,
}

impl BitSet {
    pub(crate) fn new(count: usize) -> BitSet {
        BitSet { bits: vec![0; count.div_ceil(64)] }
    }

    pub(crate) fn contains(&self, number: u32) -> bool {
        let bits = self.bits.get(number as usize / 64).copied().unwrap_or_default();
        bits >> (number % 64) & 1 == 1
    }

    /// Returns whether it is new.
    pub(crate) fn insert(&mut self, number: u32) -> bool {
        let Some(bits) = self.bits.get_mut(number as usize / 64) else { return false };
        let bit = 1 << (number % 64);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    pub(crate) fn remove(&mut self, number: u32) {
        if let Some(bits) = self.bits.get_mut(number as usize / 64) {
            *bits &= !(1 << (number % 64));
        }
    }
}
