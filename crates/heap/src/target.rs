//! How a pointer's target is predicted, in step on both sides.
//!
//! A target is coded as its distance to the nearest of three addresses: the
//! block itself, the target before, and the last target of the same pointer of a
//! block of the same shape. The distance is a class, which is a symbol, and the bits that the class
//! leaves open. Targets that come again and again are found in a small cache.

use heaptap_codec::varint::{fold, unfold};

/// Distances below this have a class of their own.
const EXACT: u64 = 16;
/// From there on a class is the top bit's position and the bit below it.
const EXACT_BITS: u32 = 4;
/// The classes of distances below 2^32.
const CLASSES: u8 = EXACT as u8 + 2 * (32 - EXACT_BITS as u8);

/// As far from the block as the last time.
const SAME_DISTANCE: u8 = 3 * CLASSES;
/// In the cache, at the index that follows.
const CACHED: u8 = SAME_DISTANCE + 1;
/// Too far for a class: the distance to the block follows as a number.
pub(crate) const FAR: u8 = CACHED + 1;

const CACHE_BITS: u32 = 10;
/// How many words a symbol of the cache must save to be taken: its index has 10 bits.
const CACHE_WORTH: u32 = CACHE_BITS + 1;

/// The pointers of a shape that are told apart; the rest share the last one.
pub(crate) const ORDINALS: usize = 24;

/// Which pointer is coded: its block's shape, its number among the block's pointers, and the
/// block's address in words.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PointerSlot {
    pub(crate) shape: u8,
    pub(crate) ordinal: usize,
    pub(crate) own: u64,
}

/// A target: a symbol and further bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Coded {
    pub(crate) symbol: u8,
    pub(crate) bits: u64,
    pub(crate) width: u32,
}

/// What the last such pointer was. All zeros is valid.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct LastPointer {
    target: u64,
    /// To its block.
    distance: u64,
}

/// The targets before. All zeros is valid.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Targets {
    before: u64,
    last: [[LastPointer; ORDINALS]; 256],
    cache: [u64; 1 << CACHE_BITS],
}

fn class(folded: u64) -> Option<Coded> {
    if folded < EXACT {
        return Some(Coded { symbol: folded as u8, bits: 0, width: 0 });
    }
    let top = folded.ilog2();
    if top >= 32 {
        return None;
    }
    let below = (folded >> (top - 1)) as u8 & 1;
    let symbol = EXACT as u8 + 2 * (top - EXACT_BITS) as u8 + below;
    Some(Coded { symbol, bits: folded & ((1 << (top - 1)) - 1), width: top - 1 })
}

/// The number of bits that follow a symbol.
pub(crate) fn width(symbol: u8) -> u32 {
    match symbol {
        CACHED => CACHE_BITS,
        SAME_DISTANCE.. => 0,
        symbol => {
            let class = symbol % CLASSES;
            if class < EXACT as u8 {
                0
            } else {
                u32::from(class - EXACT as u8) / 2 + EXACT_BITS - 1
            }
        }
    }
}

/// The folded distance of a class.
fn distance(class: u8, bits: u64) -> u64 {
    if class < EXACT as u8 {
        return u64::from(class);
    }
    let rest = class - EXACT as u8;
    let width = u32::from(rest) / 2 + EXACT_BITS - 1;
    (2 | u64::from(rest & 1)) << width | bits
}

fn cache_index(target: u64) -> usize {
    (target.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - CACHE_BITS)) as usize
}

impl Targets {
    pub(crate) const EMPTY: Targets = Targets {
        before: 0,
        last: [[LastPointer { target: 0, distance: 0 }; ORDINALS]; 256],
        cache: [0; 1 << CACHE_BITS],
    };

    pub(crate) fn clear(&mut self) {
        self.before = 0;
        self.last.as_flattened_mut().fill(LastPointer { target: 0, distance: 0 });
        self.cache.fill(0);
    }

    fn last(&mut self, slot: PointerSlot) -> Option<&mut LastPointer> {
        self.last.get_mut(usize::from(slot.shape))?.get_mut(slot.ordinal.min(ORDINALS - 1))
    }

