//! The blocks that one mutator's collections decide about.

use crate::queue::BlockId;
use crate::sys::memory::Mapped;

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

/// What there is to report of a block after its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Promoted,
    Collected,
}

#[derive(Clone, Copy)]
struct Tracked {
    address: usize,
    id: BlockId,
}

/// A report for which there was no room in the mutator's event buffer.
#[derive(Clone, Copy)]
struct Held {
    end: End,
    id: BlockId,
}

/// For so many blocks room is made at a time.
const AT_A_TIME: usize = 256;

/// Young and major blocks.
pub(crate) struct Generations {
    young: Mapped<Tracked>,
    /// Has room for all of `young` as well.
    major: Mapped<Tracked>,
    /// In the order in which they happened. Has room for two reports of each
    /// block: nothing that was once told of is ever forgotten.
    held: Mapped<Held>,
    /// At least so many more blocks have room, with all that may happen to them.
    room: usize,
}

impl Generations {
    /// None when there is no memory.
    pub(crate) fn new() -> Option<Generations> {
        Some(Generations {
            young: Mapped::new(AT_A_TIME)?,
            major: Mapped::new(AT_A_TIME)?,
            held: Mapped::new(AT_A_TIME)?,
            room: 0,
        })
    }

    /// How many blocks are followed.
    pub(crate) fn len(&self) -> usize {
        self.young.len() + self.major.len()
    }

