//! The blocks that one mutator's collector sweeps.

use heaptap_trace::End;

use crate::blocks::pending_ends::{PendingEnds, RunMerger};
use crate::queue::BlockId;
use crate::sys::memory::MappedVec;

/// What a collection did to a block: `heaptap_fate` of the C ABI with an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It was collected.
    Dead,
    /// It stays in its generation and is now at this address.
    Alive(usize),
    /// It is a major block from now on, at this address.
    Promoted(usize),
}

#[derive(Clone, Copy)]
struct Tracked {
    address: usize,
    id: BlockId,
}

/// The least number of blocks to reserve memory for at a time.
const RESERVE_STEP: usize = 256;

/// The initial capacity, in blocks. Large, because untouched pages cost nothing, while
/// growing inside a hook takes a system call that moves the pages in use.
const INITIAL_CAPACITY: usize = if cfg!(test) { RESERVE_STEP } else { 16 << 10 };

/// Young and major blocks.
pub(crate) struct Generations {
    young: MappedVec<Tracked>,
    /// Has capacity for all of `young` as well.
    major: MappedVec<Tracked>,
    /// Has capacity for two ends of each block, so the end of a recorded block is never lost.
    pub(crate) ends: PendingEnds,
    /// For how many more blocks memory is reserved, in all three arrays.
    reserved: usize,
}

impl Generations {
    /// `None` without memory.
    pub(crate) fn new() -> Option<Generations> {
        Some(Generations {
            young: MappedVec::new(INITIAL_CAPACITY)?,
            major: MappedVec::new(INITIAL_CAPACITY)?,
            ends: PendingEnds::new(2 * INITIAL_CAPACITY)?,
            reserved: 0,
        })
    }

    /// How many blocks are tracked.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.major.len()
    }

    /// Whether there are neither blocks nor pending ends.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.ends.is_empty()
    }

    /// Reserves memory for `blocks` more blocks and their ends. False if there is none; then
    /// they cannot be tracked.
    #[inline]
    pub(crate) fn reserve(&mut self, blocks: usize) -> bool {
        blocks <= self.reserved || self.grow(blocks)
    }

    #[cold]
    fn grow(&mut self, blocks: usize) -> bool {
        // The arrays reuse the memory of blocks that are gone, so they grow only if there
        // are more blocks than ever before.
        let more = blocks.max(RESERVE_STEP);
        let all = self.len().saturating_add(more);
        let grown = self.young.reserve(more)
            && self.major.reserve(self.young.len().saturating_add(more))
            && self.ends.reserve(all.saturating_mul(2));
        if grown {
            self.reserved = more;
        }
        grown
    }

    /// Checks that a collection needs no more memory.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let blocks = self.len();
        assert!(self.major.capacity() >= blocks, "no capacity for all young blocks in major");
        let mut tracked = self.young.iter().chain(self.major.iter());
        assert!(tracked.all(|block| block.address != 0), "a block at no address");
    }

    #[cfg(not(debug_assertions))]
    fn check(&self) {}

    /// Tracks a block, for which memory was reserved.
    pub(crate) fn add_young(&mut self, address: usize, id: BlockId) {
        self.use_reserved(1);
        let added = self.young.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    /// Tracks a block, for which memory was reserved.
    pub(crate) fn add_major(&mut self, address: usize, id: BlockId) {
        self.use_reserved(1);
        let added = self.major.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    fn use_reserved(&mut self, blocks: usize) {
        debug_assert!(self.reserved >= blocks, "not reserved");
        self.reserved = self.reserved.saturating_sub(blocks);
    }

    /// Calls `fate` for each young block and appends the promotions and collections to the
    /// pending ends. Calls `flush`, which may remove ends, for each batch of them.
    pub(crate) fn sweep_young(
        &mut self,
        mut fate: impl FnMut(usize) -> Fate,
        flush: impl FnMut(&mut PendingEnds),
    ) {
        self.check();
        let Generations { young, major, ends, .. } = self;
        let mut merger = RunMerger::new(ends, flush);
        let mut kept = 0;
        for at in 0..young.len() {
            let Some(&block) = young.get(at) else { break };
            match fate(block.address) {
                Fate::Dead => merger.add(End::Collect, block.id),
                Fate::Promoted(address) => {
                    let added = major.push(Tracked { address, ..block });
                    debug_assert!(added, "not reserved");
                    merger.add(End::Promote, block.id);
                }
                Fate::Alive(address) => {
                    keep(young, &mut kept, Tracked { address, ..block });
                }
            }
        }
        merger.finish();
        young.truncate(kept);
    }

    /// Like [`sweep_young`](Self::sweep_young) for the major blocks. A promoted one stays.
    pub(crate) fn sweep_major(
        &mut self,
        mut fate: impl FnMut(usize) -> Fate,
        flush: impl FnMut(&mut PendingEnds),
    ) {
        let Generations { major, ends, .. } = self;
        let mut merger = RunMerger::new(ends, flush);
        let mut kept = 0;
        for at in 0..major.len() {
            let Some(&block) = major.get(at) else { break };
            match fate(block.address) {
                Fate::Dead => merger.add(End::Collect, block.id),
                Fate::Alive(address) | Fate::Promoted(address) => {
                    keep(major, &mut kept, Tracked { address, ..block });
                }
            }
        }
        merger.finish();
        major.truncate(kept);
        self.check();
    }

    /// The addresses of the major blocks, for a collector that moves them.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.major.iter_mut().map(|block| &mut block.address)
    }

    /// Takes over the blocks and pending ends of another mutator. False without memory; then
    /// the other keeps them.
    pub(crate) fn adopt(&mut self, other: &mut Generations) -> bool {
        if !self.reserve(other.len().saturating_add(other.ends.len())) {
            return false;
        }
        self.use_reserved(other.ends.len());
        self.ends.adopt(&mut other.ends);
        for block in other.young.iter() {
            self.add_young(block.address, block.id);
        }
        for block in other.major.iter() {
            self.add_major(block.address, block.id);
        }
        other.clear();
        true
    }

    /// Drops all blocks and ends.
    pub(crate) fn clear(&mut self) {
        self.young.truncate(0);
        self.major.truncate(0);
        self.ends.clear();
    }
}

