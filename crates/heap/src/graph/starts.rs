//! From the address of a block to its number.
//!
//! A bitmap of block starts with the rank of each page: one bit for each word of the pages that hold
//! blocks, and a number for each page. Numbers follow the order of addresses.
//! Only pages with a block take memory, whatever the file says about segments.

use std::collections::HashMap;

/// Words of a page.
const PAGE_WORDS: u64 = 4096;
const PAGE_BITMAP: usize = PAGE_WORDS as usize / 64;

type Page = [u64; PAGE_BITMAP];

/// Gathers block starts in any order.
#[derive(Debug, Default)]
pub(crate) struct StartsBuilder {
    /// Where a page is in `pages`, by its number.
    indices: HashMap<u64, usize>,
    pages: Vec<(u64, Page)>,
    /// The page used last: its number and where it is.
    last: Option<(u64, usize)>,
}

impl StartsBuilder {
    /// Adds a block by its address; returns whether it is new.
    pub(crate) fn add(&mut self, address: u64) -> bool {
        let (number, slot, bit) = split(address);
        let index = match self.last {
            Some((last, index)) if last == number => index,
            _ => {
                let next = self.pages.len();
                let index = *self.indices.entry(number).or_insert(next);
                if index == next {
                    self.pages.push((number, [0; PAGE_BITMAP]));
                }
                self.last = Some((number, index));
                index
            }
        };
        let Some(bits) = self.pages.get_mut(index).and_then(|(_, page)| page.get_mut(slot)) else {
            return false;
        };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    /// About the memory in use.
    pub(crate) fn memory(&self) -> u64 {
        // A page, its number twice, and the slack of a growing table.
        self.pages.len() as u64 * (size_of::<Page>() as u64 + 64)
    }

    pub(crate) fn finish(self) -> BlockStarts {
        let mut pages = self.pages;
        pages.sort_unstable_by_key(|(number, _)| *number);
        let mut ranks = Vec::with_capacity(pages.len());
        let mut count = 0u64;
        for (_, page) in &pages {
            ranks.push(count);
            count += page.iter().map(|bits| u64::from(bits.count_ones())).sum::<u64>();
        }
        BlockStarts { pages, ranks, count }
    }
}

/// The starts of all blocks.
#[derive(Debug)]
pub(crate) struct BlockStarts {
    /// By ascending number.
    pages: Vec<(u64, Page)>,
    /// How many blocks are in the pages before each.
    ranks: Vec<u64>,
    count: u64,
}

impl BlockStarts {
    /// How many blocks there are.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The number of the block at an address.
    pub(crate) fn number(&self, address: u64) -> Option<u64> {
        let (number, slot, bit) = split(address);
        if address & 7 != 0 {
            return None;
        }
        let index = self.pages.binary_search_by_key(&number, |(number, _)| *number).ok()?;
        let (_, page) = self.pages.get(index)?;
        let bits = *page.get(slot)?;
        if bits & bit == 0 {
            return None;
        }
        let before = page.iter().take(slot).map(|bits| u64::from(bits.count_ones())).sum::<u64>();
        let rank = *self.ranks.get(index)?;
        Some(rank + before + u64::from((bits & (bit - 1)).count_ones()))
    }

    /// The address of a block by its number.
    pub(crate) fn address(&self, number: u64) -> Option<u64> {
        let index = self.ranks.partition_point(|rank| *rank <= number).checked_sub(1)?;
        let (page_number, page) = self.pages.get(index)?;
        let mut left = number - self.ranks.get(index)?;
        for (slot, bits) in page.iter().enumerate() {
            let here = u64::from(bits.count_ones());
            if left < here {
                let mut bits = *bits;
                for _ in 0..left {
                    bits &= bits - 1;
                }
                let word = slot as u64 * 64 + u64::from(bits.trailing_zeros());
                return Some((page_number * PAGE_WORDS + word) << 3);
            }
            left -= here;
        }
        None
    }
}

/// The page of an address, the slot in it and the bit in that.
fn split(address: u64) -> (u64, usize, u64) {
    let word = address >> 3;
    let within = word % PAGE_WORDS;
    (word / PAGE_WORDS, (within / 64) as usize, 1 << (within % 64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn numbers_follow_the_order_of_addresses(
            words in prop::collection::vec(prop_oneof![0u64..200, 0u64..100_000, 0u64..1 << 61], 0..300),
        ) {
            let mut builder = StartsBuilder::default();
            let mut oracle = BTreeSet::new();
            for word in &words {
                prop_assert_eq!(builder.add(word << 3), oracle.insert(word << 3));
            }
            let starts = builder.finish();
            prop_assert_eq!(starts.count(), oracle.len() as u64);
            for (number, &address) in oracle.iter().enumerate() {
                prop_assert_eq!(starts.number(address), Some(number as u64));
                prop_assert_eq!(starts.address(number as u64), Some(address));
                prop_assert_eq!(starts.number(address + 1), None);
                let next = address.wrapping_add(8);
                prop_assert_eq!(starts.number(next).is_some(), oracle.contains(&next));
            }
            prop_assert_eq!(starts.address(oracle.len() as u64), None);
        }
    }
}