    /// Whether there is nothing to do for anybody.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && self.held.is_empty()
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
            && self.held.reserve(all.saturating_mul(2));
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
        assert!(self.held.capacity() >= self.held.len(), "held reports");
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
        self.push_major(address, id);
    }

    fn push_major(&mut self, address: usize, id: BlockId) {
        let added = self.major.push(Tracked { address, id });
        debug_assert!(added, "not reserved");
    }

    fn take_room(&mut self, blocks: usize) {
        debug_assert!(self.room >= blocks, "not reserved");
        self.room = self.room.saturating_sub(blocks);
    }

    /// Asks for the fate of each young block, and reports.
    ///
    /// `report` says whether it could; what it could not is kept.
    pub(crate) fn sweep_young(
        &mut self,
        mut fate: impl FnMut(usize) -> Fate,
        mut report: impl FnMut(End, BlockId) -> bool,
    ) {
        self.check();
        let mut kept = 0;
        for at in 0..self.young.len() {
            let Some(&block) = self.young.get(at) else { break };
            match fate(block.address) {
                Fate::Dead => self.tell(End::Collected, block.id, &mut report),
                Fate::Promoted(address) => {
                    self.push_major(address, block.id);
                    self.tell(End::Promoted, block.id, &mut report);
                }
                Fate::Alive(address) => {
                    if let Some(place) = self.young.get_mut(kept) {
                        *place = Tracked { address, ..block };
                    }
                    kept += 1;
                }
            }
        }
        self.young.truncate(kept);
    }

    /// The same for major blocks. To be promoted again is to stay.
    pub(crate) fn sweep_major(
        &mut self,
        mut fate: impl FnMut(usize) -> Fate,
        mut report: impl FnMut(End, BlockId) -> bool,
    ) {
        let mut kept = 0;
        for at in 0..self.major.len() {
            let Some(&block) = self.major.get(at) else { break };
            match fate(block.address) {
                Fate::Dead => self.tell(End::Collected, block.id, &mut report),
                Fate::Alive(address) | Fate::Promoted(address) => {
                    if let Some(place) = self.major.get_mut(kept) {
                        *place = Tracked { address, ..block };
                    }
                    kept += 1;
                }
            }
        }
        self.major.truncate(kept);
        self.check();
    }

    /// Where the addresses of the major blocks are kept.
    pub(crate) fn major_addresses(&mut self) -> impl Iterator<Item = &mut usize> {
        self.major.iter_mut().map(|block| &mut block.address)
    }

    /// Reports, or keeps it. In order: as long as something is held back, all
    /// that follows is.
    pub(crate) fn tell(
        &mut self,
        end: End,
        id: BlockId,
        report: &mut impl FnMut(End, BlockId) -> bool,
    ) {
        if self.held.is_empty() && report(end, id) {
            return;
        }
        let held = self.held.push(Held { end, id });
        debug_assert!(held, "not reserved");
    }

    /// Whether reports are held back.
    pub(crate) fn holds_reports(&self) -> bool {
        !self.held.is_empty()
    }

    /// Reports what was held back, as far as there is room.
    pub(crate) fn report_held(&mut self, mut report: impl FnMut(End, BlockId) -> bool) {
        let told = self.held.iter().take_while(|held| report(held.end, held.id)).count();
        let left = self.held.len() - told;
        self.held.copy_within(told.., 0);
        self.held.truncate(left);
    }

    /// Takes over what another mutator leaves. False: there is no memory, and
    /// the other keeps it all.
    pub(crate) fn adopt(&mut self, other: &mut Generations) -> bool {
        if !self.reserve(other.len().saturating_add(other.held.len())) {
            return false;
        }
        self.take_room(other.held.len());
        for &held in other.held.iter() {
            let kept = self.held.push(held);
            debug_assert!(kept, "not reserved");
        }
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
        self.held.truncate(0);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn id(number: u64) -> BlockId {
        BlockId::new(3, number)
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
        let mut told = Vec::new();
        blocks.sweep_young(
            |address| match address {
                1 => Fate::Dead,
                2 => Fate::Promoted(20),
                _ => Fate::Alive(33),
            },
            |end, id| {
                told.push((end, id.number()));
                true
            },
        );
        assert_eq!(told, [(End::Collected, 1), (End::Promoted, 2)]);
        let mut seen = Vec::new();
        blocks.sweep_major(
            |address| {
                seen.push(address);
                Fate::Alive(address)
            },
            |_, _| true,
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
            |_, _| true,
        );
        assert_eq!(seen, [110, 111]);
    }

    #[test]
    fn what_an_heir_adopts_goes_on() {
        let mut heir = with(&[1], &[2]);
        let mut other = with(&[3], &[4, 5]);
        other.sweep_young(|_| Fate::Dead, |_, _| false);
        assert!(heir.adopt(&mut other));
        assert_eq!((heir.len(), other.len()), (4, 0));
        let mut told = Vec::new();
        heir.report_held(|end, id| {
            told.push((end, id.number()));
            true
        });
        assert_eq!(told, [(End::Collected, 3)]);
        assert!(!heir.holds_reports());
    }

    /// A collector's doings, one byte each.
    fn doings() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
        prop::collection::vec((0..4u8, any::<u8>(), any::<u8>()), 1..60)
    }

    proptest! {
        /// Every block is promoted at most once and collected exactly once in
        /// the end, in that order, however often there is no room to say so.
        #[test]
        fn nothing_is_lost_or_doubled(doings in doings()) {
            let mut blocks = Generations::new().unwrap();
            let mut told: BTreeMap<u64, Vec<End>> = BTreeMap::new();
            let mut next = 0u64;
            let mut rooms = 0u32;
            for (what, fates, room) in doings {
                rooms = u32::from(room) * 7;
                let mut report = |end, id: BlockId| {
                    rooms = rooms.rotate_left(5) ^ 0x1234;
                    let can = rooms & 3 != 0;
                    if can {
                        told.entry(id.number()).or_default().push(end);
                    }
                    can
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
                    2 => blocks.sweep_young(fate, &mut report),
                    _ => {
                        blocks.sweep_major(fate, &mut report);
                        blocks.report_held(&mut report);
                    }
                }
            }
            let mut last = |end, id: BlockId| {
                told.entry(id.number()).or_default().push(end);
                true
            };
            blocks.report_held(&mut last);
            blocks.sweep_young(|_| Fate::Dead, &mut last);
            blocks.sweep_major(|_| Fate::Dead, &mut last);
            prop_assert_eq!(blocks.len(), 0);
            prop_assert_eq!(told.len() as u64, next);
            for ends in told.values() {
                prop_assert!(
                    matches!(ends[..], [End::Collected] | [End::Promoted, End::Collected])
                );
            }
            let _ = rooms;
        }
    }
}
