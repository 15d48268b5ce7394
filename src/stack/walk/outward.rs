//! A walk in progress: from the innermost frame outwards until it rejoins the last walk.

use core::ops::Range;

use super::super::memory::Memory;
use super::super::step::{CROSS_NEUTRAL, Step};
use super::super::table::FrameTables;
use super::crossing::{Crossing, Witnesses, cross};
use super::last_walk::{INDIRECT, LastWalk, indexed};
use super::new_frames::NewFrames;
use super::step_cache::{StepCache, distance_to_caller};
use super::{ADDRESS_LIMIT, End, Start, is_stack_pointer};
use crate::SMALL_LIMITS;

/// Frames that are looked up in the index, of each chunk. If none of them is there,
/// much of the stack is new.
pub(super) const INDEX_LOOKUPS: usize = if SMALL_LIMITS { 4 } else { 32 };

/// After this many frames with one return address in a row a streak is expected.
const STREAK_EXPECTED: usize = if SMALL_LIMITS { 3 } else { 8 };

/// A frame that the walk has reached and not recorded yet.
#[derive(Clone, Copy)]
struct Frame {
    sp: u64,
    return_address: u64,
    /// Where the return address was read: `sp - 8`, or elsewhere and [`INDIRECT`].
    witness: u64,
}

impl Frame {
    /// A frame whose return address was read right below its stack pointer.
    fn direct(witness: u64, return_address: u64) -> Self {
        Self { sp: witness.wrapping_add(8), return_address, witness }
    }
}

/// How a walk ended, besides the new frames.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outcome {
    /// How many of the outermost frames of the last walk are still there.
    pub(super) kept: usize,
    pub(super) end: End,
}

/// Why the plain frames ended.
enum Stop {
    /// At this frame of the last walk.
    Rejoined(usize),
    /// At a frame whose caller is not found by its size; step 0 if it is in no table.
    Boundary(Step),
    Ended(End),
}

/// How a walk goes on.
enum Next {
    Frame(Frame),
    Done(Outcome),
}

const fn ended(end: End) -> Next {
    Next::Done(Outcome { kept: 0, end })
}

pub(super) struct OutwardWalk<'a, S, M> {
    pub(super) memory: &'a M,
    pub(super) tables: &'a FrameTables,
    pub(super) cache: &'a mut StepCache,
    pub(super) last: &'a LastWalk<S>,
    pub(super) new: &'a mut NewFrames<S>,
    /// The outermost frames of the last walk that can be rejoined: at first
    /// [`LastWalk::candidates`].
    pub(super) candidates: usize,
}