    /// How the target of a block's pointer is coded. All are numbers of words.
    #[inline]
    pub(crate) fn code(&mut self, slot: PointerSlot, target: u64) -> Coded {
        let far = Coded { symbol: FAR, bits: 0, width: 0 };
        let before = self.before;
        let Some(last) = self.last(slot) else { return far };
        let from_own = target.wrapping_sub(slot.own);
        let from_last = fold(target.wrapping_sub(last.target));
        let is_same_distance = from_own == last.distance;
        *last = LastPointer { target, distance: from_own };
        self.before = target;
        let index = cache_index(target);
        let cached = self.cache.get_mut(index).map(|slot| std::mem::replace(slot, target));
        if from_last == 0 {
            return Coded { symbol: 2 * CLASSES, bits: 0, width: 0 };
        }
        if is_same_distance {
            return Coded { symbol: SAME_DISTANCE, bits: 0, width: 0 };
        }
        let from_own = fold(from_own);
        let from_before = fold(target.wrapping_sub(before));
        let (mode, nearest) = if from_own <= from_before && from_own <= from_last {
            (0, from_own)
        } else if from_last <= from_before {
            (2, from_last)
        } else {
            (1, from_before)
        };
        let near = class(nearest);
        if cached == Some(target) && near.is_none_or(|near| near.width >= CACHE_WORTH) {
            return Coded { symbol: CACHED, bits: index as u64, width: CACHE_BITS };
        }
        near.map_or(far, |near| Coded { symbol: near.symbol + mode * CLASSES, ..near })
    }

    /// The target of a block's pointer. `far` is the distance to the block that follows [`FAR`].
    #[inline]
    pub(crate) fn resolve(&mut self, slot: PointerSlot, coded: Coded, far: u64) -> Option<u64> {
        let before = self.before;
        let own = slot.own;
        let last = self.last(slot)?;
        let away =
            |from: u64| from.wrapping_add(unfold(distance(coded.symbol % CLASSES, coded.bits)));
        let target = match coded.symbol {
            SAME_DISTANCE => own.wrapping_add(last.distance),
            CACHED => *self.cache.get(coded.bits as usize)?,
            FAR => own.wrapping_add(far),
            symbol => match symbol / CLASSES {
                0 => away(own),
                1 => away(before),
                2 => away(last.target),
                _ => return None,
            },
        };
        *self.last(slot)? = LastPointer { target, distance: target.wrapping_sub(own) };
        self.before = target;
        *self.cache.get_mut(cache_index(target))? = target;
        Some(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_cover_every_distance() {
        let mut folded: Vec<u64> = (0..70_000).collect();
        folded.extend((16..32).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + 77]));
        folded.push((1 << 32) - 1);
        for folded in folded {
            let coded = class(folded).unwrap();
            assert!(coded.symbol < CLASSES && coded.bits >> coded.width == 0);
            assert_eq!(width(coded.symbol), coded.width, "{folded}");
            assert_eq!(distance(coded.symbol, coded.bits), folded);
        }
        assert_eq!(class(1 << 32), None);
        assert!(u32::from(FAR) < 256 && width(CACHED) == CACHE_BITS && width(FAR) == 0);
    }

    #[test]
    fn both_sides_stay_in_step() {
        let (mut one, mut other) = (Box::new(Targets::EMPTY), Box::new(Targets::EMPTY));
        let mut seed = 1u64;
        let mut symbols = [0u32; 256];
        for number in 0..200_000u64 {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let own = number * 3;
            let target = match seed >> 61 {
                0 => seed >> 3,
                1 => (seed >> 40) & 0xff,
                2 | 3 => own + (seed >> 40 & 7),
                4 => own - 1.min(own),
                _ => (seed >> 20) & 0xffff_ffff & !(0xfff << (seed >> 56 & 15)),
            };
            let (shape, ordinal) = ((seed >> 50) as u8 & 3, (seed >> 53) as usize & 31);
            let slot = PointerSlot { shape, ordinal, own };
            let coded = one.code(slot, target);
            let far = target.wrapping_sub(own);
            assert_eq!(width(coded.symbol), coded.width);
            assert_eq!(other.resolve(slot, coded, far), Some(target));
            symbols[usize::from(coded.symbol)] += 1;
        }
        assert!(symbols[usize::from(CACHED)] > 100 && symbols[usize::from(FAR)] > 100);
        assert!(symbols[usize::from(SAME_DISTANCE)] > 100);
    }
}
