//! Writing a trace while its program runs.
//!
//! The writer thread knows its format when it is compiled: none of its calls goes through a table.

use std::ops::Range;

use crate::model::event::{Block, Code, End};
use crate::model::format::TraceFormat;
use crate::model::info::TraceInfo;
use crate::model::locate::Locate;
use crate::model::write_error::WriteError;

/// A backtrace to write that may lose frames in its middle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElidableFrames<'a> {
    /// The number of frames at the `main` end that are those of the domain's
    /// previous allocation.
    pub common_prefix: u64,
    /// The frames after those.
    pub new: &'a [Code],
    /// Left-out frames are replaced by one whose code is this plus their number.
    pub left_out: Code,
}

/// Frames that were left out in the middle of a backtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The number of new frames written before them.
    pub kept: usize,
    /// The number of frames left out.
    pub count: u64,
}

/// A block of the minor heap with one sample, as most are, and its backtrace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallAlloc<'a> {
    /// Microseconds since the epoch.
    pub time: u64,
    /// Words, without the header.
    pub length: u64,
    /// How many frames at the `main` end are those of the domain's previous
    /// allocation.
    pub common_prefix: u64,
    /// The others, from the allocation point towards `main`.
    pub inner_first: &'a [Code],
}

/// A trace that a program writes of itself.
pub trait LiveSink: Sized {
    /// Where the bytes go.
    type Output;

    /// The events of one domain.
    type Domain<'s>: DomainSink
    where
        Self: 's;

    /// Begins a trace.
    fn begin(out: Self::Output, format: TraceFormat, info: &TraceInfo) -> Result<Self, WriteError>;

    /// Begins another trace in the same output: whatever was not flushed is forgotten.
    fn restart(&mut self, info: &TraceInfo) -> Result<(), WriteError>;

    /// A number above the ids of all allocations so far.
    fn free_id(&self) -> u64;

    /// One domain, looked up once for many events. It begins with its first event.
    fn domain(&mut self, number: u16) -> Self::Domain<'_>;

    /// Writes everything that was encoded so far.
    fn flush(&mut self, locate: &mut impl Locate) -> Result<(), WriteError>;

    /// Ends the trace, which covers its program until this time, but keeps the output and all
    /// memory, for a process that is about to exit. Nothing may be written afterwards.
    fn end(&mut self, time: u64, locate: &mut impl Locate) -> Result<(), WriteError>;

    /// The output.
    fn output_mut(&mut self) -> &mut Self::Output;
}

/// Events of one domain, many at a time.
pub trait DomainSink {
    /// Writes an allocation whose backtrace keeps both its ends if it does not
    /// fit into 4,096 bytes: one frame replaces those in the middle.
    ///
    /// Returns the allocation's id and which of the new frames were left out.
    /// Later common prefixes count the frames as they are in the file.
    fn alloc_elided(
        &mut self,
        time: u64,
        block: Block,
        frames: ElidableFrames<'_>,
        locate: &mut impl Locate,
    ) -> Result<(u64, Option<LeftOut>), WriteError>;

    /// Writes allocations until one needs more than room in the packet. Returns
    /// the ids of those written, and the one that was taken but not written, for
    /// [`DomainSink::alloc_elided`]. A domain that has not begun takes none.
    fn alloc_batch<'a>(
        &mut self,
        allocs: &mut impl Iterator<Item = SmallAlloc<'a>>,
    ) -> (Range<u64>, Option<SmallAlloc<'a>>);

    /// Writes the promotion or collection of objects whose ids follow each other,
    /// all at one time.
    fn end_batch(
        &mut self,
        end: End,
        time: u64,
        ids: Range<u64>,
        locate: &mut impl Locate,
    ) -> Result<(), WriteError>;
}
