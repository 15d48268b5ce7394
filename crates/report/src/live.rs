//! The objects that are alive, in bounded memory.
//!
//! An object takes 24 bytes. When there are [`MOST`], about half of them are dropped,
//! and the others count for more ([`crate::thinning`]): the estimates stay unbiased,
//! and with millions of objects left their error hardly grows. So a heap of any size
//! can be tracked in about 160 MB, including the growth of the table.

use std::ops::Range;

use heaptap_trace::Source;

use crate::block_counter::Block;
use crate::classes::{CLASS_BITS, NO_CLASS};
use crate::ids::IdMap;
use crate::paths::PathMoves;
use crate::rates::{COUNT_BITS, RatedSamples, Rates};
use crate::thinning::{is_tracked, level_of};

/// The most objects that are tracked: the capacity of a table of 2²¹ slots, or half
/// that of one of 2²², which then purges removed objects without growing.
pub(crate) const MOST: usize = (1 << 21) / 8 * 7;

/// The most samples of a block: 512 GiB at rate 1. The sum over all blocks that can
/// be tracked fits 64 bits.
pub(crate) const MOST_SAMPLES: u64 = (1 << 36) - 1;

const FIELD: u64 = (1 << 48) - 1;

/// A live object.
#[derive(Clone, Copy)]
pub(crate) struct LiveObject {
    /// Microseconds since the trace began: 48 bits; the path's high 16 bits.
    time_path: u64,
    /// Samples: 36 bits, whether it is outside the heap, the class: 9 bits, whether its
    /// trace has ended, whether it is old, the path's low 16 bits.
    samples_path: u64,
}

const OLD: u64 = 1 << 47;
const ENDED: u64 = 1 << 46;
const CLASS_SHIFT: u32 = 46 - CLASS_BITS;
const EXTERNAL: u64 = 1 << (CLASS_SHIFT - 1);
const SAMPLES: u64 = EXTERNAL - 1;
const _: () = assert!(MOST_SAMPLES <= SAMPLES && MOST_SAMPLES < 1 << COUNT_BITS);

impl LiveObject {
    /// An object that was just allocated.
    pub(crate) fn new(time: u64, path: u32, samples: u64, source: Source) -> LiveObject {
        let samples_path = samples.min(SAMPLES) | u64::from(NO_CLASS) << CLASS_SHIFT;
        let mut object = LiveObject { time_path: time.min(FIELD), samples_path };
        object.set_path(path);
        object.samples_path |= match source {
            Source::Minor => 0,
            Source::Major => OLD,
            Source::External => OLD | EXTERNAL,
        };
        object
    }

    pub(crate) fn time(&self) -> u64 {
        self.time_path & FIELD
    }

    pub(crate) fn samples(&self) -> u64 {
        self.samples_path & SAMPLES
    }

    pub(crate) fn class(&self) -> u16 {
        (self.samples_path >> CLASS_SHIFT) as u16 & NO_CLASS
    }

    /// The same object, of this class.
    pub(crate) fn of_class(mut self, class: u16) -> LiveObject {
        self.samples_path &= !(u64::from(NO_CLASS) << CLASS_SHIFT);
        self.samples_path |= u64::from(class) << CLASS_SHIFT;
        self
    }

    pub(crate) fn path(&self) -> u32 {
        ((self.time_path >> 48 << 16) | (self.samples_path >> 48)) as u32
    }

    pub(crate) fn set_path(&mut self, path: u32) {
        let path = u64::from(path);
        self.time_path = self.time_path & FIELD | path >> 16 << 48;
        self.samples_path = self.samples_path & FIELD | (path & 0xffff) << 48;
    }

    pub(crate) fn is_old(&self) -> bool {
        self.samples_path & OLD != 0
    }

    /// Whether its trace has ended: it is kept, but not alive any more.
    fn is_ended(&self) -> bool {
        self.samples_path & ENDED != 0
    }

    /// Records the promotion; false if it was old before.
    pub(crate) fn promote(&mut self) -> bool {
        let first = !self.is_old();
        self.samples_path |= OLD;
        first
    }
}

/// The live objects by id.
pub(crate) struct LiveObjects {
    objects: IdMap<LiveObject>,
    most: usize,
    level: u32,
    rates: Rates,
    /// The numbers of the rates at which objects were sampled, if the trace has several.
    rate_numbers: IdMap<u32>,
}

impl LiveObjects {
    pub(crate) fn new(most: usize, rates: Rates) -> Self {
        let rate_numbers = IdMap::default();
        LiveObjects { objects: IdMap::default(), most, level: 0, rates, rate_numbers }
    }

    /// One in 2^level objects with one sample is tracked, and more of larger ones.
    pub(crate) fn level(&self) -> u32 {
        self.level
    }

    /// Whether the object is one of those that are tracked.
    #[inline]
    pub(crate) fn is_tracked(&self, id: u64, samples: RatedSamples) -> bool {
        is_tracked(id, self.rates.thinning_size(samples), self.level)
    }

