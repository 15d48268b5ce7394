//! The blocks that one mutator's collections decide about.

use heaptap_trace::End;

use crate::blocks::PendingEnds;
use crate::blocks::pending_ends::Swept;
use crate::queue::BlockId;
use crate::sys::memory::MappedVec;

/// What a collection did to a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It is gone.
    Dead,
    /// It stays in its generation, at this address.
    Alive(usize),
    /// It is a major block from now on, at this address.
    Promoted(usize),
}

#[derive(Clone, Copy)]
struct Tracked {
    address: usize,
    id: BlockId,
}

/// For so many blocks room is made at a time.
const AT_A_TIME: usize = 256;

/// For so many there is room from the start: pages that are not used cost nothing,
/// but to make room inside a hook takes a system call, which moves those that are.
const AT_FIRST: usize = if cfg!(test) { AT_A_TIME } else { 16 << 10 };

/// Young and major blocks.
pub(crate) struct Generations {
    young: MappedVec<Tracked>,
    /// Has room for all of `young` as well.
    major: MappedVec<Tracked>,
    /// Has room for two of each block: nothing that was once told of is ever
    /// forgotten.
    pub(crate) ends: PendingEnds,
    /// At least so many more blocks have room, with all that may happen to them.
    room: usize,
}

impl Generations {
    /// None when there is no memory.
    pub(crate) fn new() -> Option<Generations> {
        Some(Generations {
            young: MappedVec::new(AT_FIRST)?,
            major: MappedVec::new(AT_FIRST)?,
            ends: PendingEnds::new(2 * AT_FIRST)?,
            room: 0,
        })
    }

    /// How many blocks are followed.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.major.len()
    }

    /// Whether there is nothing to do for anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.ends.is_empty()
    }

    /// Makes room for so many more blocks and all that may happen to them.
    /// False: there is no memory, and they cannot be followed.
    #[inline]
    pub(crate) fn reserve(&mut self, blocks: usize) -> bool {
        blocks <= self.room || self.make_room(blocks)
    }

    #[cold]
    fn make_room(&mut self, blocks: usize) -> bool {
        // Some at a time. Blocks that are gone make room, too: this grows only
        // if there are more than ever.
        let more = blocks.max(AT_A_TIME);
        let all = self.len().saturating_add(more);
        let made = self.young.reserve(more)
            && self.major.reserve(self.young.len().saturating_add(more))
            && self.ends.reserve(all.saturating_mul(2));
        if made {
            self.room = more;
        }
        made
    }

    /// What must hold whenever a collection may come: it never asks for memory.
    #[cfg(debug_assertions)]
    fn check(&self) {
        let blocks = self.len();
        assert!(self.major.capacity() >= blocks, "major has no room for all young");
        let mut tracked = self.young.iter().chain(self.major.iter());
        assert!(tracked.all(|block| block.address != 0), "a block at no address");
    }

    #[cfg(not(debug_assertions))]
    fn check(&self) {}

    /// Follows a block. Room for it has been reserved.
    pub(crate) fn add_young(&mut self, address: usize, id: BlockId) {
        self.take_room(1);
        let added = self.young.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    /// Follows a block. Room for it has been reserved.
    pub(crate) fn add_major(&mut self, address: usize, id: BlockId) {
        self.take_room(1);
        let added = self.major.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    fn take_room(&mut self, blocks: usize) {
        debug_assert!(self.room >= blocks, "not reserved");
        self.room = self.room.saturating_sub(blocks);
    }

    /// Asks for the fate of each young block. What there is to tell goes to the
    /// ends; `tell` is called when there are many of them, and may take some.
    pub(crate) fn sweep_young(
        &mut self,
        mut fate: impl FnMut(usize) -> Fate,
        tell: impl FnMut(&mut PendingEnds),
    ) {
        self.check();
        let Generations { young, major, ends, .. } = self;
        let mut swept = Swept::new(ends, tell);
        let mut kept = 0;
        for at in 0..young.len() {
            let Some(&block) = young.get(at) else { break };
            match fate(block.address) {
                Fate::Dead => swept.add(End::Collect, block.id),
                Fate::Promoted(address) => {
                    let added = major.push(Tracked { address, ..block });
                    debug_assert!(added, "not reserved");
                    swept.add(End::Promote, block.id);
                }
                Fate::Alive(address) => {
                    keep(young, &mut kept, Tracked { address, ..block });
                }
            }
        }
        swept.finish();
        young.truncate(kept);
    }

    /// The same for major blocks. To be promoted again is to stay.
    pub(crate) fn sweep_major(
        &mut self,
        mut fate: impl FnMut(usize) -> Fate,
        tell: impl FnMut(&mut PendingEnds),
    ) {
        let Generations { major, ends, .. } = self;
        let mut swept = Swept::new(ends, tell);
        let mut kept = 0;
        for at in 0..major.len() {
            let Some(&block) = major.get(at) else { break };
            match fate(block.address) {
                Fate::Dead => swept.add(End::Collect, block.id),
                Fate::Alive(address) | Fate::Promoted(address) => {
                    keep(major, &mut kept, Tracked { address, ..block });
                }
            }
        }
        swept.finish();
        major.truncate(kept);
        self.check();
    }

    /// Where the addresses of the major blocks are kept.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.major.iter_mut().map(|block| &mut block.address)
    }

    /// Takes over what another mutator leaves. False: there is no memory, and
    /// the other keeps it all.
    pub(crate) fn adopt(&mut self, other: &mut Generations) -> bool {
        if !self.reserve(other.len().saturating_add(other.ends.len())) {
            return false;
        }
        self.take_room(other.ends.len());
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

    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.young.truncate(0);
        self.major.truncate(0);
        self.ends.clear();
    }
}

