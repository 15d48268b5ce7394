//! Walks of stacks that the mutator has left: of a suspended fiber, or of a thread that
//! does not run. When the mutator returns to such a stack, most of it is as it was.
//!
//! A stack is recognised by its *base*, the address of the outermost frame in the
//! innermost chunk. Each walk is compared with the one, of the last walk and the parked
//! ones, whose base is nearest above its stack pointer. A wrong choice costs only time:
//! every frame that is kept is verified, whichever walk it comes from.
//!
//! The last walk is parked when the next one is in a chunk with another base, if enough
//! frames would be forgotten otherwise. Nobody reports that a stack has ended, so once all
//! slots are in use, the walk that was parked first makes room. It does so only one time in
//! [`PATIENCE`]: if more stacks take turns than there are slots, most of the parked walks
//! stay until it is their turn (bimodal insertion; Qureshi et al., ISCA 2007).
//!
//! Storage is allocated when a walk is parked for the first time, so programs with one
//! stack pay nothing. It has room for fewer frames than the walker allows
//! ([`MAX_PARKED_FRAMES`]): a deeper stack is remembered in the walker's first storage,
//! of which there is one.

use core::mem::swap;

use super::last_walk::{INDIRECT, LastWalk};
use super::new_frames::NewFrames;
use super::{End, MARKERS};
use crate::SMALL_LIMITS;

/// The most parked walks. With the last walk, this many stacks and one can take turns.
const PARKED: usize = if SMALL_LIMITS { 3 } else { 7 };

/// The most frames of a walk in storage that is allocated here.
const MAX_PARKED_FRAMES: usize = if SMALL_LIMITS { 100 } else { 16_384 };

/// The most links of such a walk.
const MAX_PARKED_LINKS: usize = MAX_PARKED_FRAMES / 8 + 64;

/// Fewer frames are walked anew, which takes no longer than a change of walks.
pub(super) const WORTH_PARKING: usize = if SMALL_LIMITS { 6 } else { 64 };

/// Frames that are copied in the time that it takes to walk one.
const COPIED_PER_WALKED: usize = 8;

/// Once all slots are in use, one of this many walks is parked.
const PATIENCE: u64 = 8;

/// The walks that are parked.
pub(super) struct ParkedWalks<S> {
    /// Allocates this many words, with any contents.
    storage: fn(usize) -> Option<S>,
    /// `None` until a walk is parked there.
    walks: [Option<LastWalk<S>>; PARKED],
    /// The base of each walk; 0 if it is not in use.
    bases: [u64; PARKED],
    /// The time, by `clock`, at which each walk was parked.
    parked_at: [u64; PARKED],
    /// Where the walk before this one is, if it was exchanged for a parked one.
    before: Option<usize>,
    /// How often walks were exchanged so far.
    clock: u64,
    /// How many walks were to be parked while all slots were in use.
    waited: u64,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>> ParkedWalks<S> {
    pub(super) fn new(storage: fn(usize) -> Option<S>) -> Self {
        let walks = [const { None }; PARKED];
        Self {
            storage,
            walks,
            bases: [0; PARKED],
            parked_at: [0; PARKED],
            before: None,
            clock: 0,
            waited: 0,
        }
    }

    /// Whether no walk was ever parked.
    #[inline]
    pub(super) fn is_unused(&self) -> bool {
        self.clock == 0
    }

    /// The frame tables have changed: no parked walk may be used again.
    pub(super) fn forget(&mut self) {
        self.bases = [0; PARKED];
    }

    /// Exchanges the last walk for the parked one that is probably of the stack at this
    /// address, unless the last walk is the better choice.
    #[inline(never)]
    pub(super) fn change_stack(&mut self, last: &mut LastWalk<S>, address: u64) {
        let distance = |base: u64| if base == 0 { u64::MAX } else { base.wrapping_sub(address) };
        let (last_base, bases) = (last.base(), self.bases);
        let nearest = (0..PARKED).min_by_key(|&slot| distance(bases[slot]));
        self.before = nearest.filter(|&slot| distance(bases[slot]) < distance(last_base));
        if let Some(slot) = self.before {
            self.exchange(slot, last, last_base);
        }
    }

    /// Whether the last walk was exchanged before this one.
    #[inline]
    pub(super) fn have_changed_stack(&self) -> bool {
        self.before.is_some()
    }

    /// Moves the last walk to this slot, and the walk there to its place.
    fn exchange(&mut self, slot: usize, last: &mut LastWalk<S>, base: u64) {
        let Some(Some(walk)) = self.walks.get_mut(slot) else { return };
        swap(walk, last);
        self.clock += 1;
        (self.bases[slot], self.parked_at[slot]) = (base, self.clock);
    }

    /// How many codes a walk with `new` inside of the `kept` outermost frames of `last`
    /// shares with the walk before it, which was parked for `last`.
    #[cold]
    #[inline(never)]
    pub(super) fn shared_codes(
        &self,
        last: &LastWalk<S>,
        new: &NewFrames<S>,
        kept: usize,
    ) -> usize {
        let Some(Some(before)) = self.before.and_then(|slot| self.walks.get(slot)) else {
            return 0;
        };
        let codes = before.codes_of(0..kept.min(before.code_count));
        let pairs = codes.iter().zip(last.codes_of(0..kept));
        let shared = pairs.take_while(|(before, kept)| before == kept).count();
        if shared < kept { shared } else { before.shared_codes(new, kept) }
    }

    /// To be called before `new` is committed inside of the `kept` outermost frames of the
    /// last walk. Parks the last walk if that is worth it, or if the new one needs more
    /// room; then `last` is another storage, which has a copy of the `kept` frames.
    #[inline]
    pub(super) fn make_room(&mut self, last: &mut LastWalk<S>, new: &NewFrames<S>, kept: usize) {
        let is_full = || !last.has_room_for(kept + new.count, last.links.len() + new.links.len());
        if last.loses_its_base(kept) || !self.is_unused() && is_full() {
            self.park(last, new, kept);
        }
    }

    #[cold]
    #[inline(never)]
    fn park(&mut self, last: &mut LastWalk<S>, new: &NewFrames<S>, kept: usize) {
        let frames = kept + new.count;
        let links = last.links_of(kept) + new.links.len();
        let mut base = last.base_if_worth_parking(new, kept);
        if base != 0 && !self.bases.contains(&0) {
            self.waited += 1;
            base = if self.waited.is_multiple_of(PATIENCE) { base } else { 0 };
        }
        if base == 0 && last.has_room_for(frames, links) {
            return;
        }
        if base != 0 {
            self.allocate();
        }
        let in_use = |slot: usize| (self.bases[slot] != 0, self.parked_at[slot]);
        let slot = (0..PARKED)
            .filter_map(|slot| self.walks[slot].as_ref().map(|walk| (slot, walk)))
            .filter(|(_, walk)| walk.has_room_for(frames, 0))
            .min_by_key(|&(slot, walk)| (!walk.has_room_for(frames, links), in_use(slot)))
            .map(|(slot, _)| slot);
        let Some(slot) = slot else { return };
        if let Some(walk) = &mut self.walks[slot] {
            walk.copy_outermost(last, kept);
            self.exchange(slot, last, base);
        }
    }

    /// Allocates storage for one more walk, if there is a slot without.
    fn allocate(&mut self) {
        if let Some(slot) = self.walks.iter_mut().find(|slot| slot.is_none()) {
            let enough =
                |words| (self.storage)(words).filter(|storage| storage.as_ref().len() >= words);
            *slot = LastWalk::new(MAX_PARKED_FRAMES, MAX_PARKED_LINKS, &mut { enough });
        }
    }
}

/// What parking needs to know of a walk.
impl<S: AsMut<[u64]> + AsRef<[u64]>> LastWalk<S> {
    /// The base of this walk's stack; 0 if it is not known.
    fn base(&self) -> u64 {
        if self.end == End::Cut { 0 } else { self.base_of(self.frames) }
    }