impl<S: AsMut<[u64]> + AsRef<[u64]>, M: Memory> OutwardWalk<'_, S, M> {
    pub(super) fn run(mut self, start: Start) -> Outcome {
        self.new.clear();
        if start.return_address == 0 {
            return Outcome { kept: 0, end: End::Complete };
        }
        if !start.is_plausible() {
            return Outcome { kept: 0, end: End::Broken };
        }
        let mut frame = Frame::direct(start.sp - 8, start.return_address);
        loop {
            let next = match self.walk_plain_frames(&mut frame) {
                Stop::Rejoined(rejoined) => self.reuse_last_walk(rejoined),
                Stop::Boundary(step) => self.leave_chunk(frame, step),
                Stop::Ended(end) => ended(end),
            };
            match next {
                Next::Frame(outer) => frame = outer,
                Next::Done(outcome) => return self.limit_frames(outcome),
            }
        }
    }

    /// Goes from frame to frame by adding sizes, and leaves in `frame` where that
    /// stopped.
    fn walk_plain_frames(&mut self, frame: &mut Frame) -> Stop {
        if frame.witness & INDIRECT != 0
            && let Some(stop) = self.leave_indirect(frame)
        {
            return stop;
        }
        self.walk_by_index(frame).unwrap_or_else(|| self.walk_by_chunk(frame))
    }

    /// Goes from an indirect frame, which rejoins nothing, to the one outside of it.
    #[cold]
    fn leave_indirect(&mut self, frame: &mut Frame) -> Option<Stop> {
        let distance = match distance_to_caller(frame.return_address, self.cache, self.tables) {
            Ok(distance) => distance,
            Err(step) => return Some(Stop::Boundary(step)),
        };
        if !self.new.push(frame.witness, frame.return_address) {
            return Some(Stop::Ended(End::Cut));
        }
        // Does not overflow: it is a stack pointer.
        let witness = frame.sp.wrapping_add(distance).wrapping_sub(8);
        let word = if witness < ADDRESS_LIMIT { self.memory.aligned_word(witness) } else { None };
        let Some(return_address) = word else { return Some(Stop::Ended(End::Broken)) };
        *frame = Frame::direct(witness, return_address);
        None
    }

    /// Walks the first frames of a chunk, each of which may be in the index; `None` if
    /// none was. Most walks go no further.
    ///
    /// Without it a walk with few new frames takes 20 % more instructions
    /// (`benches/stack.rs: top 4 of 190`).
    fn walk_by_index(&mut self, frame: &mut Frame) -> Option<Stop> {
        if self.candidates != 0 && self.last.is_outside_of_index(frame.witness) {
            return None;
        }
        let index = self.last.index()?;
        let witnesses = self.last.witnesses.as_ref().get(..self.candidates)?;
        let codes = self.last.codes_of(0..self.candidates);
        let Frame { mut witness, mut return_address, .. } = *frame;
        let mut room = self.new.room();
        let mut lookups = 0;
        let stop = loop {
            if witness >= ADDRESS_LIMIT {
                break Some(Stop::Ended(End::Broken));
            }
            let candidate = indexed(index, witness);
            if witnesses.get(candidate) == Some(&witness)
                && codes.get(candidate) == Some(&return_address)
            {
                break Some(Stop::Rejoined(candidate));
            }
            if lookups == INDEX_LOOKUPS {
                break None;
            }
            lookups += 1;
            let distance = match distance_to_caller(return_address, self.cache, self.tables) {
                Ok(distance) => distance,
                Err(step) => break Some(Stop::Boundary(step)),
            };
            if !room.push(witness, return_address) {
                break Some(Stop::Ended(End::Cut));
            }
            // Does not overflow: it is below the limit.
            witness = witness.wrapping_add(distance);
            let Some(word) = self.memory.aligned_word(witness) else {
                break Some(Stop::Ended(End::Broken));
            };
            return_address = word;
        };
        *frame = Frame::direct(witness, return_address);
        self.new.count = room.count();
        stop
    }

    /// Walks the frames outside of those, of which there may be many. May rejoin any
    /// frame of the chunk of the last walk around them.
    fn walk_by_chunk(&mut self, frame: &mut Frame) -> Stop {
        let Frame { mut witness, mut return_address, .. } = *frame;
        let mut ahead = Ahead::new(self.last, self.last.chunk_around(self.candidates, witness));
        // The code of the frame before, the distance to its caller, and how many frames
        // with this code were just added one by one.
        let mut room = self.new.room();
        let (mut code, mut distance, mut alike) = (!return_address, 0, 0);
        let stop = loop {
            if witness >= ahead.next_witness {
                if witness >= ADDRESS_LIMIT {
                    break Stop::Ended(End::Broken);
                }
                if let Some(rejoined) = ahead.rejoin(witness, return_address) {
                    break Stop::Rejoined(rejoined);
                }
            }
            if return_address != code {
                distance = match distance_to_caller(return_address, self.cache, self.tables) {
                    Ok(distance) => distance,
                    Err(step) => break Stop::Boundary(step),
                };
                (code, alike) = (return_address, 0);
            }
            if alike == STREAK_EXPECTED {
                let end = ahead.next_witness;
                let count = self.memory.repeats(witness, distance, end, code).min(room.left);
                room.push_streak(STREAK_EXPECTED, count, witness, code, distance);
                // Does not overflow: the last of them is below the limit.
                witness = witness.wrapping_add(count as u64 * distance);
                alike = 0;
            } else {
                if !room.push(witness, code) {
                    break Stop::Ended(End::Cut);
                }
                witness = witness.wrapping_add(distance);
                alike += 1;
            }
            let Some(word) = self.memory.aligned_word(witness) else {
                break Stop::Ended(End::Broken);
            };
            return_address = word;
        };
        *frame = Frame::direct(witness, return_address);
        self.new.count = room.count();
        stop
    }

    /// At a boundary: crosses to the next chunk.
    fn leave_chunk(&mut self, frame: Frame, step: Step) -> Next {
        let has_room = if step == CROSS_NEUTRAL {
            // This boundary is a frame, too.
            self.new.push(frame.witness, frame.return_address)
        } else {
            self.new.push_link(frame.witness & !INDIRECT, frame.return_address)
        };
        if !has_room {
            return ended(End::Cut);
        }
        if step == 0 {
            return ended(End::Unknown);
        }
        let mut witnesses = Witnesses::default();
        let crossing = cross(self.memory, self.tables, step, frame.sp, &mut witnesses);
        let next = match crossing {
            None => ended(End::Broken),
            Some(Crossing::End) => ended(End::Complete),
            Some(Crossing::Frame { sp, .. }) if !is_stack_pointer(sp) => ended(End::Broken),
            Some(Crossing::Frame { sp, return_address, read_at }) => {
                // If the return address is right below the stack pointer as well, that
                // is its witness: then the frame is like any other.
                let is_direct = self.memory.word(sp - 8) == Some(return_address);
                let witness = if is_direct { sp - 8 } else { read_at | INDIRECT };
                Next::Frame(Frame { sp, return_address, witness })
            }
        };
        // The next frame's own witness need not be a link too.
        let own = if let Next::Frame(frame) = &next { frame.witness & !INDIRECT } else { 0 };
        for (address, value) in witnesses.iter().filter(|&(address, _)| address != own) {
            if !self.new.push_link(address, value) {
                return ended(End::Cut);
            }
        }
        next
    }

    /// At a frame of the last walk: keeps it and those outside of it as far as they are
    /// unchanged.
    fn reuse_last_walk(&mut self, rejoined: usize) -> Next {
        match self.last.verify(self.memory, rejoined) {
            Ok(()) if self.last.end != End::Cut => {
                Next::Done(Outcome { kept: rejoined + 1, end: self.last.end })
            }
            // The cut stays where it is, or no two walks would share a frame, unless
            // the stack has become much shorter.
            Ok(()) if self.new.count + rejoined + 1 >= self.new.max_frames / 2 => {
                Next::Done(Outcome { kept: rejoined + 1, end: End::Cut })
            }
            Ok(()) => self.go_on_from(rejoined, 0),
            Err(changed) => self.go_on_from(rejoined, changed.same_from),
        }
    }

    /// Takes over the frames of the last walk from `rejoined` out to `outer`, and goes
    /// on from there by the tables.
    fn go_on_from(&mut self, rejoined: usize, outer: usize) -> Next {
        self.candidates = outer;
        let mut from = outer;
        // The stack pointer of an indirect frame is not recorded. `rejoined` is direct.
        while from < rejoined && self.last.witness(from) & INDIRECT != 0 {
            from += 1;
        }
        if from < rejoined && !self.new.copy_from(self.last, rejoined, from + 1) {
            return ended(End::Cut);
        }
        Next::Frame(Frame::direct(self.last.witness(from), self.last.code(from)))
    }

    /// Cuts a walk that has more than `max_frames`. That happens when new frames came
    /// in front of kept ones; then a quarter of the room is left free, so that the cut
    /// can stay where it is for the next walks.
    fn limit_frames(self, outcome: Outcome) -> Outcome {
        let max_frames = self.new.max_frames;
        if self.new.count + outcome.kept <= max_frames {
            if outcome.end == End::Cut && outcome.kept == 0 {
                // Drops links outside of the outermost frame.
                self.new.cut(self.new.count);
            }
            return outcome;
        }
        let depth = max_frames - max_frames / 4;
        if let Some(missing) = depth.checked_sub(self.new.count)
            && missing > 0
        {
            // There is room: `depth` is less than `max_frames`.
            self.new.copy_from(self.last, outcome.kept - 1, outcome.kept - missing);
        }
        self.new.cut(depth);
        Outcome { kept: 0, end: End::Cut }
    }
}

