//! Captures a mutator's backtraces, from whichever source its host provides.
//!
//! Runs on mutators, inside hooks: no malloc, no lock. Buffers are mapped when
//! the mutator starts.

use std::ops::Range;

use crate::queue::{Code, HOST_CODE_LIMIT};
use crate::stack::formats::HIGHEST_CODE;
use crate::stack::native::{Modules, Registers, Unwinder};
use crate::stack::{FrameTables, Markers, SMALL_STACK, Start, Walk, Walker};
use crate::sys::memory::Region;
use crate::tracer::failure::Failure;

// The stack accepts return addresses just where the queue has codes for them.
const _: () = assert!(HIGHEST_CODE == HOST_CODE_LIMIT);

/// Where backtraces come from.
pub(crate) enum StackSource {
    /// Nowhere: backtraces are empty.
    None,
    /// A walk over the frame tables, from the frame that this locates.
    Tables(StackLocator),
    /// The host's own walker.
    Own(Box<HostWalker>),
}

/// A function of the host that locates the managed stack, and its arguments.
///
/// Two words instead of a boxed closure: the hook finds them where it finds the
/// function.
#[derive(Clone, Copy)]
pub(crate) struct StackLocator {
    pub(crate) locate: fn(usize, usize) -> StackTop,
    pub(crate) arguments: [usize; 2],
}

impl StackLocator {
    #[inline(always)]
    fn locate(&self) -> StackTop {
        let [first, second] = self.arguments;
        (self.locate)(first, second)
    }
}

/// A host's own stack walker. Fills the slice with codes, innermost frame first,
/// and returns the number of frames, which may be larger than the slice.
pub(crate) type HostWalker = dyn Fn(&mut [u64]) -> usize + Send;

/// The innermost end of the managed stack.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct StackTop {
    /// The return address into the innermost managed frame; 0 if there is none.
    pub(crate) return_address: u64,
    /// That frame's stack pointer.
    pub(crate) sp: u64,
    /// Where the C frames inside it end; 0: C frames are not captured.
    pub(crate) native_limit: u64,
}

/// A backtrace as a difference to the mutator's last one.
pub(crate) struct Backtrace<'a> {
    /// How many outermost frames are unchanged.
    pub(crate) keep: usize,
    /// The managed frames inside those, outermost first.
    pub(crate) managed: &'a [u64],
    /// A range of `managed` in which each frame has the code of the frame before
    /// it.
    pub(crate) repeated: Range<usize>,
    /// The C frames inside the managed ones, outermost first.
    pub(crate) native: &'a [u64],
}

/// The backtraces of one mutator.
pub(crate) struct Backtraces {
    pub(crate) source: StackSource,
    walker: Walker<Region>,
    /// The codes that a host's own walker returns, or that the host has captured itself; empty if
    /// the frame tables are walked.
    own: Region,
    /// How many frames the host has captured for the next block, of which the innermost are in
    /// `own`.
    captured: Option<usize>,
    /// Boxed, since most sessions do not capture C frames.
    native: Option<Box<NativeFrames>>,
    /// The label of the work the mutator is doing; 0 for none.
    pub(crate) label: u32,
}

/// What C frames are unwound with.
struct NativeFrames {
    modules: Modules,
    unwinder: Unwinder<Region>,
    codes: Region,
}

/// The most codes of a small stack: [`SMALL_STACK`] frames and a label.
pub(crate) const MAX_SMALL_FRAMES: usize = SMALL_STACK + 1;

/// The most C frames of a backtrace.
const MAX_NATIVE_FRAMES: usize = 256;

impl Backtraces {
    /// `None` when there is no memory.
    pub(crate) fn new(
        source: StackSource,
        max_frames: usize,
        native_frames: bool,
    ) -> Option<Backtraces> {
        let own_frames = match source {
            StackSource::Own(_) | StackSource::None => max_frames,
            StackSource::Tables(_) => 0,
        };
        let walker = Walker::new(max_frames, Region::new, Region::new)?;
        walker.step_cache().populate();
        let native = if native_frames { NativeFrames::new().map(Box::new) } else { None };
        Some(Backtraces {
            source,
            walker,
            own: Region::new(own_frames)?,
            captured: None,
            native,
            label: 0,
        })
    }

    /// Where a walk over the frame tables begins; nowhere for other sources.
    #[inline]
    pub(crate) fn stack_top(&self) -> StackTop {
        match &self.source {
            StackSource::Tables(locator) => locator.locate(),
            StackSource::None | StackSource::Own(_) => StackTop::default(),
        }
    }

    /// Whether [`Backtraces::take_small`] is worth trying: the last stack was
    /// small, and no C frames are wanted.
    #[inline]
    pub(crate) fn expects_small(&self, top: StackTop) -> bool {
        self.walker.expects_small() && !(self.native.is_some() && top.native_limit != 0)
    }

