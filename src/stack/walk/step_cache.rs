//! A cache in front of the frame tables: return address → step.
//!
//! An address has one place, its low bits: code addresses are spread well enough,
//! and the bits are known at once. Each place holds the two addresses used last, so
//! two call sites that share a place do not evict each other.
//!
//! An entry is one word: the address's high bits and, in place of the low ones, the
//! inverted *packed step*. The inversion makes an unused entry (0) match no address.

use super::super::step::{Step, is_distance};
use super::super::table::FrameTables;

const PLACES: usize = 2048;

/// The newest entry of each place, then the one before it.
pub(super) type StepCache = [[u64; PLACES]; 2];

const NEWEST: usize = 0;
const OLDER: usize = 1;

/// The words of a cache. All zeros is an empty one.
pub(super) const CACHE_WORDS: usize = size_of::<StepCache>() / size_of::<u64>();

/// The bits of an entry that hold the packed step, which is neither 0 nor all ones.
/// A step that does not fit is looked up in the tables every time.
const PACKED: u64 = PLACES as u64 - 1;

/// Below it a packed step is a distance in words; from it on, what to do at a boundary.
const BOUNDARY: u64 = PLACES as u64 / 2;

/// The cache in these words, if their number is right.
pub(super) fn cache_in(words: &mut [u64]) -> Option<&mut StepCache> {
    words.as_chunks_mut::<PLACES>().0.try_into().ok()
}

/// How many bytes up the stack the caller's frame is, or the step of a boundary,
/// which is 0 for an address that is in no table.
#[inline]
pub(super) fn distance_to_caller(
    return_address: u64,
    cache: &mut StepCache,
    tables: &FrameTables,
) -> Result<u64, Step> {
    let newest = cache[NEWEST][return_address as usize % PLACES];
    let packed = newest ^ key(return_address);
    if packed < BOUNDARY {
        return Ok(8 * packed);
    }
    let step = unpack(packed).unwrap_or_else(|| find_older(return_address, cache, tables));
    if is_distance(step) { Ok(step) } else { Err(step) }
}

/// An entry for this address, except for the packed step: the exclusive or of the two
/// is the packed step, or not below [`PACKED`] if the entry is another address's.
const fn key(return_address: u64) -> u64 {
    return_address | PACKED
}

const fn unpack(packed: u64) -> Option<Step> {
    match packed {
        1..BOUNDARY => Some(8 * packed),
        BOUNDARY..PACKED => Some(packed ^ BOUNDARY),
        _ => None,
    }
}

fn pack(step: Step) -> Option<u64> {
    let packed = if is_distance(step) { step / 8 } else { step | BOUNDARY };
    (step != 0 && unpack(packed) == Some(step)).then_some(packed)
}

/// The step of an address that is not the newest of its place, and becomes it. An
/// address in no table is not entered: a table with it may be added at any time.
#[cold]
fn find_older(return_address: u64, cache: &mut StepCache, tables: &FrameTables) -> Step {
    let place = return_address as usize % PLACES;
    let key = key(return_address);
    let older = cache[OLDER][place];
    let (entry, step) = match unpack(older ^ key) {
        Some(step) => (older, step),
        None => {
            let step = tables.step(return_address);
            let Some(packed) = pack(step) else { return step };
            (key ^ packed, step)
        }
    };
    cache[OLDER][place] = cache[NEWEST][place];
    cache[NEWEST][place] = entry;
    step
}

#[cfg(test)]
#[allow(unsafe_code, reason = "adds tables")]
mod tests {
    use proptest::prelude::*;

    use super::super::super::formats::neutral::{self, NO_PLACE, NeutralFrame};
    use super::*;

    /// Return addresses with sizes: three of one place, one too large to be packed,
    /// and two boundaries.
    const FRAMES: [(u64, u32); 6] = [
        (0x7_0001, 16),
        (0x8_0001, 8 * (BOUNDARY as u32 - 1)),
        (0x9_0001, neutral::BOUNDARY),
        (0x7_0002, 8 * BOUNDARY as u32),
        (0x7_0003, neutral::BOUNDARY),
        (0x8_0002, 8),
    ];
    /// In no table, some at the same places.
    const OTHERS: [u64; 8] =
        [0, 1, PACKED, 0x6_0001, 0x7_0004, 0x7_0001 | 1 << 52, u64::MAX, u64::MAX << 11];

    proptest! {
        #[test]
        fn the_cache_agrees_with_the_tables(
            lookups in prop::collection::vec(0..FRAMES.len() + OTHERS.len(), 0..60),
        ) {
            let frame = |(return_address, size): (u64, u32)| NeutralFrame {
                return_address: return_address as usize,
                size,
                place: NO_PLACE,
            };
            let frames = FRAMES.map(frame);
            let tables = FrameTables::new();
            // SAFETY: `frames` has the given length, refers to no places, and outlives
            // `tables`.
            unsafe { tables.add_neutral(frames.as_ptr(), frames.len(), core::ptr::null(), 0) }
                .expect("sound");
            let mut words = vec![0; CACHE_WORDS];
            let cache = cache_in(&mut words).expect("as many words as a cache has");
            for lookup in lookups {
                let known = FRAMES.get(lookup).map(|(return_address, _)| *return_address);
                let address = known.unwrap_or_else(|| OTHERS[lookup - FRAMES.len()]);
                let step = tables.step(address);
                prop_assert_eq!(step != 0, known.is_some());
                let expected = if is_distance(step) { Ok(step) } else { Err(step) };
                prop_assert_eq!(distance_to_caller(address, cache, &tables), expected);
            }
        }

        #[test]
        fn a_packed_step_unpacks_to_itself(step in prop_oneof![0..20_000_u64, any::<u64>()]) {
            let limit = if is_distance(step) { 8 * BOUNDARY } else { BOUNDARY - 1 };
            prop_assert_eq!(pack(step).is_some(), (1..limit).contains(&step));
            if let Some(packed) = pack(step) {
                prop_assert_eq!(unpack(packed), Some(step));
                prop_assert_eq!(packed < BOUNDARY, is_distance(step));
            }
        }
    }
}
