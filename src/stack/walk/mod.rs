//! The walk over managed frames.
//!
//! # The problem
//!
//! A sample needs the return addresses (*codes*) of all frames on the stack. The frame
//! tables give the size of the frame for each return address, so a stack is walked from
//! the innermost frame outwards: look the size up, add it to the stack pointer, read the
//! next return address right below. Each step waits for a load and a look-up, which is
//! too slow to be done for a thousand frames at every sample. But consecutive samples
//! share most of their stack, and the trace stores a stack as the number of outermost
//! frames it shares with the one before (`prefix`) and the others (`fresh`). So most of
//! the work can be to show that most of the stack is still there.
//!
//! # What is kept of the last walk
//!
//! [`last_walk::LastWalk`] keeps the frames of the last walk, outermost first. Each has its code
//! and its *witness*, the address where that code was read. A frame is *direct* when its
//! stack pointer is its witness + 8. Only where a stack goes from one chunk to the next
//! is a frame *indirect*: its return address was read elsewhere.
//!
//! - A *chunk* is a run of frames that lead to each other by their sizes. It ends at a
//!   *boundary*, a frame from which some rule crosses C code or changes the stack. The
//!   words which that rule read are kept as *links*, each with the number of frames
//!   outside of it, its address and its value. They are the witnesses of the crossing.
//! - A *streak* is a run of frames of a recursion: one code, witnesses at equal
//!   distances. Deep stacks consist of them. Streaks describe frames that are recorded
//!   anyway and make it faster to find, to verify and to report them.
//! - The *index* finds the innermost frames of the last walk by their witness.
//!
//! The frame tables have a cache in front of them ([`step_cache`]), which outlives walks:
//! what a table says of an address never changes.
//!
//! # Why a kept frame is still there
//!
//! The caller of a frame depends on two things: its stack pointer and its return
//! address. The tables map the return address to a size, always the same one, and the
//! stack pointer plus that size is where the caller's return address lies. So if the
//! walk has come to a direct frame of the last walk (same witness, hence same stack
//! pointer, and same code), the caller is where it was. If the word at the caller's
//! witness is its code, the caller is the same frame, and so on outwards. At a boundary
//! the rule reads the words of the links; if each has its value the rule would again
//! lead to the same frame. By induction, when all words are unchanged from one frame
//! outwards, so is the whole chain, and the last walk's end is this walk's end. This
//! takes one load and comparison for each frame, independent of each other, and no
//! look-up.
//!
//! The words must be read from the inside out, each only after those before it have been
//! found unchanged. If they have changed, memory further out may be unmapped.
//!
//! Two things are not covered by the words, and make the walker drop all witnesses:
//! tables that were added (the last walk may have ended at an address that is known
//! now), and lack of room for links.
//!
//! # A walk
//!
//! 1. [`outward`] goes outwards by the tables. For the first few frames it asks the
//!    index whether they are of the last walk; further out it goes along the frames of
//!    the last walk's nearest chunk, which are in the order of their addresses. Frames
//!    found this way are new ([`new_frames::NewFrames`]). At a boundary it goes by the rule
//!    ([`crossing`]) and records the links.
//! 2. When it comes to a direct frame of the last walk with the same code, it *rejoins*
//!    the last walk there, which is then verified from there outwards. If all is
//!    unchanged the walk is done: these frames are *kept*. Otherwise the unchanged part
//!    is copied to the new frames, and the walk goes on by the tables from there. It may
//!    rejoin the last walk again, outside of the change.
//! 3. [`commit`] compares the codes of the new frames with those that were in their
//!    place, which makes `prefix` exact: the longest common run of codes from the
//!    outermost inwards. Then it puts the new frames inside of the kept ones.
//!
//! With *n* frames of which *k* are new, a walk takes O(*k*) dependent steps and O(*n*)
//! independent comparisons. The storage is allocated once and never grows.
//!
//! # Several stacks
//!
//! A mutator may change between stacks: fibers, or threads of which one runs at a time.
//! Then the last walk is of another stack, and shares little with this one. Up to seven
//! walks of other stacks are [`parked`] and exchanged with the last walk when the mutator
//! returns to their stack.
//!
//! # Limits
//!
//! A stack deeper than `max_frames` is *cut* at its outer end. If the cut were always
//! `max_frames` away from the innermost frame, each call and return would move it and no
//! two walks would share a frame. So it stays where it is in the stack as long as
//! between half of `max_frames` and all of it are inside; a new cut leaves a quarter.
//!
//! A stack of at most [`SMALL_STACK`] frames in one chunk is not worth any of this: it
//! is walked whole every time and written whole, and nothing is kept of it ([`small`]).
//!
//! # Reading order
//!
//! - `walker`: the interface, and how the pieces work together;
//! - `outward`: a walk in progress;
//! - `last_walk`: what is kept, and its verification;
//! - `parked`: walks of stacks that the mutator has left;
//! - `new_frames` and `commit`: what a walk finds, and how it becomes the last walk;
//! - `records`: links and streaks; `step_cache`, `crossing`, `small`;
//! - `naive`: the same walk without any of this, for tests and benches to compare with.
//!
//! Runs on the mutator, inside hooks: no malloc, no locks, no panics, no system calls,
//! little stack.

