//! The ids that a file gives to a lane's blocks.
//!
//! A lane numbers its blocks without gaps. A file's ids have gaps: each domain
//! takes its ids in blocks of many from a counter that all domains share. So a
//! lane needs one entry for each run of consecutive ids.

use std::ops::Range;

use crate::queue::{BlockId, BlockRun};

/// Ids of one lane's blocks in one file.
pub(crate) struct BlockIds {
    /// The last run, which ends with the last written block. Most lanes have no
    /// other, and most blocks that end are young.
    last: IdRun,
    /// The runs before it, in ascending order.
    earlier: Vec<IdRun>,
}

/// Blocks with consecutive numbers and consecutive ids.
#[derive(Clone, Copy)]
struct IdRun {
    /// The first block, as bits.
    first: u64,
    /// The first block's id.
    id: u64,
    /// How many blocks there are.
    count: u64,
}

impl IdRun {
    #[inline(always)]
    fn find(&self, block: BlockId) -> Option<u64> {
        let since = block.to_bits().wrapping_sub(self.first);
        (since < self.count).then(|| self.id + since)
    }

    #[inline(always)]
    fn find_all(&self, run: BlockRun) -> Option<Range<u64>> {
        let first = self.find(run.first)?;
        let ids = first..first + run.count;
        (ids.end <= self.id + self.count).then_some(ids)
    }
}

/// What a file knows of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KnownBlock {
    /// It has this id.
    Id(u64),
    /// It was allocated before the file began.
    Earlier,
    /// Its allocation has not been written yet.
    NotYet,
}

impl BlockIds {
    /// For a lane whose next block is `next`.
    pub(crate) fn from(next: BlockId) -> BlockIds {
        let last = IdRun { first: next.to_bits(), id: 0, count: 0 };
        BlockIds { last, earlier: Vec::new() }
    }

    /// The block to be written next.
    pub(crate) fn next(&self) -> BlockId {
        BlockId::from_bits(self.last.first + self.last.count)
    }

    /// The next block was written with this id.
    #[inline(always)]
    pub(crate) fn add(&mut self, id: u64) {
        self.add_all(id..id + 1);
    }

    /// The next blocks were written with these ids.
    #[inline(always)]
    pub(crate) fn add_all(&mut self, ids: Range<u64>) {
        if ids.start != self.last.id + self.last.count {
            self.begin_run(ids.start);
        }
        self.last.count += ids.end - ids.start;
    }

    #[cold]
    fn begin_run(&mut self, id: u64) {
        let first = self.next().to_bits();
        if self.last.count != 0 {
            self.earlier.push(self.last);
        }
        self.last = IdRun { first, id, count: 0 };
    }

    /// The ids of blocks that are all in the last run.
    #[inline(always)]
    pub(crate) fn find_recent(&self, run: BlockRun) -> Option<Range<u64>> {
        self.last.find_all(run)
    }

    /// What is known of any block of the lane.
    pub(crate) fn find(&self, block: BlockId) -> KnownBlock {
        if block >= self.next() {
            return KnownBlock::NotYet;
        }
        let begins_before = |run: &IdRun| run.first <= block.to_bits();
        let behind = self.earlier.partition_point(begins_before);
        let earlier = behind.checked_sub(1).and_then(|at| self.earlier.get(at));
        let id = self.last.find(block).or_else(|| earlier?.find(block));
        id.map_or(KnownBlock::Earlier, KnownBlock::Id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_gaps_and_numbers_do_not() {
        let block = |number| BlockId::new(7, number);
        let mut block_ids = BlockIds::from(block(5));
        block_ids.add(10);
        block_ids.add_all(11..13);
        block_ids.add_all(30..32);
        block_ids.add(20_000);
        let known: Vec<_> = (4..12).map(|number| block_ids.find(block(number))).collect();
        let ids = [10, 11, 12, 30, 31, 20_000].map(KnownBlock::Id);
        assert_eq!(known[0], KnownBlock::Earlier);
        assert_eq!(known[1..7], ids);
        assert_eq!(known[7], KnownBlock::NotYet);
        assert_eq!(block_ids.earlier.len(), 2);
        block_ids.add_all(20_001..20_004);
        let run = |number, count| block_ids.find_recent(BlockRun { first: block(number), count });
        assert_eq!(run(10, 4), Some(20_000..20_004));
        assert_eq!(run(11, 1), Some(20_001..20_002));
        assert_eq!(run(10, 5), None, "beyond the last block");
        assert_eq!(run(9, 2), None, "from before the gap");
    }
}