    /// Adds an object that is tracked, and was sampled at the rate with this number. Returns the
    /// block of another object of this id, which only a damaged trace has.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64, object: LiveObject, rate: u32) -> Option<Block> {
        let other = self.objects.insert(id, object).map(|other| self.block(id, other));
        if self.rates.are_several() {
            self.rate_numbers.insert(id, rate);
        }
        other
    }

    /// The samples of an object.
    #[inline]
    fn rated(&self, id: u64, object: LiveObject) -> RatedSamples {
        RatedSamples::new(object.samples(), number_of(&self.rates, &self.rate_numbers, id))
    }

    pub(crate) fn is_full(&self) -> bool {
        self.objects.len() >= self.most
    }

    /// Drops half of the objects that are tracked.
    pub(crate) fn thin(&mut self) {
        self.level += 1;
        let level = self.level;
        let (rates, numbers) = (&self.rates, &self.rate_numbers);
        self.objects.retain(|&id, object| {
            let samples = RatedSamples::new(object.samples(), number_of(rates, numbers, id));
            is_tracked(id, rates.thinning_size(samples), level)
        });
        self.rate_numbers.retain(|id, _| self.objects.contains_key(id));
    }

    pub(crate) fn get_mut(&mut self, id: u64) -> Option<&mut LiveObject> {
        self.objects.get_mut(&id)
    }

    #[inline]
    pub(crate) fn remove(&mut self, id: u64) -> Option<Block> {
        let object = self.objects.remove(&id)?;
        let block = self.block(id, object);
        if self.rates.are_several() {
            self.rate_numbers.remove(&id);
        }
        Some(block)
    }

    /// A live object as it counts.
    pub(crate) fn block(&self, id: u64, object: LiveObject) -> Block {
        let rated = self.rated(id, object);
        Block {
            id,
            path: object.path(),
            samples: rated.count(),
            weight: self.rates.weight(rated.rate()),
            // Each of its samples counts 2^level times.
            level: level_of(self.rates.thinning_size(rated), self.level),
            birth: object.time(),
            old: object.is_old(),
            external: object.samples_path & EXTERNAL != 0,
            ended: object.is_ended(),
            class: object.class(),
        }
    }

    /// Ends the objects of a trace, and returns them as they were. They are removed, or
    /// kept and marked.
    pub(crate) fn end(&mut self, ids: &Range<u64>, keep: bool) -> Vec<Block> {
        let ended: Vec<(u64, LiveObject)> = if keep {
            let of_trace =
                |(id, object): &(&u64, &mut LiveObject)| ids.contains(*id) && !object.is_ended();
            let mark = |(&id, object): (&u64, &mut LiveObject)| {
                let before = *object;
                object.samples_path |= ENDED;
                (id, before)
            };
            self.objects.iter_mut().filter(of_trace).map(mark).collect()
        } else {
            self.objects.extract_if(|id, _| ids.contains(id)).collect()
        };
        let blocks = ended.into_iter().map(|(id, object)| self.block(id, object)).collect();
        if !keep {
            self.rate_numbers.retain(|id, _| !ids.contains(id));
        }
        blocks
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Block> {
        self.objects.iter().map(|(&id, &object)| self.block(id, object))
    }

    /// Renumbers paths.
    pub(crate) fn move_paths(&mut self, moves: &PathMoves) {
        for object in self.objects.values_mut() {
            object.set_path(moves.to[object.path() as usize]);
        }
    }
}

/// The number of the rate at which an object was sampled. With one rate there are no numbers.
#[inline]
fn number_of(rates: &Rates, numbers: &IdMap<u32>, id: u64) -> u32 {
    match rates.are_several() {
        true => numbers.get(&id).copied().unwrap_or(0),
        false => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_disturb_each_other() {
        assert_eq!(size_of::<(u64, LiveObject)>(), 24);
        for path in [0, 1, 0xffff, 0x1_0000, u32::MAX] {
            let mut object = LiveObject::new(FIELD - 1, 7, SAMPLES - 1, Source::Minor);
            assert!(object.promote() && !object.promote());
            object.set_path(path);
            let found = (object.time(), object.samples(), object.path());
            assert_eq!(found, (FIELD - 1, SAMPLES - 1, path));
            assert_eq!(object.class(), NO_CLASS);
            for class in [0, 1, NO_CLASS - 1] {
                object = object.of_class(class);
                assert_eq!((object.class(), object.samples()), (class, SAMPLES - 1));
            }
            assert!(!object.is_ended());
            assert!(!object.promote());
        }
    }

    #[test]
    fn objects_of_a_trace_that_ends_are_removed_or_marked() {
        let mut live = LiveObjects::new(100, Rates::default());
        for id in 0..30 {
            let source = [Source::External, Source::Minor][id as usize % 2];
            live.insert(id, LiveObject::new(id, 7, 2, source), 0);
        }
        let ids = |ended: Vec<Block>| {
            let mut ids: Vec<u64> = ended.iter().map(|block| block.id).collect();
            ids.sort_unstable();
            ids
        };
        assert_eq!(ids(live.end(&(0..10), false)), (0..10).collect::<Vec<_>>());
        assert_eq!(live.iter().count(), 20);
        let marked = live.end(&(10..20), true);
        assert!(marked.iter().all(|block| !block.ended && block.birth == block.id));
        assert_eq!(ids(marked), (10..20).collect::<Vec<_>>());
        assert_eq!(live.iter().filter(|block| block.ended).count(), 10);
        assert!(live.iter().all(|block| {
            let is_even = block.id % 2 == 0;
            let marks = (block.old, block.external);
            (block.samples, block.path, marks) == (2, 7, (is_even, is_even))
        }));
        assert!(live.end(&(10..20), true).is_empty(), "it ended before");
    }

    #[test]
    fn each_thinning_keeps_about_half() {
        let mut live = LiveObjects::new(10_000, Rates::default());
        for id in 0..10_000 {
            assert!(live.insert(id, LiveObject::new(0, 0, 1, Source::Minor), 0).is_none());
        }
        assert!(live.is_full());
        for level in 1..5 {
            live.thin();
            let (kept, expected) = (live.objects.len() as f64, 10_000.0 / f64::from(1 << level));
            // Five standard deviations.
            assert!((kept - expected).abs() < 5.0 * expected.sqrt(), "{kept} at level {level}");
            assert!(live.iter().all(|block| live.is_tracked(block.id, RatedSamples::new(1, 0))));
            assert!(live.is_tracked(u64::MAX, RatedSamples::new(1 << level, 0)));
        }
    }
}
