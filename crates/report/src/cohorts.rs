//! What each site had reachable at the moments of [`Truths`], and which blocks those were.
//!
//! A block counts in one cell: by the first moment at which it is seen, and the first at which it is
//! not any more. From these cells follow the live size at each moment, what came and went between any
//! two, and how old all of it was. Blocks that no moment sees are in none: nearly all are young.

use hashbrown::HashMap;

use crate::truths::Truths;

/// The most cells. A trace with more sites than that has no figures by cycles of the others.
const MOST_CELLS: usize = 1 << 20;

/// A block counts in a record of its site from this many samples on: then its size is known to a sixth.
const LARGE: u64 = 36;
/// A record is larger than the one before by this factor.
const LARGER: f64 = 1.3;
/// The most records of a site: 1.3 to this power is more than all memory.
const MOST_RECORDS: usize = 96;

/// Samples of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    pub(crate) samples: f64,
    /// The sum of the squares of their samples: the variance, if blocks come by chance.
    pub(crate) squares: f64,
}

impl Amount {
    pub(crate) fn of(samples: f64) -> Amount {
        Amount { samples, squares: samples * samples }
    }

    pub(crate) fn add(&mut self, other: Amount) {
        self.samples += other.samples;
        self.squares += other.squares;
    }
}

/// A block that was larger than all before it at its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) birth: u64,
    pub(crate) samples: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cohorts {
    truths: Truths,
    /// By series, and the two moments.
    cells: HashMap<(u32, u8, u8), Amount>,
    records: HashMap<u32, Vec<Record>>,
}

impl Cohorts {
    pub(crate) fn new(truths: Truths) -> Cohorts {
        Cohorts { truths, ..Cohorts::default() }
    }

    pub(crate) fn truths(&self) -> &Truths {
        &self.truths
    }

    /// A block was found dead.
    #[inline]
    pub(crate) fn died(&mut self, series: u32, birth: u64, death: u64, samples: u64) {
        let came = self.truths.first_after(birth);
        let went = self.truths.first_without(death);
        if came >= went || self.cells.len() >= MOST_CELLS {
            return;
        }
        // At most `MOST_TRUTHS` of them.
        let cell = self.cells.entry((series, came as u8, went as u8)).or_default();
        cell.add(Amount::of(samples as f64));
    }

    /// A block was allocated that may be the largest of its site.
    #[inline]
    pub(crate) fn born(&mut self, series: impl FnOnce() -> u32, birth: u64, samples: u64) {
        if samples < LARGE {
            return;
        }
        let records = self.records.entry(series()).or_default();
        let is_larger = |last: &Record| samples as f64 >= LARGER * last.samples as f64;
        if records.last().is_none_or(is_larger) && records.len() < MOST_RECORDS {
            records.push(Record { birth, samples });
        }
    }

    /// What was seen and went: the first moment with it, the first without it, and how much.
    pub(crate) fn gone(&self) -> impl Iterator<Item = (u32, (usize, usize), Amount)> + '_ {
        let cells = self.cells.iter();
        cells.map(|(&(series, came, went), &amount)| {
            (series, (usize::from(came), usize::from(went)), amount)
        })
    }

    pub(crate) fn records(&self, series: u32) -> &[Record] {
        self.records.get(&series).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truths::Truth;

    #[test]
    fn a_block_counts_where_it_is_seen() {
        let truths = Truths::new([10, 20, 30].map(|at| Truth { at, known: at + 5 }));
        let mut cohorts = Cohorts::new(truths);
        cohorts.died(7, 3, 15, 2);
        cohorts.died(7, 3, 16, 2);
        cohorts.died(7, 12, 35, 3);
        cohorts.died(7, 31, 90, 4);
        let mut gone: Vec<_> = cohorts.gone().collect();
        gone.sort_by_key(|&(_, moments, _)| moments);
        assert_eq!(gone, [(7, (0, 1), Amount::of(2.0)), (7, (1, 2), Amount::of(3.0))]);
    }

    #[test]
    fn records_are_the_blocks_that_are_larger_than_all_before() {
        let mut cohorts = Cohorts::default();
        for (birth, samples) in [(1, 10), (2, 40), (3, 45), (4, 80), (5, 60), (6, 160)] {
            cohorts.born(|| 3, birth, samples);
        }
        let births: Vec<u64> = cohorts.records(3).iter().map(|record| record.birth).collect();
        assert_eq!(births, [2, 4, 6]);
        assert!(cohorts.records(4).is_empty());
    }
}