/// Writes a block behind those that stay.
fn keep(blocks: &mut [Tracked], kept: &mut usize, block: Tracked) {
    if let Some(place) = blocks.get_mut(*kept) {
        *place = block;
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

    /// The numbers of the blocks that it tells of.
    fn numbers(end: EndWord) -> impl Iterator<Item = u64> {
        end.blocks().blocks().map(BlockId::number)
    }

    /// Takes none of the ends.
    fn nobody(_: &mut PendingEnds) {}

    fn told(blocks: &mut Generations) -> Vec<EndWord> {
        let told = blocks.ends.to_vec();
        blocks.ends.clear();
        told
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
    fn a_minor_collection_visits_the_young_only() {
        let mut blocks = with(&[1, 2, 3], &[10]);
        blocks.sweep_young(
            |address| match address {
                1 => Fate::Dead,
                2 => Fate::Promoted(20),
                _ => Fate::Alive(33),
            },
            nobody,
        );
        assert_eq!(told(&mut blocks), [EndWord::collected(id(1)), EndWord::promoted(id(2))]);
        let mut seen = Vec::new();
        blocks.sweep_major(
            |address| {
                seen.push(address);
                Fate::Alive(address)
            },
            nobody,
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
            nobody,
        );
        assert_eq!(seen, [110, 111]);
    }

    #[test]
    fn what_an_heir_adopts_goes_on() {
        let mut heir = with(&[1], &[2]);
        let mut other = with(&[3], &[4, 5]);
        other.sweep_young(|_| Fate::Dead, nobody);
        assert!(heir.adopt(&mut other));
        assert_eq!((heir.len(), other.len()), (4, 0));
        assert_eq!(told(&mut heir), [EndWord::collected(id(3))]);
        assert!(heir.ends.is_empty());
    }

    /// A collector's doings, one byte each.
    fn doings() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
        prop::collection::vec((0..4u8, any::<u8>(), any::<u8>()), 1..60)
    }

    proptest! {
        /// Every block is promoted at most once and collected exactly once in
        /// the end, in that order, however seldom there is room to say so.
        #[test]
        fn nothing_is_lost_or_doubled(doings in doings()) {
            let mut blocks = Generations::new().unwrap();
            let mut told: BTreeMap<u64, Vec<End>> = BTreeMap::new();
            let mut next = 0u64;
            for (what, fates, room) in doings {
                let mut tell = |ends: &mut PendingEnds| {
                    let some = ends.len().min(usize::from(room) % 5);
                    for &end in &ends[..some] {
                        for number in numbers(end) {
                            told.entry(number).or_default().push(end.end());
                        }
                    }
                    ends.remove_first(some);
                };
                let fate = |address: usize| match address.wrapping_mul(31) as u8 ^ fates {
                    0..90 => Fate::Dead,
                    90..190 => Fate::Promoted(address + 1_000_000),
                    _ => Fate::Alive(address + 8),
                };
                match what {
                    0 | 1 => {
                        prop_assert!(blocks.reserve(2));
                        blocks.add_young(1000 + next as usize * 16, id(next));
                        blocks.add_major(2000 + next as usize * 16, id(next + 1));
                        next += 2;
                    }
                    2 => blocks.sweep_young(fate, &mut tell),
                    _ => {
                        blocks.sweep_major(fate, &mut tell);
                        tell(&mut blocks.ends);
                    }
                }
            }
            blocks.sweep_young(|_| Fate::Dead, nobody);
            blocks.sweep_major(|_| Fate::Dead, nobody);
            for &end in blocks.ends.iter() {
                for number in numbers(end) {
                    told.entry(number).or_default().push(end.end());
                }
            }
            prop_assert_eq!(blocks.len(), 0);
            prop_assert_eq!(told.len() as u64, next);
            for ends in told.values() {
                let promoted_before = [End::Promote, End::Collect];
                prop_assert!(ends == &[End::Collect] || ends == &promoted_before, "{:?}", ends);
            }
        }
    }
}
