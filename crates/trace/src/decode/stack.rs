//! One domain's backtraces: the cache of codes, and the last backtrace.
//!
//! [`Walk::follow`] is the decoder's innermost loop. An entry names a slot and how
//! many predictions to follow from there; the chain `slot → prediction → …` is
//! the only dependency between frames, and the codes are fetched beside it.

use crate::cache::{Cache, Slot, index};
use crate::decode::doubt::Doubt;
use crate::decode::entry::{ENTRY_FRAMES, Entry, EntryFault, miss_code};
use crate::decode::frames::{FrameBudget, NewFrames, Padded};
use crate::event::{Backtrace, Code, LOST_FRAME};
use crate::header::CacheCheck;
use crate::rules::{MAX_ENTRY, SLOTS};

/// One domain's cache and last backtrace.
pub(crate) struct Stack {
    cache: Cache,
    doubt: Option<Box<Doubt>>,
    /// `frames[..depth]` is the last backtrace handed out, the rest is room.
    frames: Vec<Code>,
    depth: usize,
}

impl Stack {
    pub(crate) fn new() -> Self {
        Stack { cache: Cache::new(), doubt: None, frames: Vec::new(), depth: 0 }
    }

    /// Whether a packet was lost and the cache is only partly known since.
    #[inline(always)]
    pub(crate) fn in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Whether slot 0 holds a code, which every slot predicts that nothing has
    /// followed yet. Other empty slots are found where an entry names them.
    #[inline(always)]
    pub(crate) fn first_slot_filled(&self) -> bool {
        self.cache.codes[0] != 0
    }

    /// Forgets what a lost packet may have changed.
    pub(crate) fn lose(&mut self) {
        self.doubt = Some(Doubt::new());
        self.depth = 0;
    }

    /// Compares a packet's cache check with the cache.
    pub(crate) fn check(&mut self, check: CacheCheck) -> bool {
        match &mut self.doubt {
            Some(doubt) => doubt.learn(&mut self.cache, check),
            None => self.cache.check(check.slot) == check,
        }
    }

    /// Follows the entries at `at` and appends their frames to `new`. Says
    /// whether codes were stated in full.
    #[inline(always)]
    pub(crate) fn follow(
        &mut self,
        bytes: &[u8],
        at: &mut usize,
        entries: u16,
        new: &mut NewFrames,
    ) -> Result<bool, EntryFault> {
        if let Some(doubt) = &mut self.doubt {
            return doubt.follow(&mut self.cache, bytes, at, entries, new);
        }
        let mut walk = Walk { at: *at, left: entries, slot: 0, missed: false };
        loop {
            let room = new.room();
            let (codes, predictions) = (&mut *self.cache.codes, &mut *self.cache.predictions);
            let used = walk.follow(bytes, codes, predictions, room)?;
            new.len += used;
            if walk.left == 0 {
                break;
            }
            new.grow()?;
        }
        *at = walk.at;
        Ok(walk.missed)
    }

