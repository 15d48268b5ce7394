//! What each site had reachable at the moments of [`Truths`], and which blocks those were.
//!
//! A block counts in one cell: by the first moment at which it is seen, and the first at which it is
//! not any more. From these cells follow the live size at each moment, what came and went between any
//! two, and how old all of it was. Blocks that no moment sees are in none: nearly all are young.

use hashbrown::HashMap;

use crate::estimate::{Sampled, Scale};
use crate::truths::Truths;

/// The most cells: they take 20 MB. A trace with more has no figures by cycles, since what went would be
/// missing in them.
const MOST_CELLS: usize = 7 << 16;

/// A block counts in a record of its site from this many samples on, at whatever rate: then its size is
/// known to a sixth.
pub(crate) const LARGE: u64 = 36;
/// A record is larger than the one before by this factor.
const LARGER: f64 = 1.3;
/// The most records of a site: 1.3 to this power is more than all memory.
const MOST_RECORDS: usize = 96;

/// A set of blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Amount {
    /// What they count, with the variance of sampling.
    pub(crate) sampled: Sampled,
    /// The variance of that if blocks come by chance: [`Scale::block_variance`].
    pub(crate) squares: f64,
}

impl Amount {
    /// That of one block.
    pub(crate) fn of(block: Sampled, scale: &Scale) -> Amount {
        Amount { sampled: block, squares: scale.block_variance(block) }
    }

    pub(crate) fn add(&mut self, other: Amount) {
        self.sampled = self.sampled.plus(other.sampled);
        self.squares += other.squares;
    }

    /// What they count.
    pub(crate) fn count(&self) -> f64 {
        self.sampled.count as f64
    }
}

impl std::iter::Sum for Amount {
    fn sum<I: Iterator<Item = Amount>>(all: I) -> Amount {
        let mut sum = Amount::default();
        all.for_each(|amount| sum.add(amount));
        sum
    }
}

/// A block that was larger than all before it at its site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) birth: u64,
    /// What it counts.
    pub(crate) count: u64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cohorts {
    truths: Truths,
    /// By series, and the two moments.
    cells: HashMap<(u32, u8, u8), Amount>,
    records: HashMap<u32, Vec<Record>>,
    /// There were more than [`MOST_CELLS`].
    overflowed: bool,
}

impl Cohorts {
    pub(crate) fn new(truths: Truths) -> Cohorts {
        Cohorts { truths, ..Cohorts::default() }
    }

    /// The moments at which everything is known; none if that was too much.
    pub(crate) fn truths(&self) -> &Truths {
        static NONE: Truths = Truths::NONE;
        if self.overflowed { &NONE } else { &self.truths }
    }

    /// A block was found dead.
    #[inline]
    pub(crate) fn died(
        &mut self,
        series: u32,
        (birth, death): (u64, u64),
        block: Sampled,
        scale: &Scale,
    ) {
        let Some((came, went)) = self.truths.seen(birth, death).filter(|_| !self.overflowed) else {
            return;
        };
        if self.cells.len() >= MOST_CELLS {
            self.overflowed = true;
            self.cells = HashMap::new();
            return;
        }
        // There are fewer than 256 moments.
        let cell = self.cells.entry((series, came as u8, went as u8)).or_default();
        cell.add(Amount::of(block, scale));
    }

    /// A block of [`LARGE`] samples or more was allocated, which may be the largest of its site.
    pub(crate) fn large(&mut self, series: u32, birth: u64, block: Sampled) {
        let records = self.records.entry(series).or_default();
        let is_larger = |last: &Record| block.count as f64 >= LARGER * last.count as f64;
        if records.last().is_none_or(is_larger) && records.len() < MOST_RECORDS {
            records.push(Record { birth, count: block.count });
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

    fn samples(count: u64) -> Sampled {
        Sampled { count, variance: 0 }
    }

    #[test]
    fn a_block_counts_where_it_is_seen() {
        let truths = Truths::new([10, 20, 30].map(|at| Truth { at, known: at + 5 }));
        let (mut cohorts, scale) = (Cohorts::new(truths), Scale::new(1e-3, 8.0));
        for (lived, count) in [((3, 15), 2), ((3, 16), 2), ((12, 35), 3), ((31, 90), 4)] {
            cohorts.died(7, lived, samples(count), &scale);
        }
        let mut gone: Vec<_> = cohorts.gone().collect();
        gone.sort_by_key(|&(_, moments, _)| moments);
        let of = |count| Amount::of(samples(count), &scale);
        assert_eq!(gone, [(7, (0, 1), of(2)), (7, (1, 2), of(3))]);
        assert_eq!(of(3).squares, 9.0);
    }

    #[test]
    fn records_are_the_blocks_that_are_larger_than_all_before() {
        let mut cohorts = Cohorts::default();
        for (birth, count) in [(2, 40), (3, 45), (4, 80), (5, 60), (6, 160)] {
            cohorts.large(3, birth, samples(count));
        }
        let births: Vec<u64> = cohorts.records(3).iter().map(|record| record.birth).collect();
        assert_eq!(births, [2, 4, 6]);
        assert!(cohorts.records(4).is_empty());
    }
}
