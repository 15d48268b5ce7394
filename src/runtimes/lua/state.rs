//! A Lua state that is traced: what its allocator needs.
//!
//! A state and its allocator are used by one thread at a time, which Lua requires of the program
//! (manual, 4): so is everything here.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use heaptap_trace::Source;

use super::constructors::{Registers as SavedRegisters, Request};
use super::filter::SampledFilter;
use super::kinds::AllocateFunction;
use super::layout::PROTO_SIZE;
use super::stack::{Moment, StateStack};
use super::symbols::Lua;
use crate::sys::errno::KeepErrno;
use crate::sys::memory::MappedVec;
use crate::tracer::{
    self, AllocatedBlock, Countdown, DetachedBlock, Mutator, Registers, Session, StackSource, WORD,
};

/// What is behind the allocator of a state. It stays when the state is closed, a few words, for a
/// program that keeps the allocator.
pub(super) struct TracedState {
    /// Words until the next sample.
    pub(super) left: isize,
    /// The allocator that the program has given the state.
    pub(super) allocate: AllocateFunction,
    pub(super) data: *mut c_void,
    /// Of the blocks that were sampled and not freed.
    filter: SampledFilter,
    /// `None` when the state is not traced any more.
    traced: Option<Traced>,
}

/// What a state has while it is traced.
struct Traced {
    mutator: Mutator,
    /// From `Box::into_raw`: the mutator's walker has the address too.
    stack: *mut StateStack,
    /// The sampled blocks that were freed when the state was closed; `None` before.
    freed_at_end: Option<MappedVec<DetachedBlock>>,
}

/// How many states are traced and not closed.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// The blocks of the last state that was closed, which are dead if the program goes on to make
/// another one.
static LEFT: Mutex<Option<MappedVec<DetachedBlock>>> = Mutex::new(None);

impl TracedState {
    /// For a state that is about to be made with this allocator. `None` if it cannot be traced.
    pub(super) fn new(
        lua: &Lua,
        session: &Arc<Session>,
        allocate: AllocateFunction,
        data: *mut c_void,
    ) -> Option<Box<TracedState>> {
        let frames = session.options.max_frames;
        let stack = StateStack::new(lua.places, lua.get_info, frames)?;
        let stack = Box::into_raw(Box::new(stack));
        let address = stack as usize;
        let source = StackSource::Own(Box::new(move |room| {
            // SAFETY: from `Box::into_raw`, freed after the mutator. Only its hooks call this, and
            // `TracedState` uses no reference to it meanwhile.
            unsafe { &mut *(address as *mut StateStack) }.codes(room)
        }));
        let Ok(mut mutator) = Mutator::start(session, source) else {
            // SAFETY: from `Box::into_raw` above, and nobody else has it any more.
            drop(unsafe { Box::from_raw(stack) });
            return None;
        };
        let left = mutator.countdown();
        // The program goes on after it has closed its states.
        for &block in
            LEFT.lock().unwrap_or_else(PoisonError::into_inner).take().iter().flat_map(|it| &**it)
        {
            mutator.end_detached(block);
        }
        OPEN.fetch_add(1, Ordering::Relaxed);
        let traced = Some(Traced { mutator, stack, freed_at_end: None });
        let filter = SampledFilter::new();
        Some(Box::new(TracedState { left, allocate, data, filter, traced }))
    }

    /// Runs `with` on the stack of the state, if it is traced.
    pub(super) fn with_stack<R>(&mut self, with: impl FnOnce(&mut StateStack) -> R) -> Option<R> {
        // SAFETY: from `Box::into_raw`, and freed with the mutator only; no hook of that is
        // running, since the state is used by this thread.
        self.traced.as_mut().map(|traced| with(unsafe { &mut *traced.stack }))
    }

    /// Whether a block of this size may be sampled, or may be a function. Not if it is NULL.
    #[inline]
    pub(super) fn knows(&self, address: usize, size: usize) -> bool {
        self.filter.may_have(address) || size == PROTO_SIZE
    }

    /// A block is about to be freed.
    #[inline(never)]
    pub(super) fn freed(&mut self, address: usize, size: usize) {
        if size == PROTO_SIZE {
            self.with_stack(|stack| stack.cache.forget(address));
        }
        if let Some(block) = self.detach(address) {
            self.ended(block);
        }
    }