    /// Puts the next backtrace together: `prefix` frames of the last one and
    /// the new ones. `budget` is what all domains together may keep.
    #[inline(always)]
    pub(crate) fn advance<'a>(
        &'a mut self,
        prefix: u32,
        new: Padded<'a>,
        budget: &mut FrameBudget,
    ) -> Backtrace<'a> {
        let shared = prefix as usize;
        if shared > self.depth || !new.copy_to(self.frames.get_mut(shared..).unwrap_or(&mut [])) {
            self.advance_slowly(shared, new.frames(), budget);
        } else {
            self.depth = shared + new.count;
        }
        let frames = self.frames.get(..self.depth).unwrap_or(&[]);
        Backtrace { frames, common_prefix: u64::from(prefix), new: new.frames() }
    }

    #[cold]
    fn advance_slowly(&mut self, shared: usize, new: &[Code], budget: &mut FrameBudget) {
        if shared > self.depth {
            // The last backtrace was cut short, by its writer or by our limit:
            // what we have of it is all there is of this one. Unless it is
            // only unknown, and not so deep that a few bytes fill the memory.
            let unknown = if self.doubt.is_some() { shared.min(MAX_UNKNOWN) } else { 0 };
            self.lengthen(unknown, budget);
        }
        if shared > self.depth {
            return;
        }
        let granted = budget.grow(&mut self.frames, shared + new.len());
        let kept = granted.saturating_sub(shared).min(new.len());
        let room = self.frames.get_mut(shared..shared + kept);
        if let (Some(room), Some(new)) = (room, new.get(..kept)) {
            room.copy_from_slice(new);
        }
        self.depth = shared + kept;
    }

    /// Makes the last backtrace `depth` frames deep, with lost ones.
    fn lengthen(&mut self, depth: usize, budget: &mut FrameBudget) {
        let granted = budget.grow(&mut self.frames, depth);
        if let Some(unknown) = self.frames.get_mut(self.depth..granted) {
            unknown.fill(LOST_FRAME);
            self.depth = granted;
        }
    }
}

/// No more frames than this are taken for lost only because a common prefix
/// claims them: a few bytes can claim any number.
const MAX_UNKNOWN: usize = 1 << 15;

/// The way through one backtrace's entries.
struct Walk {
    at: usize,
    /// Entries left.
    left: u16,
    /// The slot of the last frame.
    slot: Slot,
    /// Some entry was a miss.
    missed: bool,
}

impl Walk {
    /// Follows entries until none is left or the room may not suffice for one
    /// more. Returns how many frames it wrote.
    #[inline(always)]
    fn follow(
        &mut self,
        bytes: &[u8],
        codes: &mut [Code; SLOTS],
        predictions: &mut [Slot; SLOTS],
        room: &mut [Code],
    ) -> Result<usize, EntryFault> {
        let mut used = 0;
        while self.left > 0 {
            let Some(frames) = room.get_mut(used..).and_then(|room| room.first_chunk_mut()) else {
                break;
            };
            let entry = Entry::read(bytes, self.at).ok_or(EntryFault::Overrun)?;
            let first = entry.slot();
            predictions[index(self.slot)] = first;
            if entry.is_miss() {
                let code = miss_code(bytes, self.at).ok_or(EntryFault::Overrun)?;
                codes[index(first)] = code;
                frames[0] = code;
                used += 1;
                self.slot = first;
                self.missed = true;
                self.at += MAX_ENTRY;
            } else {
                if codes[index(first)] == 0 {
                    return Err(EntryFault::EmptySlot);
                }
                self.slot = chain(codes, predictions, first, entry.predicted(), frames);
                used += 1 + usize::from(entry.predicted());
                self.at += entry.hit_size();
            }
            self.left -= 1;
        }
        Ok(used)
    }
}

/// Writes the code in `slot` and those in the `predicted` slots that follow
/// it; returns the last one's slot.
///
/// The first four are written in any case and the last slot is selected
/// without a branch: nine entries in ten stand for no more, and a loop for so
/// few would mispredict its end.
#[inline(always)]
fn chain(
    codes: &[Code; SLOTS],
    predictions: &[Slot; SLOTS],
    slot: Slot,
    predicted: u8,
    room: &mut [Code; ENTRY_FRAMES],
) -> Slot {
    let first = index(slot);
    let second = index(predictions[first]);
    let third = index(predictions[second]);
    let fourth = index(predictions[third]);
    room[0] = codes[first];
    room[1] = codes[second];
    room[2] = codes[third];
    room[3] = codes[fourth];
    if predicted < 4 {
        let near = if predicted & 1 == 0 { first } else { second };
        let far = if predicted & 1 == 0 { third } else { fourth };
        return if predicted < 2 { near as Slot } else { far as Slot };
    }
    let mut slot = fourth;
    for frame in &mut room[4..=usize::from(predicted)] {
        slot = index(predictions[slot]);
        *frame = codes[slot];
    }
    slot as Slot
}
