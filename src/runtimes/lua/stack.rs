//! The stack of a Lua state, from its calls to the codes of a backtrace.
//!
//! The functions of Lua are in it, of the thread that runs and of those that have resumed it.
//! Functions in C have no line and are left out: what they allocate is their caller's. Runs in
//! hooks, by one thread at a time.

use super::constructors::{self, Registers, Request};
use super::layout::{CallInfo, Proto, Thread};
use super::lines;
use super::names::{self, GetInfo};
use super::place_cache::{KnownFunction, PlaceCache};
use super::places::Places;
use crate::sys::memory::Region;

/// The most threads that have resumed each other: Lua allows 200 C calls (`LUAI_MAXCCALLS`).
const MOST_RUNNING: usize = 208;

/// Where what is about to be allocated is asked for.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    pub(super) request: Request,
    pub(super) registers: Registers,
}

pub(super) struct StateStack {
    places: &'static Places,
    get_info: GetInfo,
    pub(super) cache: PlaceCache,
    /// The threads that run, outermost first: addresses of `lua_State`.
    running: [usize; MOST_RUNNING],
    /// How many there are; beyond the array they are counted only.
    depth: usize,
    /// What the next walk is for.
    pub(super) moment: Option<Moment>,
    /// A stack that was walked before its memory was moved: its codes, and how many. The room is
    /// `None` while it is being walked.
    captured: Option<Region>,
    captured_depth: Option<usize>,
}

impl StateStack {
    /// Of a state that has no thread yet. `None` if there is no memory.
    pub(super) fn new(
        places: &'static Places,
        get_info: GetInfo,
        most_frames: usize,
    ) -> Option<StateStack> {
        Some(StateStack {
            places,
            get_info,
            cache: PlaceCache::new()?,
            running: [0; MOST_RUNNING],
            depth: 0,
            moment: None,
            captured: Some(Region::new(most_frames)?),
            captured_depth: None,
        })
    }

    /// This thread runs from now on. Returns what [`StateStack::leave`] needs.
    pub(super) fn enter(&mut self, thread: usize) -> usize {
        let before = self.depth;
        if let Some(place) = self.running.get_mut(before) {
            *place = thread;
        }
        self.depth = before + 1;
        before
    }

    /// It does not any more.
    pub(super) fn leave(&mut self, before: usize) {
        self.depth = before;
    }

    /// Walks the stack now, for the next call of [`StateStack::codes`].
    pub(super) fn capture(&mut self) {
        let Some(mut room) = self.captured.take() else { return };
        self.captured_depth = Some(self.walk(&mut room));
        self.captured = Some(room);
    }

    /// What was captured is of no use.
    pub(super) fn discard(&mut self) {
        self.captured_depth = None;
    }

    /// Writes the codes of the frames, innermost first, and returns how many frames there are,
    /// or one more than there is room for.
    pub(super) fn codes(&mut self, room: &mut [u64]) -> usize {
        match self.captured_depth.take() {
            Some(depth) => {
                let captured = self.captured.as_deref().unwrap_or(&[]);
                room.iter_mut().zip(captured).take(depth).for_each(|(to, from)| *to = *from);
                depth
            }
            None => self.walk(room),
        }
    }

    fn walk(&mut self, room: &mut [u64]) -> usize {
        let moment = self.moment.take();
        let mut frames = 0;
        for at in (0..self.depth.min(MOST_RUNNING)).rev() {
            let Some(&address) = self.running.get(at) else { continue };
            // SAFETY: a thread that runs, or waits for one that it has resumed: it is alive, and
            // stands still while its allocator runs.
            let thread = unsafe { Thread::at(address) };
            let mut next = thread.innermost();
            // Only the innermost call of all has not saved its place.
            let mut moment = moment.filter(|_| frames == 0 && at + 1 == self.depth);
            while let Some(call) = next {
                if let Some(proto) = call.lua_function() {
                    let Some(place) = room.get_mut(frames) else { return frames + 1 };
                    let moment = moment.take();
                    let running = moment.and_then(|Moment { request, registers }| {
                        constructors::running(thread, call, proto, request, &registers)
                    });
                    *place = self.code(thread, call, proto, running);
                    frames += 1;
                }
                moment = None;
                next = call.caller();
            }
        }
        frames
    }

    /// The code of a call, which runs this instruction or the one that it has saved. 0 if there
    /// is no room for another place.
    fn code(
        &mut self,
        thread: Thread,
        call: CallInfo,
        proto: Proto,
        running: Option<usize>,
    ) -> u64 {
        let saved = call.saved_pc().wrapping_sub(proto.code()) / 4;
        let index = running.unwrap_or(saved.wrapping_sub(1).min(proto.instructions()));
        let Some(function) = self.function(thread, call, proto) else { return 0 };
        if let Some(code) = self.cache.code(function, index) {
            return code;
        }
        let line = lines::line_of(proto, index);
        let Some(code) = self.places.place(function.file, function.name, line) else { return 0 };
        self.cache.add_code(function, index, code);
        code
    }

    fn function(&mut self, thread: Thread, call: CallInfo, proto: Proto) -> Option<KnownFunction> {
        if let Some(known) = self.cache.function(proto) {
            return Some(known);
        }
        let file = names::file(self.places, proto)?;
        let name = names::name(self.places, self.get_info, thread, call, proto)?;
        Some(self.cache.add_function(proto, file, name))
    }
}
