//! The codes of the parts of combined allocations.
//!
//! Parts of one allocation have the same return address, and codes that tell
//! them apart. Where two parts have the same place, two codes say no more than
//! one; but a trace in which they alternate is longer, since each time a frame
//! changes. So they share the code of the first. On the writer thread.

use crate::queue::Part;

/// Codes of the parts that were told last.
pub(crate) struct PartCodes {
    /// By a hash of return address and part.
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

impl PartCodes {
    pub(crate) fn new() -> PartCodes {
        let none = Known { return_address: 0, part: Part::NONE, code: 0 };
        PartCodes { known: Box::new([none; KNOWN]) }
    }

    /// The code of the first part of this allocation that has the same place as
    /// this one. `place` tells a part's place by its index.
    #[inline(always)]
    pub(crate) fn code(
        &mut self,
        return_address: u64,
        part: Part,
        place: impl Fn(usize) -> Option<u64>,
    ) -> u64 {
        let mixed = return_address.wrapping_add(u64::from(part.to_bits()));
        let hash = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - KNOWN_BITS);
        let known = &mut self.known[hash as usize % KNOWN];
        if known.return_address != return_address || known.part != part {
            let code = first_alike(part, place).in_code(return_address);
            *known = Known { return_address, part, code };
        }
        known.code
    }
}

#[cold]
fn first_alike(part: Part, place: impl Fn(usize) -> Option<u64>) -> Part {
    let Some((index, own)) = part.index().and_then(|index| Some((index, place(index)?))) else {
        return part;
    };
    (0..index).find(|&before| place(before) == Some(own)).map_or(part, Part::of_index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_with_one_place_have_the_code_of_the_first() {
        let places = [Some(10), Some(20), Some(10), None, Some(20), None];
        let mut codes = PartCodes::new();
        // Many more allocations than are remembered, and each again.
        for address in (0..2_000u64).chain(0..2_000).map(|number| 0x40_0000 + 8 * number) {
            for (index, first) in [0, 1, 0, 3, 1, 5].into_iter().enumerate() {
                let place = |part: usize| places[part].map(|place: u64| place + address);
                let code = codes.code(address, Part::of_index(index), place);
                assert_eq!(Part::of_code(code), (address, Some(first)));
            }
        }
    }
}
