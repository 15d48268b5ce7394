//! From the address of a block to its number.
//!
//! A bitmap of block starts with ranks: one bit for each word of the pages that hold blocks, and how
//! many blocks come before each 64 words. Numbers follow the order of addresses.
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
        let mut starts = BlockStarts::default();
        for (number, page) in pages {
            starts.add_page(number, page);
        }
        starts
    }
}

/// Pages one behind the other.
#[derive(Debug)]
struct Run {
    /// The number of its first page, and of the one behind its last.
    from: u64,
    to: u64,
    /// Where its first page is in `pages`.
    index: usize,
}

/// The starts of the blocks in a page.
#[derive(Debug)]
struct PageStarts {
    bits: Page,
    /// How many blocks are in the slots of the page before each.
    before: [u16; PAGE_BITMAP],
    /// How many are in the pages before.
    rank: u64,
}

/// The starts of all blocks.
#[derive(Debug, Default)]
pub(crate) struct BlockStarts {
    /// Ascending. A heap has few, so that a search among them takes few steps.
    runs: Vec<Run>,
    /// In the order of their numbers.
    pages: Vec<PageStarts>,
    count: u64,
}

impl BlockStarts {
    /// Adds a page behind all others.
    fn add_page(&mut self, number: u64, bits: Page) {
        match self.runs.last_mut() {
            Some(run) if run.to == number => run.to += 1,
            _ => self.runs.push(Run { from: number, to: number + 1, index: self.pages.len() }),
        }
        let (mut before, mut sum) = ([0; PAGE_BITMAP], 0u16);
        for (place, bits) in before.iter_mut().zip(&bits) {
            *place = sum;
            sum += bits.count_ones() as u16;
        }
        self.pages.push(PageStarts { bits, before, rank: self.count });
        self.count += u64::from(sum);
    }

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
        let after = self.runs.partition_point(|run| run.from <= number);
        let run = self.runs.get(after.checked_sub(1)?).filter(|run| number < run.to)?;
        let page = self.pages.get(run.index + (number - run.from) as usize)?;
        let bits = *page.bits.get(slot)?;
        if bits & bit == 0 {
            return None;
        }
        let before = u64::from(*page.before.get(slot)?);
        Some(page.rank + before + u64::from((bits & (bit - 1)).count_ones()))
    }

    /// The address of a block by its number.
    pub(crate) fn address(&self, number: u64) -> Option<u64> {
        if number >= self.count {
            return None;
        }
        let index = self.pages.partition_point(|page| page.rank <= number).checked_sub(1)?;
        let page = self.pages.get(index)?;
        let within = (number - page.rank) as u16;
        let slot = page.before.partition_point(|before| *before <= within).checked_sub(1)?;
        let mut bits = *page.bits.get(slot)?;
        for _ in *page.before.get(slot)?..within {
            bits &= bits - 1;
        }
        let run =
            self.runs.get(self.runs.partition_point(|run| run.index <= index).checked_sub(1)?)?;
        let page_number = run.from + (index - run.index) as u64;
        let word = slot as u64 * 64 + u64::from(bits.trailing_zeros());
        Some((page_number * PAGE_WORDS + word) << 3)
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
