//! One domain's backtraces: the cache of codes, and the last backtrace.
//!
//! [`Stack::follow`] is the decoder's hot loop. An entry names a slot and how
//! many predictions to follow from there; the chain `slot → prediction → …` is
//! the only dependency between frames, and the codes are fetched beside it.

use crate::cache::{Slot, index, per_slot};
use crate::decode::doubt::Doubt;
use crate::decode::entry::{ENTRY_FRAMES, Entry};
use crate::event::{Backtrace, Code, LOST_FRAME};
use crate::header::CacheCheck;
use crate::rules::SLOTS;
use crate::wire::Bytes;

/// The slots as a reader needs them.
pub(crate) struct Cache {
    pub(crate) codes: Box<[Code; SLOTS]>,
    pub(crate) predictions: Box<[Slot; SLOTS]>,
}

/// One domain's cache and last backtrace.
pub(crate) struct Stack {
    cache: Cache,
    doubt: Option<Box<Doubt>>,
    /// `frames[..depth]` is the last backtrace handed out, the rest is room.
    frames: Vec<Code>,
    depth: usize,
}

/// What went wrong with one backtrace's entries.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EntryFault {
    /// The bytes end.
    Overrun,
    /// A frame comes from a slot that was never filled.
    EmptySlot,
    /// The packet has more frames than the limit allows.
    TooMany,
}

impl Stack {
    pub(crate) fn new() -> Self {
        let cache = Cache { codes: per_slot(), predictions: per_slot() };
        Stack { cache, doubt: None, frames: Vec::new(), depth: 0 }
    }

    /// Whether a packet was lost and the cache is only partly known since.
    #[inline(always)]
    pub(crate) fn in_doubt(&self) -> bool {
        self.doubt.is_some()
    }

    /// Forgets what a lost packet may have changed.
    pub(crate) fn lose(&mut self) {
        self.doubt = Some(Doubt::new());
        self.depth = 0;
    }

    /// Compares a packet's cache check with the cache.
    pub(crate) fn check(&mut self, check: CacheCheck) -> bool {
        let at = index(check.slot);
        match &mut self.doubt {
            Some(doubt) => doubt.learn(&mut self.cache, check),
            None => {
                self.cache.codes[at] == check.code && self.cache.predictions[at] == check.prediction
            }
        }
    }

    /// Follows one backtrace's entries and appends its frames to `new`, and
    /// each code that the file states in full to `stated`. Returns the input
    /// behind the entries.
    #[inline(never)]
    pub(crate) fn follow<'a>(
        &mut self,
        input: Bytes<'a>,
        entries: u16,
        new: &mut NewFrames,
        stated: &mut Vec<Code>,
    ) -> Result<Bytes<'a>, EntryFault> {
        if let Some(doubt) = &mut self.doubt {
            return doubt.follow(&mut self.cache, input, entries, new, stated);
        }
        let mut walk = Walk { bytes: input.rest(), left: entries, slot: 0 };
        loop {
            let room = new.reserve()?;
            let before = room.len();
            let after = walk.hits(&self.cache.codes, &mut self.cache.predictions, room);
            new.len += before - after;
            if walk.left == 0 {
                return Ok(Bytes::new(walk.bytes));
            }
            walk.other(&mut self.cache, new, stated)?;
        }
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
        if shared > self.depth && self.doubt.is_none() {
            // The last backtrace was cut short, by its writer or by our
            // limit: what we have of it is all there is of this one.
            return;
        }
        let granted = budget.grow(&mut self.frames, shared + new.len());
        let (old, room) = self.frames.split_at_mut(shared.min(granted));
        if let Some(unknown) = old.get_mut(self.depth..) {
            unknown.fill(LOST_FRAME);
        }
        let kept = (granted - old.len()).min(new.len());
        if let (Some(room), Some(new)) = (room.get_mut(..kept), new.get(..kept)) {
            room.copy_from_slice(new);
        }
        self.depth = old.len() + kept;
    }
}

/// The way through one backtrace's entries.
struct Walk<'a> {
    bytes: &'a [u8],
    /// Entries left.
    left: u16,
    /// The slot of the last frame.
    slot: Slot,
}