    /// Captures the whole stack if it is small: its codes, innermost first, and
    /// their number.
    #[inline(always)]
    pub(crate) fn take_small(
        &mut self,
        tables: &FrameTables,
        top: StackTop,
        codes: &mut [u64; MAX_SMALL_FRAMES],
    ) -> Option<usize> {
        let StackTop { return_address, sp, .. } = top;
        let start = Start { return_address, sp };
        let frames = codes.first_chunk_mut()?;
        // SAFETY: `top` comes from the host's locator, which returns a frame of
        // the calling mutator's stack; the mutator is inside this hook, so the
        // stack does not change during the walk.
        let count = unsafe { self.walker.walk_small(tables, start, frames) }?;
        if self.label == 0 {
            return Some(count);
        }
        *codes.get_mut(count)? = Code::Label(self.label).to_bits();
        Some(count + 1)
    }

    /// Captures the stack as a difference to the last one. The registers are
    /// those of the hook's caller.
    pub(crate) fn take(
        &mut self,
        tables: &FrameTables,
        top: StackTop,
        registers: Registers,
    ) -> Backtrace<'_> {
        let Backtraces { source, walker, own, captured, native, label } = self;
        let label = if *label == 0 { 0 } else { Code::Label(*label).to_bits() };
        let (cut, unknown) = (Code::BeyondLimit.to_bits(), Code::Unknown.to_bits());
        let markers = Markers { label, cut, unknown };
        let mut native_codes: &[u64] = &[];
        let walk = match source {
            StackSource::None | StackSource::Own(_) if captured.is_some() => {
                let depth = captured.unwrap_or(0);
                walker.accept(checked(own, depth, unknown), depth, markers)
            }
            StackSource::None => walker.accept(&mut [], 0, markers),
            StackSource::Tables(_) => {
                let StackTop { return_address, sp, native_limit } = top;
                if let Some(native) = native {
                    native_codes = native.take(registers, native_limit);
                }
                let start = Start { return_address, sp };
                // SAFETY: `top` comes from the host's locator, which returns a
                // frame of the calling mutator's stack; the mutator is inside
                // this hook, so the stack does not change during the walk.
                unsafe { walker.walk(tables, start, markers) }
            }
            StackSource::Own(host_walker) => {
                let depth = host_walker(own);
                walker.accept(checked(own, depth, unknown), depth, markers)
            }
        };
        let Walk { prefix, fresh, repeated, .. } = walk;
        Backtrace { keep: prefix, managed: fresh, repeated, native: native_codes }
    }

    /// The host has captured the stack of the next block: its codes, innermost first. Fails if the
    /// frame tables are walked.
    pub(crate) fn capture(&mut self, codes: &[u64]) -> Result<(), Failure> {
        if matches!(self.source, StackSource::Tables(_)) {
            return Err(Failure::Order);
        }
        self.own.iter_mut().zip(codes).for_each(|(to, code)| *to = *code);
        self.captured = Some(codes.len());
        Ok(())
    }

    /// The block is recorded.
    pub(crate) fn forget_captured(&mut self) {
        self.captured = None;
    }

    /// The writer has only the `frames` outermost frames of the last backtrace:
    /// the next one is a difference to those.
    pub(crate) fn rewind(&mut self, frames: usize) {
        self.walker.rewind(frames);
    }
}

/// The codes of a stack of this depth that the host has written; those that cannot be its own are
/// `unknown`.
fn checked(own: &mut [u64], depth: usize, unknown: u64) -> &mut [u64] {
    let written = depth.min(own.len());
    let codes = own.get_mut(..written).unwrap_or(&mut []);
    for code in codes.iter_mut().filter(|code| !(1..HOST_CODE_LIMIT).contains(*code)) {
        *code = unknown;
    }
    codes
}

impl NativeFrames {
    /// `None` when there is no memory, or the program has no unwind tables.
    fn new() -> Option<NativeFrames> {
        Some(NativeFrames {
            modules: Modules::new()?,
            unwinder: Unwinder::new(Region::new(Unwinder::<Region>::WORDS)?)?,
            codes: Region::new(MAX_NATIVE_FRAMES)?,
        })
    }

    /// The C frames up to the limit, outermost first.
    #[inline(never)]
    fn take(&mut self, registers: Registers, limit: u64) -> &[u64] {
        if limit == 0 {
            return &[];
        }
        let NativeFrames { modules, unwinder, codes } = self;
        // SAFETY: the registers were captured in the hook that is running, whose
        // frames stay until it returns; `limit` comes from the host's locator,
        // which returns where managed code called C on the same stack.
        let count = unsafe { unwinder.unwind(modules, registers, limit, codes) };
        let frames = codes.get_mut(..count).unwrap_or(&mut []);
        frames.reverse();
        frames
    }
}
