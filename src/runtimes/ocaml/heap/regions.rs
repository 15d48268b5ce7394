//! Which addresses are in the heap.

use super::NO_MEMORY;
use super::words::{Words, is_pointer};
use crate::runtimes::ocaml::values::INFIX;
use crate::snapshot::WalkError;
use crate::sys::memory::MappedVec;
use crate::tracer::WORD;

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

    /// The block that a value points to, if its header is in the heap. Of a function within a closure the closure.
    ///
    /// What garbage points to may have been freed, and its memory be used otherwise: then the header may be anything, and
    /// the result too.
    #[inline]
    pub(crate) fn block(&mut self, words: Words, value: usize) -> Option<usize> {
        if !is_pointer(value) || !self.contains(value.wrapping_sub(WORD)) {
            return None;
        }
        let header = words.header(value);
        // `Infix_offset_hd`: the size is the distance to the closure.
        let distance = if header.tag() == INFIX { header.size().wrapping_mul(WORD) } else { 0 };
        Some(value.wrapping_sub(distance))
    }

    /// Whether an address is in the heap.
    #[inline]
    fn contains(&mut self, address: usize) -> bool {
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

    #[test]
    fn only_headers_in_the_heap_are_read() {
        const INFIX_HEADER: usize = 2 << 10 | INFIX as usize;
        // The heap begins at the second word and ends before the last.
        let memory =
            [INFIX_HEADER, 1, 4 << 10, INFIX_HEADER, usize::MAX << 8 | 249, INFIX_HEADER, 1];
        let at = |index: usize| memory.as_ptr() as usize + index * WORD;
        let mut regions = Regions::new().unwrap();
        regions.add(Region { start: at(1), end: at(5) }).unwrap();
        regions.sort();
        // SAFETY: words of this test.
        let words = unsafe { Words::at_rest() };
        assert_eq!(regions.block(words, at(1)), None, "its header lies before the heap");
        assert_eq!(regions.block(words, at(3)), Some(at(3)));
        assert_eq!(regions.block(words, at(4)), Some(at(2)), "a function within a closure");
        assert_eq!(regions.block(words, at(3) + 1), None, "an integer");
        assert_eq!(regions.block(words, at(6)), None, "its header lies behind the heap");
        assert!(regions.block(words, at(5)).is_some(), "memory that is used otherwise");
    }
}