/// Moves a block to the end of those that stay.
fn keep(blocks: &mut [Tracked], kept: &mut usize, block: Tracked) {
    if let Some(slot) = blocks.get_mut(*kept) {
        *slot = block;
    }
    *kept += 1;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::queue::EndWord;

    fn id(number: u64) -> BlockId {
        BlockId::new(3, number)
    }

    /// The numbers of the blocks of an end.
    fn numbers(end: EndWord) -> impl Iterator<Item = u64> {
        end.blocks().blocks().map(BlockId::number)
    }

    /// A flush into a full event buffer.
    fn keep_all(_: &mut PendingEnds) {}

    fn take_ends(blocks: &mut Generations) -> Vec<EndWord> {
        let ends = blocks.ends.to_vec();
        blocks.ends.clear();
        ends
    }

    fn with(young: &[usize], major: &[usize]) -> Generations {
        let mut blocks = Generations::new().unwrap();
        assert!(blocks.reserve(young.len() + major.len()));
        for &address in young {
            blocks.add_young(address, id(address as u64));
        }
        for &address in major {
            blocks.add_major(address, id(address as u64));
        }
        blocks
    }

    #[test]
    fn a_minor_collection_visits_young_blocks_only() {
        let mut blocks = with(&[1, 2, 3], &[10]);
        blocks.sweep_young(
            |address| match address {
                1 => Fate::Dead,
                2 => Fate::Promoted(20),
                _ => Fate::Alive(33),
            },
            keep_all,
        );
        assert_eq!(take_ends(&mut blocks), [EndWord::collected(id(1)), EndWord::promoted(id(2))]);
        let mut seen = Vec::new();
        blocks.sweep_major(
            |address| {
                seen.push(address);
                Fate::Alive(address)
            },
            keep_all,
        );
        assert_eq!(seen, [10, 20]);
        assert_eq!(blocks.len(), 3);
    }

    #[test]
    fn major_addresses_can_be_changed() {
        let mut blocks = with(&[1], &[10, 11]);
        blocks.major_addresses().for_each(|address| *address += 100);
        let mut seen = Vec::new();
        blocks.sweep_major(
            |address| {
                seen.push(address);
                Fate::Dead
            },
            keep_all,
        );
        assert_eq!(seen, [110, 111]);
    }

    #[test]
    fn an_heir_adopts_blocks_and_ends() {
        let mut heir = with(&[1], &[2]);
        let mut other = with(&[3], &[4, 5]);
        other.sweep_young(|_| Fate::Dead, keep_all);
        assert!(heir.adopt(&mut other));
        assert_eq!((heir.len(), other.len()), (4, 0));
        assert_eq!(take_ends(&mut heir), [EndWord::collected(id(3))]);
        assert!(heir.ends.is_empty());
    }

    /// Random steps of a collector: which one, what becomes of blocks, and how much space the
    /// event buffer has.
    fn steps() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
        prop::collection::vec((0..4u8, any::<u8>(), any::<u8>()), 1..60)
    }

    proptest! {
        /// Every block is promoted at most once and then collected exactly once, however
        /// little space the event buffer has.
        #[test]
        fn no_end_is_lost_or_doubled(steps in steps()) {
            let mut blocks = Generations::new().unwrap();
            let mut recorded: BTreeMap<u64, Vec<End>> = BTreeMap::new();
            let mut next = 0u64;
            for (step, fates, space) in steps {
                let mut flush = |ends: &mut PendingEnds| {
                    let some = ends.len().min(usize::from(space) % 5);
                    for &end in &ends[..some] {
                        for number in numbers(end) {
                            recorded.entry(number).or_default().push(end.end());
                        }
                    }
                    ends.remove_first(some);
                };
                let fate = |address: usize| match address.wrapping_mul(31) as u8 ^ fates {
                    0..90 => Fate::Dead,
                    90..190 => Fate::Promoted(address + 1_000_000),
                    _ => Fate::Alive(address + 8),
                };
                match step {
                    0 | 1 => {
                        prop_assert!(blocks.reserve(2));
                        blocks.add_young(1000 + next as usize * 16, id(next));
                        blocks.add_major(2000 + next as usize * 16, id(next + 1));
                        next += 2;
                    }
                    2 => blocks.sweep_young(fate, &mut flush),
                    _ => {
                        blocks.sweep_major(fate, &mut flush);
                        flush(&mut blocks.ends);
                    }
                }
            }
            blocks.sweep_young(|_| Fate::Dead, keep_all);
            blocks.sweep_major(|_| Fate::Dead, keep_all);
            for &end in blocks.ends.iter() {
                for number in numbers(end) {
                    recorded.entry(number).or_default().push(end.end());
                }
            }
            prop_assert_eq!(blocks.len(), 0);
            prop_assert_eq!(recorded.len() as u64, next);
            for ends in recorded.values() {
                let promoted_before = [End::Promote, End::Collect];
                prop_assert!(ends == &[End::Collect] || ends == &promoted_before, "{:?}", ends);
            }
        }
    }
}