mod commit;
mod crossing;
mod last_walk;
#[cfg(test)]
pub(crate) mod naive;
mod new_frames;
mod outward;
mod parked;
mod records;
mod small;
mod step_cache;
#[cfg(test)]
mod tests;
mod walker;

use core::ops::Range;

pub(crate) use small::SMALL_STACK;
pub(crate) use walker::Walker;

/// Where a walk begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    /// Of the innermost managed frame; 0 if there is none.
    pub(crate) return_address: u64,
    /// That frame's stack pointer.
    pub(crate) sp: u64,
}

impl Start {
    /// Whether a managed frame can be there.
    fn is_plausible(self) -> bool {
        self.return_address != 0 && is_stack_pointer(self.sp)
    }
}

/// A stack pointer is between these: a return address lies below it and not at 0, and no
/// frame is so large that adding its size to the highest overflows.
const LOWEST_SP: u64 = 16;
const HIGHEST_SP: u64 = 1 << 63;

/// Every witness is below it, since the stack pointer 8 above is at most the highest.
const ADDRESS_LIMIT: u64 = HIGHEST_SP - 7;

fn is_stack_pointer(sp: u64) -> bool {
    sp.is_multiple_of(8) && (LOWEST_SP..=HIGHEST_SP).contains(&sp)
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// At the outermost frame.
    Complete,
    /// At the limit of frames, or of links.
    Cut,
    /// At a return address that is in no table.
    Unknown,
    /// At a word that is no address of a stack.
    Broken,
}

/// Codes in front of the frames that stand for no frame: a label and an end mark.
const MARKERS: usize = 2;

/// Codes that a walk reports in front of the frames, as if they were frames; 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Markers {
    /// The outermost: what the mutator is doing.
    pub(crate) label: u64,
    /// In place of the frames beyond the limit.
    pub(crate) cut: u64,
    /// In place of frames that could not be found.
    pub(crate) unknown: u64,
}

impl Markers {
    fn codes(self, end: End) -> [u64; MARKERS] {
        let mark = match end {
            End::Complete => 0,
            End::Cut => self.cut,
            End::Unknown | End::Broken => self.unknown,
        };
        [self.label, mark]
    }
}

/// A stack, as what it shares with the one before and what is new.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    /// How many of the outermost codes are those of the walk before.
    pub(crate) prefix: usize,
    /// The codes inside of those, outermost first.
    pub(crate) fresh: &'a [u64],
    /// A part of `fresh`: many codes that equal the one before them, which may be the
    /// last of the prefix. Empty if there are not many.
    pub(crate) repeated: Range<usize>,
    /// The markers say it too.
    #[cfg(test)]
    pub(crate) end: End,
}

#[cfg(test)]
impl Walk<'_> {
    /// All codes, those of the prefix included.
    pub(crate) fn depth(&self) -> usize {
        self.prefix + self.fresh.len()
    }
}
