//! One walk: from the innermost frame outwards until it meets the previous one.

use core::ops::Range;

use super::super::memory::Memory;
use super::super::step::{CROSS_NEUTRAL, Step};
use super::super::table::FrameTables;
use super::crossing::{Crossing, Witnesses, cross};
use super::held::{Held, INDIRECT, Parts, place_of};
use super::run::{ALIKE, BEYOND, Halt, Run, is_stack_pointer, words_from};
use super::streaks::lay_out;
use super::{End, Start};

/// How many chunks of the previous walk are looked at for one that a chunk may
/// meet. More would only matter to a walk that returned from so many callbacks.
const CHUNKS: usize = 16;

/// Of fewer held frames none is looked for: it would take longer than to go on.
const WORTH_MEETING: usize = if cfg!(test) { 2 } else { 16 };

/// So many fresh frames are looked up before guesses begin: they are those that
/// have changed since the last walk, and guesses at them would be wrong.
pub(super) const LOOKED_UP: usize = if cfg!(test) { 4 } else { 32 };

#[derive(Clone, Copy)]
struct Frame {
    sp: u64,
    return_address: u64,
    /// Where the return address was read, with [`INDIRECT`].
    at: u64,
}

/// What a pass found besides the fresh frames.
pub(super) struct Found {
    /// How many of the outermost held frames are still there.
    pub(super) kept: usize,
    pub(super) end: End,
}

pub(super) struct Pass<'a, S, M> {
    memory: &'a M,
    tables: &'a FrameTables,
    held: &'a mut Held<S>,
    /// How the previous walk ended.
    previous: End,
    /// Of the held frames, those from here inwards cannot be met any more.
    passed: usize,
}

/// The held frames that may be met, of which the last is the next.
struct Ahead<'a> {
    at: &'a [u64],
    codes: &'a [u64],
    /// Of the next; [`BEYOND`] all if there is none.
    witness: u64,
}

impl<'a> Ahead<'a> {
    fn new(at: &'a [u64], codes: &'a [u64], frames: Range<usize>) -> Self {
        let at = at.get(frames.clone()).unwrap_or(&[]);
        let codes = codes.get(frames).unwrap_or(&[]);
        let mut ahead = Self { at, codes, witness: BEYOND };
        ahead.witness = ahead.next();
        ahead
    }

    #[inline(always)]
    fn next(&self) -> u64 {
        self.at.last().copied().unwrap_or(BEYOND)
    }

    /// Whether a frame at or above the witness, and not beyond all, is the next one,
    /// now that those below it are passed.
    #[inline(always)]
    fn meets(&mut self, at: u64, return_address: u64) -> bool {
        while self.witness < at
            && let [further @ .., _] = self.at
        {
            self.at = further;
            self.witness = self.next();
        }
        self.witness == at && self.codes.get(self.at.len() - 1) == Some(&return_address)
    }

    /// The number among them of the one that was met.
    fn met(&self) -> usize {
        self.at.len() - 1
    }
}

/// Why the plain way outwards ended.
enum Stop {
    /// At this held frame.
    AtHeld(usize),
    /// At a frame that has no plain caller, or is in no table.
    Boundary(Step),
    Done(End),
}

/// What to do next.
enum Next {
    Frame(Frame),
    Done(Found),
}

impl<'a, S: AsMut<[u64]> + AsRef<[u64]>, M: Memory> Pass<'a, S, M> {
    pub(super) fn new(
        memory: &'a M,
        tables: &'a FrameTables,
        held: &'a mut Held<S>,
        previous: End,
    ) -> Self {
        let passed = if held.frames > WORTH_MEETING { held.frames } else { 0 };
        held.begin();
        Self { memory, tables, held, previous, passed }
    }

    pub(super) fn run(mut self, start: Start) -> Found {
        if start.return_address == 0 {
            return Found { kept: 0, end: End::Complete };
        }
        if !is_stack_pointer(start.sp) {
            return Found { kept: 0, end: End::Broken };
        }
        let Start { sp, return_address } = start;
        let mut frame = Frame { sp, return_address, at: sp - 8 };
        loop {
            let next = match self.go_outwards(&mut frame) {
                Stop::AtHeld(held) => self.follow_held(held),
                Stop::Boundary(step) => self.leave_chunk(frame, step),
                Stop::Done(end) => done(end),
            };
            match next {
                Next::Frame(outer) => frame = outer,
                Next::Done(found) => return self.trimmed(found),
            }
        }
    }

    /// Goes from frame to frame by the tables until something else is to be done
    /// with `frame`.
    fn go_outwards(&mut self, frame: &mut Frame) -> Stop {
        if frame.at & INDIRECT != 0
            && let Some(stop) = self.leave_indirect(frame)
        {
            return stop;
        }
        match self.look_up(frame) {
            Some(stop) => stop,
            None => self.run_on(frame),
        }
    }

