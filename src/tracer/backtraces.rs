//! A mutator's backtraces, by whichever way its host gave.

use std::ops::Range;

use crate::queue::{Code, HOST_CODE_LIMIT};
use crate::stack::native::{Modules, Registers, Unwinder};
use crate::stack::{FEW, FrameTables, Outer, Start, Walk, Walker};
use crate::sys::memory::Region;

/// How the stack is found when a sample is taken.
pub(crate) enum StackSource {
    /// Not at all: backtraces are empty.
    None,
    /// By the frame tables, from where this says.
    Tables(StackLocator),
    /// The host's own walker, which fills the room with codes, innermost first,
    /// and tells how many frames there are.
    Own(Box<OwnWalker>),
}

/// A function of the host that tells where the managed stack is, and two words for
/// it. Not a closure of its own: each hook would have to fetch it from elsewhere.
#[derive(Clone, Copy)]
pub(crate) struct StackLocator {
    pub(crate) ask: fn(usize, usize) -> Place,
    pub(crate) with: [usize; 2],
}

impl StackLocator {
    #[inline(always)]
    fn place(&self) -> Place {
        let [first, second] = self.with;
        (self.ask)(first, second)
    }
}

/// A host's own walker.
pub(crate) type OwnWalker = dyn Fn(&mut [u64]) -> usize + Send;

/// Where the managed stack is when a sample is taken.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// Of the innermost managed frame; 0 if there is none.
    pub(crate) return_address: u64,
    /// That frame's stack pointer.
    pub(crate) sp: u64,
    /// Where C frames end; 0: they are not looked at.
    pub(crate) native_limit: u64,
}

/// A stack as it is told: what stays of the last one, and what is new.
pub(crate) struct Backtrace<'a> {
    /// Outermost frames that stay.
    pub(crate) keep: usize,
    /// New frames behind those, towards the allocation.
    pub(crate) managed: &'a [u64],
    /// Many of them that have the code of the frame before them.
    pub(crate) repeated: Range<usize>,
    /// Frames of C code behind those.
    pub(crate) native: &'a [u64],
}

/// The stacks of one mutator.
pub(crate) struct Stacks {
    pub(crate) way: StackSource,
    walker: Walker<Region>,
    /// Room for what the host's own walker finds.
    own: Region,
    /// Elsewhere, for most have none.
    native: Option<Box<Native>>,
    /// What the mutator is doing; 0 for nothing.
    pub(crate) label: u32,
}

/// What C frames are found with.
struct Native {
    modules: Modules,
    unwinder: Unwinder<Region>,
    found: Region,
}

/// The most codes of a small stack: one of them is a label.
pub(crate) const MOST_SMALL: usize = FEW + 1;

/// The most C frames of a backtrace.
const MAX_NATIVE: usize = 256;

impl Stacks {
    /// None when there is no memory.
    pub(crate) fn new(way: StackSource, max_frames: usize, native: bool) -> Option<Stacks> {
        let room = match way {
            StackSource::Own(_) => max_frames,
            StackSource::None | StackSource::Tables(_) => 0,
        };
        let walker = Walker::new(max_frames, Region::new)?;
        let native = if native { Native::new().map(Box::new) } else { None };
        Some(Stacks { way, walker, own: Region::new(room)?, native, label: 0 })
    }

    /// Where the stack is; nowhere if it is not found by the tables.
    #[inline]
    pub(crate) fn place(&self) -> Place {
        match &self.way {
            StackSource::Tables(tell) => tell.place(),
            StackSource::None | StackSource::Own(_) => Place::default(),
        }
    }

    /// Whether the stack there may be small, and is all that is asked for.
    #[inline]
    pub(crate) fn expects_small(&self, place: Place) -> bool {
        self.walker.expects_small() && !(self.native.is_some() && place.native_limit != 0)
    }

    /// The stack as it is now, if it is small: its codes, innermost first, and
    /// how many they are.
    #[inline(always)]
    pub(crate) fn take_small(
        &mut self,
        tables: &FrameTables,
        place: Place,
        codes: &mut [u64; MOST_SMALL],
    ) -> Option<usize> {
        let Place { return_address, sp, .. } = place;
        let start = Start { return_address, sp };
        let frames = codes.first_chunk_mut()?;
        // SAFETY: the host says where its stack is, and is inside a hook, so that
        // the stack stands still.
        let count = unsafe { self.walker.walk_small(tables, start, frames) }?;
        if self.label == 0 {
            return Some(count);
        }
        *codes.get_mut(count)? = Code::Label(self.label).to_bits();
        Some(count + 1)
    }

    /// The stack as it is now. The registers are those of the hook's caller, or
    /// near it.
    pub(crate) fn take(
        &mut self,
        tables: &FrameTables,
        place: Place,
        registers: Registers,
    ) -> Backtrace<'_> {
        let Stacks { way, walker, own, native, label } = self;
        let label = if *label == 0 { 0 } else { Code::Label(*label).to_bits() };
        let (cut, unknown) = (Code::BeyondLimit.to_bits(), Code::Unknown.to_bits());
        let outer = Outer { label, cut, unknown };
        let mut found: &[u64] = &[];
        let walk = match way {
            StackSource::None => walker.accept(&mut [], 0, outer),
            StackSource::Tables(_) => {
                let Place { return_address, sp, native_limit } = place;
                if let Some(native) = native {
                    found = native.take(registers, native_limit);
                }
                let start = Start { return_address, sp };
                // SAFETY: the host says where its stack is, and is inside a
                // hook, so that the stack stands still.
                unsafe { walker.walk(tables, start, outer) }
            }
            StackSource::Own(walk) => {
                let depth = walk(own);
                let found = depth.min(own.len());
                let codes = own.get_mut(..found).unwrap_or(&mut []);
                for code in codes.iter_mut().filter(|code| !(1..HOST_CODE_LIMIT).contains(*code)) {
                    *code = unknown;
                }
                walker.accept(codes, depth, outer)
            }
        };
        let Walk { prefix, fresh, repeated, .. } = walk;
        Backtrace { keep: prefix, managed: fresh, repeated, native: found }
    }

    /// The writer has no more than so many frames of what was last taken.
    pub(crate) fn rewind(&mut self, has: usize) {
        self.walker.rewind(has);
    }
}

impl Native {
    /// None where there is nothing to find them with.
    fn new() -> Option<Native> {
        Some(Native {
            modules: Modules::new()?,
            unwinder: Unwinder::new(Region::new(Unwinder::<Region>::WORDS)?)?,
            found: Region::new(MAX_NATIVE)?,
        })
    }

    /// The C frames up to the limit, outermost first.
    #[inline(never)]
    fn take(&mut self, registers: Registers, limit: u64) -> &[u64] {
        if limit == 0 {
            return &[];
        }
        let Native { modules, unwinder, found } = self;
        // SAFETY: captured in the hook that called us, and the host says where
        // its managed code called C on the same stack.
        let count = unsafe { unwinder.unwind(modules, registers, limit, found) };
        let frames = found.get_mut(..count).unwrap_or(&mut []);
        frames.reverse();
        frames
    }
}