impl Walk<'_> {
    /// Follows hits until something else comes, or the room may not suffice
    /// for one more. Returns how much room is left.
    ///
    /// The loop holds no more than the registers do; what is rare happens in
    /// [`Walk::other`].
    #[inline(always)]
    fn hits(
        &mut self,
        codes: &[Code; SLOTS],
        predictions: &mut [Slot; SLOTS],
        mut room: &mut [Code],
    ) -> usize {
        let Walk { mut bytes, mut left, mut slot } = *self;
        while left > 0 {
            let Some(&head) = bytes.first_chunk() else { break };
            let entry = Entry::hit(head);
            let first = entry.slot();
            if entry.is_miss() || codes[index(first)] == 0 || room.len() < ENTRY_FRAMES {
                break;
            }
            predictions[index(slot)] = first;
            slot = chain(codes, predictions, first, entry.predicted(), room);
            room = room.get_mut(1 + usize::from(entry.predicted())..).unwrap_or(&mut []);
            bytes = bytes.get(entry.size()..).unwrap_or(&[]);
            left -= 1;
        }
        *self = Walk { bytes, left, slot };
        room.len()
    }

    /// Takes one entry of any kind.
    #[inline(never)]
    fn other(
        &mut self,
        cache: &mut Cache,
        new: &mut NewFrames,
        stated: &mut Vec<Code>,
    ) -> Result<(), EntryFault> {
        let entry = Entry::read(self.bytes).ok_or(EntryFault::Overrun)?;
        let first = entry.slot();
        cache.predictions[index(self.slot)] = first;
        if entry.is_miss() {
            stated.push(entry.code());
            cache.codes[index(first)] = entry.code();
        } else if cache.codes[index(first)] == 0 {
            return Err(EntryFault::EmptySlot);
        }
        let room = new.reserve()?;
        self.slot = chain(&cache.codes, &cache.predictions, first, entry.predicted(), room);
        new.len += 1 + usize::from(entry.predicted());
        self.bytes = self.bytes.get(entry.size()..).ok_or(EntryFault::Overrun)?;
        self.left -= 1;
        Ok(())
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
    room: &mut [Code],
) -> Slot {
    let Some(room) = room.first_chunk_mut::<ENTRY_FRAMES>() else { return slot };
    let first = slot;
    let second = predictions[index(first)];
    let third = predictions[index(second)];
    let fourth = predictions[index(third)];
    room[0] = codes[index(first)];
    room[1] = codes[index(second)];
    room[2] = codes[index(third)];
    room[3] = codes[index(fourth)];
    if predicted < 4 {
        let near = if predicted & 1 == 0 { first } else { second };
        let far = if predicted & 1 == 0 { third } else { fourth };
        return if predicted < 2 { near } else { far };
    }
    let mut slot = fourth;
    for frame in &mut room[4..=usize::from(predicted)] {
        slot = predictions[index(slot)];
        *frame = codes[index(slot)];
    }
    slot
}

/// Frames are copied this many at a time, which takes no loop for most.
const CHUNK: usize = 8;

/// The new frames of a whole packet's allocations, one after the other.
pub(crate) struct NewFrames {
    /// `codes[..len]` are frames, the rest is room: always a chunk at least,
    /// so that a copy may take whole chunks.
    codes: Vec<Code>,
    pub(crate) len: usize,
    /// Not many more frames than this: a packet can stand for 2.8 million.
    pub(crate) limit: usize,
}

impl NewFrames {
    pub(crate) fn new(limit: usize) -> Self {
        NewFrames { codes: Vec::new(), len: 0, limit }
    }

    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline(always)]
    pub(crate) fn get(&self, start: usize, count: usize) -> Padded<'_> {
        let codes = self.codes.get(start..).unwrap_or(&[]);
        Padded { codes, count: count.min(codes.len()) }
    }

    /// Room behind the frames there are, enough for one entry at least.
    #[inline(always)]
    fn reserve(&mut self) -> Result<&mut [Code], EntryFault> {
        if self.codes.len() - self.len < ENTRY_FRAMES + CHUNK {
            self.grow()?;
        }
        let end = self.codes.len() - CHUNK;
        self.codes.get_mut(self.len..end).ok_or(EntryFault::TooMany)
    }

    #[cold]
    fn grow(&mut self) -> Result<(), EntryFault> {
        if self.len >= self.limit {
            return Err(EntryFault::TooMany);
        }
        let doubled = (2 * self.codes.len()).min(self.limit + ENTRY_FRAMES + CHUNK);
        self.codes.resize(doubled.max(self.len + 4 * ENTRY_FRAMES), 0);
        Ok(())
    }

    pub(crate) fn push(&mut self, code: Code) -> Result<(), EntryFault> {
        if let Some(frame) = self.reserve()?.first_mut() {
            *frame = code;
            self.len += 1;
        }
        Ok(())
    }
}

/// Frames, and what happens to lie behind them.
#[derive(Clone, Copy)]
pub(crate) struct Padded<'a> {
    codes: &'a [Code],
    count: usize,
}

impl<'a> Padded<'a> {
    fn frames(&self) -> &'a [Code] {
        self.codes.get(..self.count).unwrap_or(&[])
    }

    /// Copies the frames in whole chunks; false if there is no room.
    #[inline(always)]
    fn copy_to(&self, room: &mut [Code]) -> bool {
        if room.len() < self.count + CHUNK {
            return false;
        }
        let chunks = room.chunks_exact_mut(CHUNK).zip(self.codes.chunks_exact(CHUNK));
        for (to, from) in chunks.take(self.count.div_ceil(CHUNK)) {
            to.copy_from_slice(from);
        }
        true
    }
}

/// How many frames the backtraces of all domains together may take.
pub(crate) struct FrameBudget {
    limit: usize,
    used: usize,
    /// Frames were left out because of the limit.
    pub(crate) exceeded: bool,
}

impl FrameBudget {
    pub(crate) fn new(limit: usize) -> Self {
        FrameBudget { limit, used: 0, exceeded: false }
    }

    /// Makes room for `wanted` frames and a chunk, or for as many as the
    /// budget has; returns how many.
    fn grow(&mut self, frames: &mut Vec<Code>, wanted: usize) -> usize {
        let have = frames.len();
        let most = have.saturating_add(self.limit.saturating_sub(self.used));
        self.exceeded |= wanted > most;
        let target = wanted.saturating_add(CHUNK).max(2 * have).max(64).min(most);
        if target > have {
            self.used += target - have;
            frames.reserve_exact(target - have);
            frames.resize(target, 0);
        }
        wanted.min(frames.len())
    }
}