    /// Goes on from a frame that was not reached by the plain rule, and so meets none,
    /// to the one outside of it; or tells why not.
    #[cold]
    fn leave_indirect(&mut self, frame: &mut Frame) -> Option<Stop> {
        let Some(cache) = self.held.cache() else { return Some(Stop::Done(End::Broken)) };
        let distance = match words_from(frame.return_address, cache, self.tables) {
            Ok(words) => 8 * words,
            Err(step) => return Some(Stop::Boundary(step)),
        };
        if !self.held.push(frame.at, frame.return_address) {
            return Some(Stop::Done(End::Cut));
        }
        // Does not overflow: `sp` is not above the highest.
        let sp = frame.sp.wrapping_add(distance);
        let at = sp.wrapping_sub(8);
        let word = if at < BEYOND { self.memory.aligned_word(at) } else { None };
        let Some(return_address) = word else { return Some(Stop::Done(End::Broken)) };
        *frame = Frame { sp, return_address, at };
        None
    }

    /// The same for the first few frames, each of which may be one of the held that
    /// are in the index: in most walks there are no more. `None` if there are.
    #[inline(never)]
    fn look_up(&mut self, frame: &mut Frame) -> Option<Stop> {
        if self.passed != 0 && self.held.is_outside_of_entered(frame.at) {
            return None;
        }
        let (memory, tables) = (self.memory, self.tables);
        let Parts { cache, index, at: held_at, codes, fresh_at, fresh_codes, .. } =
            self.held.parts()?;
        let (held_at, codes) = (held_at.get(..self.passed)?, codes.get(..self.passed)?);
        let fresh_at = fresh_at.last_chunk_mut::<LOOKED_UP>()?;
        let fresh_codes = fresh_codes.last_chunk_mut::<LOOKED_UP>()?;
        let Frame { mut at, mut return_address, .. } = *frame;
        let mut left = LOOKED_UP;
        let stop = loop {
            if at >= BEYOND {
                break Some(Stop::Done(End::Broken));
            }
            let held = index[place_of(at)] as usize;
            if held_at.get(held) == Some(&at) && codes.get(held) == Some(&return_address) {
                break Some(Stop::AtHeld(held));
            }
            let Some(place) = left.checked_sub(1) else { break None };
            let distance = match words_from(return_address, cache, tables) {
                Ok(words) => 8 * words,
                Err(step) => break Some(Stop::Boundary(step)),
            };
            (fresh_at[place], fresh_codes[place]) = (at, return_address);
            left = place;
            // Does not overflow: `at` is not beyond all.
            at = at.wrapping_add(distance);
            let Some(word) = memory.aligned_word(at) else {
                break Some(Stop::Done(End::Broken));
            };
            return_address = word;
        };
        *frame = Frame { sp: at.wrapping_add(8), return_address, at };
        self.held.fresh += LOOKED_UP - left;
        stop
    }

    /// The same for the frames outside of those: a recursion, if they are many.
    #[inline(never)]
    fn run_on(&mut self, frame: &mut Frame) -> Stop {
        let Frame { sp, return_address, at } = *frame;
        let (memory, tables, max_frames) = (self.memory, self.tables, self.held.max_frames);
        let near = self.chunk_near(at);
        let floor = near.start;
        let Some(parts) = self.held.parts() else { return Stop::Done(End::Broken) };
        let Parts { cache, at: held_at, codes, fresh_at, fresh_codes, mut fresh_streaks, .. } =
            parts;
        let mut ahead = Ahead::new(held_at, codes, near);
        let mut run = Run::new(sp, return_address, fresh_at.len());
        // Of frames at or above the witness, which may be the next of the held.
        let mut reached = Some(at).filter(|at| *at >= ahead.witness);
        let stop = loop {
            if let Some(at) = reached.take() {
                if at >= BEYOND {
                    break Stop::Done(End::Broken);
                }
                if ahead.meets(at, run.return_address) {
                    break Stop::AtHeld(floor + ahead.met());
                }
            }
            let room = run.room;
            let (Some(fresh_at), Some(fresh_codes)) =
                (fresh_at.get_mut(..room), fresh_codes.get_mut(..room))
            else {
                break Stop::Done(End::Broken);
            };
            let put = |place: usize, at, code| {
                if place < room {
                    (fresh_at[place], fresh_codes[place]) = (at, code);
                }
            };
            let witness = ahead.witness;
            match run.go(memory, tables, cache, witness, put) {
                Halt::AtWitness { at } => reached = Some(at),
                Halt::Boundary(step) => break Stop::Boundary(step),
                Halt::Alike { distance } => {
                    let count = run.count_alike(memory, distance, witness);
                    let (inner, end) = (run.room + ALIKE, run.room - count);
                    if !fresh_streaks.push(max_frames - inner, max_frames - end, distance)
                        && let (Some(ats), Some(codes)) =
                            (fresh_at.get_mut(end..run.room), fresh_codes.get_mut(end..run.room))
                    {
                        let (at, code) = (run.sp.wrapping_sub(8), run.return_address);
                        lay_out((ats, codes), at, code, distance);
                    }
                    match run.pass(memory, count, distance) {
                        None => break Stop::Done(End::Broken),
                        at => reached = at.filter(|at| *at >= witness),
                    }
                }
                Halt::Full => break Stop::Done(End::Cut),
                Halt::Broken => break Stop::Done(End::Broken),
            }
        };
        let Run { sp, return_address, room, .. } = run;
        *frame = Frame { sp, return_address, at: sp.wrapping_sub(8) };
        self.held.fresh = max_frames - room;
        stop
    }