    /// The address of the outermost frame in the innermost chunk of the `frames` outermost
    /// ones; 0 if there are none.
    fn base_of(&self, frames: usize) -> u64 {
        let links = self.links_of(frames);
        let outermost = self.links.before(links).map_or(0, |link| link.frames);
        if frames == 0 { 0 } else { self.witness(outermost) & !INDIRECT }
    }

    /// How many links the `frames` outermost frames have outside of the innermost of them.
    fn links_of(&self, frames: usize) -> usize {
        frames.checked_sub(1).map_or(0, |innermost| self.links_up_to(innermost))
    }

    fn has_room_for(&self, frames: usize, links: usize) -> bool {
        frames <= self.witnesses.as_ref().len() && links <= self.links.capacity()
    }

    /// Whether a walk that keeps the `kept` outermost frames only may have another base,
    /// and many frames would be forgotten.
    #[inline]
    fn loses_its_base(&self, kept: usize) -> bool {
        self.frames >= kept + WORTH_PARKING
            && kept <= self.links.last().map_or(0, |link| link.frames)
    }

    /// The base of this walk, if a walk with `new` inside of the `kept` outermost frames
    /// is of another stack and this one is worth being copied; otherwise 0.
    fn base_if_worth_parking(&self, new: &NewFrames<S>, kept: usize) -> u64 {
        let lost = self.frames.saturating_sub(kept);
        if lost < WORTH_PARKING || lost < kept / COPIED_PER_WALKED {
            return 0;
        }
        let new_base = new.base().unwrap_or_else(|| self.base_of(kept));
        let base = self.base();
        if new_base == 0 || new_base == base { 0 } else { base }
    }

    /// Becomes the `kept` outermost frames of another walk, for which there is room.
    fn copy_outermost(&mut self, other: &Self, kept: usize) {
        (self.frames, self.code_count) = (kept, kept);
        let codes = MARKERS..MARKERS + kept;
        if let (Some(to), Some(from)) =
            (self.witnesses.as_mut().get_mut(..kept), other.witnesses.as_ref().get(..kept))
        {
            to.copy_from_slice(from);
        }
        if let (Some(to), Some(from)) =
            (self.codes.as_mut().get_mut(codes.clone()), other.codes.as_ref().get(codes))
        {
            to.copy_from_slice(from);
        }
        self.links.copy_first(&other.links, other.links_of(kept));
        let streaks = other.streaks.iter().take_while(|streak| streak.outer < kept).count();
        self.streaks.copy_first(&other.streaks, streaks);
        self.enter_in_index(0);
    }
}
