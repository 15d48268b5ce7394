//! The codes of the parts of combined allocations.
//!
//! The parts of one allocation have the same return address and different codes.
//! Where two parts have the same source location, two codes say no more than one,
//! but a trace in which they alternate is longer, since a frame changes each time.
//! So such parts share the code of the first. Runs on the writer thread.

use crate::queue::Part;

/// A direct-mapped cache of the codes of parts.
pub(crate) struct PartCodeCache {
    /// Indexed by a hash of return address and part.
    known: Box<[Known; KNOWN]>,
}

#[derive(Clone, Copy)]
struct Known {
    return_address: u64,
    part: Part,
    code: u64,
}

const KNOWN_BITS: u32 = 8;
const KNOWN: usize = 1 << KNOWN_BITS;

impl PartCodeCache {
    pub(crate) fn new() -> PartCodeCache {
        let none = Known { return_address: 0, part: Part::NONE, code: 0 };
        PartCodeCache { known: Box::new([none; KNOWN]) }
    }

    /// The code of the first part of this allocation that has the same source
    /// location as this one. `key` returns a part's location key by its index: parts
    /// with equal keys have the same location.
    #[inline(always)]
    pub(crate) fn code(
        &mut self,
        return_address: u64,
        part: Part,
        key: impl Fn(usize) -> Option<u64>,
    ) -> u64 {
        let mixed = return_address.wrapping_add(u64::from(part.to_bits()));
        let hash = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - KNOWN_BITS);
        let known = &mut self.known[hash as usize % KNOWN];
        if known.return_address != return_address || known.part != part {
            let code = first_alike(part, key).in_code(return_address);
            *known = Known { return_address, part, code };
        }
        known.code
    }
}

#[cold]
fn first_alike(part: Part, key: impl Fn(usize) -> Option<u64>) -> Part {
    let Some((index, own)) = part.index().and_then(|index| Some((index, key(index)?))) else {
        return part;
    };
    (0..index).find(|&before| key(before) == Some(own)).map_or(part, Part::of_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_with_one_location_have_the_code_of_the_first() {
        let keys = [Some(10), Some(20), Some(10), None, Some(20), None];
        let mut codes = PartCodeCache::new();
        // Many more allocations than are cached, and each again.
        for address in (0..2_000u64).chain(0..2_000).map(|number| 0x40_0000 + 8 * number) {
            for (index, first) in [0, 1, 0, 3, 1, 5].into_iter().enumerate() {
                let key = |part: usize| keys[part].map(|key: u64| key + address);
                let code = codes.code(address, Part::of_index(index), key);
                assert_eq!(Part::of_code(code), (address, Some(first)));
            }
        }
    }
}
