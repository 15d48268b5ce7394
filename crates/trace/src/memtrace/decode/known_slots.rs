//! Backtraces after a loss.
//!
//! The cache is never reset within a trace, so after a damaged packet every slot
//! and every prediction is unknown. What the file states from then on is known
//! again: a miss states a slot's code, a named slot the prediction of the one
//! before it, a packet's cache check both. Only frames that follow from known
//! slots are returned. The others become [`LOST_FRAME`]: a backtrace may be
//! incomplete, but is never wrong.

use crate::memtrace::cache::{Cache, Slot, index};
use crate::memtrace::decode::entry::{Entry, EntryFault, miss_code};
use crate::memtrace::decode::frames::NewFrames;
use crate::memtrace::header::CacheCheck;
use crate::memtrace::rules::{MAX_ENTRY, SLOTS};
use crate::model::event::{Code, LOST_FRAME};

/// Which parts of the cache are known.
pub(crate) struct KnownSlots {
    codes: Bits,
    predictions: Bits,
}

impl KnownSlots {
    pub(crate) fn new() -> Box<Self> {
        Box::new(KnownSlots { codes: Bits::none(), predictions: Bits::none() })
    }

    /// Adds a packet's cache check; false if it contradicts what is known.
    pub(crate) fn learn(&mut self, cache: &mut Cache, check: CacheCheck) -> bool {
        let at = index(check.slot);
        let code_holds = !self.codes.has(check.slot) || cache.codes[at] == check.code;
        let prediction_holds =
            !self.predictions.has(check.slot) || cache.predictions[at] == check.prediction;
        cache.codes[at] = check.code;
        cache.predictions[at] = check.prediction;
        if check.code != 0 {
            self.codes.add(check.slot);
        }
        self.predictions.add(check.slot);
        code_holds && prediction_holds
    }

    /// Adds the frames of the entries at `at` to `new`, lost ones where they are
    /// unknown, and the codes that are written out to `stated`.
    #[cold]
    #[inline(never)]
    pub(crate) fn walk(
        &mut self,
        cache: &mut Cache,
        bytes: &[u8],
        at: &mut usize,
        entries: u16,
        new: &mut NewFrames,
        stated: &mut Vec<Code>,
    ) -> Result<(), EntryFault> {
        let mut before: Option<Slot> = Some(0);
        for _ in 0..entries {
            let entry = Entry::read(bytes, *at).ok_or(EntryFault::Overrun)?;
            let slot = entry.slot();
            self.set_prediction(cache, before, slot);
            before = Some(slot);
            if entry.is_miss() {
                let code = miss_code(bytes, *at).ok_or(EntryFault::Overrun)?;
                cache.codes[index(slot)] = code;
                self.codes.add(slot);
                new.push(code)?;
                stated.push(code);
                *at += MAX_ENTRY;
                continue;
            }
            new.push(self.frame(cache, before))?;
            for _ in 0..entry.predicted() {
                before = before
                    .filter(|&slot| self.predictions.has(slot))
                    .map(|slot| cache.predictions[index(slot)]);
                new.push(self.frame(cache, before))?;
            }
            *at += entry.hit_size();
        }
        Ok(())
    }

    /// The prediction of an unknown slot changes: it may be any of them.
    fn set_prediction(&mut self, cache: &mut Cache, of: Option<Slot>, to: Slot) {
        match of {
            Some(slot) => {
                cache.predictions[index(slot)] = to;
                self.predictions.add(slot);
            }
            None => self.predictions = Bits::none(),
        }
    }

    fn frame(&self, cache: &Cache, slot: Option<Slot>) -> Code {
        match slot {
            Some(slot) if self.codes.has(slot) => cache.codes[index(slot)],
            _ => LOST_FRAME,
        }
    }
}

/// A set of slots.
struct Bits([u64; SLOTS / 64]);

impl Bits {
    fn none() -> Self {
        Bits([0; SLOTS / 64])
    }

    fn has(&self, slot: Slot) -> bool {
        let at = index(slot);
        self.0[at / 64] >> (at % 64) & 1 == 1
    }

    fn add(&mut self, slot: Slot) {
        let at = index(slot);
        self.0[at / 64] |= 1 << (at % 64);
    }
}