    /// At a frame that has no plain caller.
    #[inline(never)]
    fn leave_chunk(&mut self, frame: Frame, step: Step) -> Next {
        if step == CROSS_NEUTRAL {
            if !self.held.push(frame.at, frame.return_address) {
                return done(End::Cut);
            }
        } else if !self.held.push_link(frame.at & !INDIRECT, frame.return_address) {
            return done(End::Cut);
        }
        if step == 0 {
            return done(End::Unknown);
        }
        let mut witnesses = Witnesses::default();
        let crossing = cross(self.memory, self.tables, step, frame.sp, &mut witnesses);
        for (at, value) in witnesses.iter() {
            if !self.held.push_link(at, value) {
                return done(End::Cut);
            }
        }
        match crossing {
            Some(Crossing::End) => done(End::Complete),
            None => done(End::Broken),
            Some(Crossing::Frame { sp, return_address, read_at }) => {
                self.arrive(sp, return_address, read_at)
            }
        }
    }

    /// At the first frame of a chunk, told of by a word at `read_at`. If its
    /// return address lies at `sp - 8` too, that place says all about what is
    /// outside of it, as for any frame.
    fn arrive(&mut self, sp: u64, return_address: u64, read_at: u64) -> Next {
        if !is_stack_pointer(sp) {
            return done(End::Broken);
        }
        let direct = self.memory.word(sp - 8) == Some(return_address);
        let at = if direct { sp - 8 } else { read_at | INDIRECT };
        Next::Frame(Frame { sp, return_address, at })
    }

    /// The held frames that one at `address` and those outside of it may meet: of
    /// the chunk around it, or else the nearest above it.
    fn chunk_near(&self, address: u64) -> Range<usize> {
        let (mut best, mut near) = (u64::MAX, 0..0);
        let mut end = self.passed;
        let mut links = self.held.link_count;
        for _ in 0..CHUNKS {
            while links > 0 && self.held.link(links - 1).frames >= end {
                links -= 1;
            }
            if end == 0 {
                break;
            }
            let start = if links > 0 { self.held.link(links - 1).frames } else { 0 };
            let distance = self.held.at(end - 1).saturating_sub(address);
            if self.held.at(start) >= address && distance < best {
                (best, near) = (distance, start..end);
            }
            if best == 0 || start == 0 {
                break;
            }
            end = start;
        }
        near.start..near.start + self.held.about_at_or_above(near, address)
    }

    /// At a held frame: takes over what is still so.
    #[inline(never)]
    fn follow_held(&mut self, met: usize) -> Next {
        match self.held.verify(self.memory, met) {
            Ok(()) if self.previous != End::Cut => {
                Next::Done(Found { kept: met + 1, end: self.previous })
            }
            // Where the previous walk was cut this one may be, unless it has
            // become much shorter: else each would be all new.
            Ok(()) if self.held.fresh + met + 1 >= self.held.max_frames / 2 => {
                Next::Done(Found { kept: met + 1, end: End::Cut })
            }
            Ok(()) => self.resume(met, 0),
            Err(changed) => self.resume(met, changed.same),
        }
    }

    /// Takes over the held frames from `met` out to `same`, and goes on from
    /// there by the tables.
    fn resume(&mut self, met: usize, same: usize) -> Next {
        self.passed = same;
        let mut from = same;
        // An indirect frame's stack pointer is not known; `met` is none.
        while from < met && self.held.at(from) & INDIRECT != 0 {
            from += 1;
        }
        if from < met && !self.held.spill(met, from + 1) {
            return done(End::Cut);
        }
        let at = self.held.at(from);
        let return_address = self.held.code(from);
        let sp = at.wrapping_add(8);
        Next::Frame(Frame { sp, return_address, at })
    }

    /// Sees to it that there are at most `max_frames`. When frames were added to
    /// held ones, a quarter of the room is made, so that the next walks can share
    /// what is left.
    fn trimmed(self, found: Found) -> Found {
        let max_frames = self.held.max_frames;
        if self.held.fresh + found.kept <= max_frames {
            if found.end == End::Cut && found.kept == 0 {
                self.held.cut(self.held.fresh);
            }
            return found;
        }
        let room = max_frames - max_frames / 4;
        if let Some(missing) = room.checked_sub(self.held.fresh)
            && missing > 0
        {
            // There is room for it: `room` is less than `max_frames`.
            self.held.spill(found.kept - 1, found.kept - missing);
        }
        self.held.cut(room);
        Found { kept: 0, end: End::Cut }
    }
}

const fn done(end: End) -> Next {
    Next::Done(Found { kept: 0, end })
}
