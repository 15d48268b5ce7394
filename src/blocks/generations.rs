//! The blocks that one mutator's collector sweeps.

use heaptap_trace::End;

use crate::blocks::pending_ends::{PendingEnds, RunMerger};
use crate::blocks::tracked_id::TrackedId;
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

/// Which blocks a collection is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Generation {
    Young,
    Major,
}

#[derive(Clone, Copy)]
struct Tracked {
    address: usize,
    id: TrackedId,
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
    pub(crate) fn add_young(&mut self, address: usize, id: TrackedId) {
        self.use_reserved(1);
        let added = self.young.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    /// Tracks a block, for which memory was reserved.
    pub(crate) fn add_major(&mut self, address: usize, id: TrackedId) {
        self.use_reserved(1);
        let added = self.major.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    fn use_reserved(&mut self, blocks: usize) {
        debug_assert!(self.reserved >= blocks, "not reserved");
        self.reserved = self.reserved.saturating_sub(blocks);
    }

    /// Calls `fate` for each block of a generation and appends the promotions and collections to
    /// the pending ends. A promoted major block stays. Calls `flush`, which may remove ends, for
    /// each batch of them.
    pub(crate) fn sweep(
        &mut self,
        generation: Generation,
        mut fate: impl FnMut(usize) -> Fate,
        flush: impl FnMut(&mut PendingEnds),
    ) {
        self.check();
        let Generations { young, major, ends, .. } = self;
        let (swept, mut promoted) = match generation {
            Generation::Young => (young, Some(major)),
            Generation::Major => (major, None),
        };
        let mut merger = RunMerger::new(ends, flush);
        let mut kept = 0;
        for at in 0..swept.len() {
            let Some(&block) = swept.get(at) else { break };
            match (fate(block.address), &mut promoted) {
                (Fate::Dead, _) => merger.add(End::Collect, block.id.block()),
                (Fate::Promoted(address), Some(major)) => {
                    let added = major.push(Tracked { address, ..block });
                    debug_assert!(added, "not reserved");
                    if block.id.has_generation() {
                        merger.add(End::Promote, block.id.block());
                    }
                }
                (Fate::Alive(address) | Fate::Promoted(address), _) => {
                    if let Some(slot) = swept.get_mut(kept) {
                        *slot = Tracked { address, ..block };
                    }
                    kept += 1;
                }
            }
        }
        merger.finish();
        swept.truncate(kept);
        self.check();
    }

    /// The addresses of the major blocks, for a collector that moves them.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.major.iter_mut().map(|block| &mut block.address)
    }

    /// The address and id of every tracked block.
    pub(crate) fn tracked(&self) -> impl Iterator<Item = (usize, BlockId)> {
        let all = self.young.iter().chain(self.major.iter());
        all.map(|block| (block.address, block.id.block()))
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

#[cfg(test)]
#[path = "generations_tests.rs"]
mod tests;