/// The frames of a chunk of the last walk that may be rejoined, the next one last.
struct Ahead<'a> {
    /// The number of the first of them.
    start: usize,
    witnesses: &'a [u64],
    codes: &'a [u64],
    /// Of the next one; [`ADDRESS_LIMIT`] if there is none.
    next_witness: u64,
}

impl<'a> Ahead<'a> {
    fn new<S: AsMut<[u64]> + AsRef<[u64]>>(last: &'a LastWalk<S>, frames: Range<usize>) -> Self {
        let start = frames.start;
        let witnesses = last.witnesses.as_ref().get(frames.clone()).unwrap_or(&[]);
        let codes = last.codes_of(frames);
        let next_witness = witnesses.last().copied().unwrap_or(ADDRESS_LIMIT);
        Self { start, witnesses, codes, next_witness }
    }

    /// The number of the next frame, if it is this one, which is not below it. Passes
    /// those below this one.
    fn rejoin(&mut self, witness: u64, return_address: u64) -> Option<usize> {
        while self.next_witness < witness
            && let [further @ .., _] = self.witnesses
        {
            self.witnesses = further;
            self.next_witness = further.last().copied().unwrap_or(ADDRESS_LIMIT);
        }
        let next = self.witnesses.len().checked_sub(1)?;
        let is_next = self.next_witness == witness && self.codes.get(next) == Some(&return_address);
        is_next.then_some(self.start + next)
    }
}
