//! Kinds of blocks, in the codes of frames.
//!
//! A runtime may say of what kind a block is: a table, a string, an object of some class. The kind
//! is a number from 1 to 255, and travels in the code of the innermost frame of the block's
//! backtrace, where readers that know nothing of it find another code of the same source location:
//!
//! ```text
//! bit  62 60 59 | 58  56 | 55  48 | 47                0
//!       0  1  1 |    0   |  kind  | address xor spread      in a trace of one process
//!       1  0  0 |    0   |  kind  | number                  in a merge
//! ```
//!
//! No other code has bits 60 and 59: the runtime's are below 2^60, and those of labels have no
//! bit 59. So a code needs no table to tell whether it has a kind.
//!
//! The code of a kind whose address is 0 is in no backtrace. Its location, in the file
//! [`KIND_FILE`], is the kind's name. Encoders write it before the first code of that kind.

use crate::model::event::Code;

/// The file of locations that are names of kinds.
pub const KIND_FILE: &[u8] = b"kind";

/// Bits 60 and 59.
const MARK: u64 = 3 << 59;
/// The kind's place.
const KIND_SHIFT: u32 = 48;
/// The bits below it.
const ADDRESS: u64 = (1 << KIND_SHIFT) - 1;
/// The codes that a merge makes have this bit, which no trace can store.
const MERGED: u64 = 1 << 62;

/// The code of a frame in which a block of this kind is allocated. `None` if the code has no room
/// for a kind, or if the kind is 0: not known.
#[inline]
pub fn code_of_kind(code: Code, kind: u8) -> Option<Code> {
    let fits = kind != 0 && code != 0 && code <= ADDRESS;
    fits.then(|| MARK | u64::from(kind) << KIND_SHIFT | (code ^ spread(kind)))
}

/// The code whose location is a kind's name.
#[inline]
pub fn kind_name_code(kind: u8) -> Code {
    MARK | u64::from(kind) << KIND_SHIFT | spread(kind)
}

/// The kind in a code.
#[inline]
pub fn kind_of(code: Code) -> Option<u8> {
    let has_kind = code >> 59 == MARK >> 59 || code & MERGED != 0;
    let kind = (code >> KIND_SHIFT) as u8;
    (has_kind && kind != 0).then_some(kind)
}

/// The code without its kind: 0 for that of a kind's name.
#[inline]
pub fn without_kind(code: Code) -> Code {
    match kind_of(code) {
        Some(kind) if code & MERGED == 0 => (code & ADDRESS) ^ spread(kind),
        _ => code,
    }
}

/// A code of a merge, with a kind or 0.
pub(crate) fn merged_code(number: u64, kind: u8) -> Code {
    MERGED | u64::from(kind) << KIND_SHIFT | number & ADDRESS
}

/// What an address is xored with. The memtrace format's location cache is indexed by the low bits
/// of a code: without this the kinds of one location would evict each other, and be written again
/// each time.
fn spread(kind: u8) -> u64 {
    u64::from(kind).wrapping_mul(0x9E_3779_B97F) & ADDRESS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_holds_kind_and_address() {
        for kind in 1..=u8::MAX {
            for address in [1, 0x1000, 0x7fff_1234_5678, ADDRESS] {
                let code = code_of_kind(address, kind).unwrap();
                assert_eq!((kind_of(code), without_kind(code)), (Some(kind), address));
                assert!(code < 1 << 61, "fits an OCaml integer");
            }
            let name = kind_name_code(kind);
            assert_eq!((kind_of(name), without_kind(name)), (Some(kind), 0));
        }
    }

    #[test]
    fn other_codes_have_no_kind() {
        let label = (1 << 60) + u64::from(u32::MAX);
        let (left_out, unknown) = (2 << 60, (3 << 60) + 1);
        for code in [1, ADDRESS, ADDRESS + 1, (1 << 60) - 1, label, left_out, unknown] {
            assert_eq!((kind_of(code), without_kind(code)), (None, code));
        }
        assert_eq!(code_of_kind(ADDRESS + 1, 7), None);
        assert_eq!(code_of_kind(4_096, 0), None);
        assert_eq!(kind_of(merged_code(3, 0)), None);
        assert_eq!(kind_of(merged_code(3, 9)), Some(9));
        assert_eq!(without_kind(merged_code(3, 9)), merged_code(3, 9));
    }

    #[test]
    fn kinds_differ_in_the_bits_that_index_the_cache() {
        let low = |kind| code_of_kind(0x7fff_1234_5678, kind).unwrap() % (1 << 25);
        let codes: std::collections::BTreeSet<u64> = (1..=u8::MAX).map(low).collect();
        assert_eq!(codes.len(), 255);
    }
}