    /// Takes a block that is about to be resized.
    #[inline]
    pub(super) fn detach(&mut self, address: usize) -> Option<DetachedBlock> {
        if !self.filter.may_have(address) {
            return None;
        }
        let block = self.traced.as_ref()?.mutator.detach(address)?;
        self.filter.remove(address);
        Some(block)
    }

    /// It could not be resized.
    #[cold]
    pub(super) fn reattach(&mut self, address: usize, block: DetachedBlock) {
        if let Some(traced) = &self.traced {
            self.filter.add(address);
            traced.mutator.reattach(address, block);
        }
    }

    /// A sampled block is no more.
    #[cold]
    #[inline(never)]
    pub(super) fn ended(&mut self, block: DetachedBlock) {
        let _keep = KeepErrno::new();
        let Some(traced) = &mut self.traced else { return };
        tracer::guard(|| match &mut traced.freed_at_end {
            // Without memory it stays alive in the trace.
            Some(freed) => _ = freed.push(block),
            None => traced.mutator.end_detached(block),
        });
    }

    /// Walks the stack for a sample that falls on what is being resized: that may be the stack.
    #[cold]
    #[inline(never)]
    pub(super) fn capture(&mut self, request: Request) {
        let registers = SavedRegisters::capture();
        let walk = |stack: &mut StateStack| {
            tracer::guard(|| {
                stack.moment = Some(Moment { request, registers });
                stack.capture();
            })
        };
        self.with_stack(walk);
    }

    /// What was captured was for nothing.
    pub(super) fn discard(&mut self) {
        self.with_stack(StateStack::discard);
    }

    /// A sample has fallen on a new block of this kind.
    #[cold]
    #[inline(never)]
    pub(super) fn sampled_new(&mut self, address: usize, kind: usize, size: usize) {
        self.sampled(address, Request { is_new: true, kind, size });
    }

    /// A sample has fallen on a block.
    #[cold]
    #[inline]
    pub(super) fn sampled(&mut self, address: usize, request: Request) {
        let registers = SavedRegisters::capture();
        let _keep = KeepErrno::new();
        let TracedState { left, filter, traced: Some(traced), .. } = self else {
            self.left = Countdown::NEVER;
            return;
        };
        tracer::guard(|| {
            traced.mutator.resume_after_fork(left);
            if *left >= 0 && traced.mutator.session().is_live() {
                // The first hook in a forked child has drawn the next sample anew.
                return;
            }
            // SAFETY: as in `with_stack`; the walker uses it only after this.
            unsafe { &mut *traced.stack }.moment = Some(Moment { request, registers });
            let words = request.size.div_ceil(WORD);
            let block = AllocatedBlock { source: Source::Major, address, words, kind: 0 };
            filter.add(address);
            // A lost sample is counted.
            let _ = traced.mutator.hit(left, block, Registers::NONE);
        });
        self.discard();
    }

    /// The state is about to be closed. If no other one is open, the program may be about to end:
    /// then what is freed now was kept until the end.
    pub(super) fn close_begins(&mut self) {
        let Some(traced) = &mut self.traced else { return };
        if OPEN.fetch_sub(1, Ordering::AcqRel) == 1 {
            traced.freed_at_end = MappedVec::new(0);
            self.left = Countdown::NEVER;
        }
    }

    /// The state is closed.
    pub(super) fn close_ends(&mut self) {
        let Some(mut traced) = self.traced.take() else { return };
        self.left = Countdown::NEVER;
        if let Some(freed) = traced.freed_at_end.take() {
            *LEFT.lock().unwrap_or_else(PoisonError::into_inner) = Some(freed);
        }
        traced.end();
    }

    /// The state is traced no further: the program has given it another allocator, or it could
    /// not be made. Returns whether it was traced.
    pub(super) fn give_up(&mut self) -> bool {
        self.left = Countdown::NEVER;
        let Some(traced) = self.traced.take() else { return false };
        OPEN.fetch_sub(1, Ordering::AcqRel);
        traced.end();
        true
    }
}

impl Traced {
    fn end(self) {
        let Traced { mut mutator, stack, .. } = self;
        tracer::guard(|| {
            mutator.settle();
            mutator.end();
        });
        // SAFETY: from `Box::into_raw`; the walker that had it too has ended.
        drop(unsafe { Box::from_raw(stack) });
    }
}
