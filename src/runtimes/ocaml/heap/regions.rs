//! Which addresses are in the heap.

use super::NO_MEMORY;
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;

/// A range in which blocks lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) start: usize,
    /// Past its last byte.
    pub(crate) end: usize,
}

/// The ranges of a heap, by ascending address once they are [sorted](Regions::sort).
pub(crate) struct Regions {
    sorted: MappedVec<Region>,
    /// The range of the last address that was found: the next one is often there too.
    last: Region,
}

impl Regions {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Regions> {
        Some(Regions { sorted: MappedVec::new(1 << 10)?, last: Region { start: 0, end: 0 } })
    }

    /// Fails if there is no memory.
    pub(crate) fn add(&mut self, region: Region) -> Result<(), WalkError> {
        let is_added = self.sorted.reserve(1) && self.sorted.push(region);
        if is_added { Ok(()) } else { Err(NO_MEMORY) }
    }

    /// After the last region was added. Those that touch each other become one.
    pub(crate) fn sort(&mut self) {
        self.sorted.sort_unstable_by_key(|region| region.start);
        let mut kept = 0;
        for index in 1..self.sorted.len() {
            let (before, after) = self.sorted.split_at_mut(index);
            let (Some(last), Some(next)) = (before.get_mut(kept), after.first()) else { break };
            if last.end == next.start {
                last.end = next.end;
            } else {
                kept += 1;
                let next = *next;
                if let Some(place) = self.sorted.get_mut(kept) {
                    *place = next;
                }
            }
        }
        self.sorted.truncate(kept + 1);
    }

    /// Whether an address is in the heap.
    #[inline]
    pub(crate) fn contains(&mut self, address: usize) -> bool {
        let holds = |region: &Region| (region.start..region.end).contains(&address);
        holds(&self.last) || self.find(address)
    }

    fn find(&mut self, address: usize) -> bool {
        let after = self.sorted.partition_point(|region| region.start <= address);
        let region = after.checked_sub(1).and_then(|index| self.sorted.get(index));
        match region {
            Some(&region) if address < region.end => {
                self.last = region;
                true
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found_in_their_regions_only() {
        let mut regions = Regions::new().unwrap();
        assert!(!regions.contains(0x1000));
        for start in [0x9000, 0x1000, 0x5000, 0xa000] {
            regions.add(Region { start, end: start + 0x1000 }).unwrap();
        }
        regions.sort();
        for (address, is_inside) in [
            (0, false),
            (0xfff, false),
            (0x1000, true),
            (0x1fff, true),
            (0x2000, false),
            (0x5008, true),
            (0x9fff, true),
            (0xa000, true),
            (0xb000, false),
            (usize::MAX, false),
            (0x1010, true),
        ] {
            assert_eq!(regions.contains(address), is_inside, "{address:#x}");
        }
    }
}
