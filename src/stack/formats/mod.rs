//! The seam between the frame tables and the formats in which hosts describe their
//! frames.
//!
//! A format implements [`FrameTable`]: it reads the host's table into
//! [`FrameRecord`]s once, and later explains a single record to the writer thread.
//! A runtime that keeps its own index of return addresses implements
//! [`FrameIndex`] instead, and its frames are read when a walk first reaches them.
//! Where managed code is called from C or from another stack, a frame has no plain
//! caller; the format then names a [`CrossingRule`].
//!
//! The neutral format of the C header is in [`neutral`]. The format of a particular
//! runtime lives with that runtime.

#![allow(unsafe_code, reason = "declares the contracts of reading the host's records")]

mod defect;
pub(crate) mod neutral;

use heaptap_trace::LocationList;

use crate::sys::process_memory::ProcessMemory;
pub(crate) use defect::TableDefect;

/// One return address of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRecord {
    pub(crate) return_address: u64,
    pub(crate) caller: Caller,
    /// The address of the host's own record of this frame.
    pub(crate) record: u64,
}

/// How to get from a frame to its caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Caller {
    /// The caller's stack pointer is this many bytes above the frame's: a positive
    /// multiple of 8.
    Distance(u64),
    /// The frame is a boundary. Its caller is found by this rule.
    Beyond(&'static CrossingRule),
}

/// How to get from a boundary frame to the next chunk of managed frames, past the C
/// code or the change of stack in between. A rule is known by its address, so each
/// is a `static`.
///
/// A rule is applied on mutators, inside hooks. It reads at most [`MAX_WITNESSES`]
/// words, all through the reader, and in an order in which each may be read again if
/// those before it are unchanged: the crossing depends on these words alone.
#[derive(Debug)]
pub(crate) struct CrossingRule {
    /// The first word that the rule reads is this many bytes above the boundary
    /// frame's stack pointer.
    pub(crate) offset: u64,
    /// If the first word is this one, the stack ends here.
    pub(crate) end: u64,
    /// Otherwise this finds the next chunk from the address of the first word and the
    /// word. `None` if the words make no sense.
    pub(crate) cross: fn(at: u64, word: u64, stack: &mut dyn StackReader) -> Option<Crossing>,
}

impl CrossingRule {
    /// Crosses at a boundary frame whose stack pointer is `sp`.
    #[inline]
    pub(crate) fn apply(&self, sp: u64, stack: &mut impl StackReader) -> Option<Crossing> {
        let at = sp.checked_add(self.offset)?;
        let word = stack.word(at)?;
        if word == self.end { Some(Crossing::End) } else { (self.cross)(at, word, stack) }
    }
}

/// The most words that a [`CrossingRule`] reads.
pub(crate) const MAX_WITNESSES: usize = 3;

/// Where a crossing leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Crossing {
    /// To a frame, whose return address was read at `read_at`.
    Frame { sp: u64, return_address: u64, read_at: u64 },
    /// There are no more frames.
    End,
}

/// Reads words of a stack for a [`CrossingRule`].
pub(crate) trait StackReader {
    /// The word at `address`; `None` if no word can be there.
    fn word(&mut self, address: u64) -> Option<u64>;
}

/// What a format knows about its own records. Called on the writer thread.
pub(crate) trait FrameRecords: Send + Sync {
    /// A value by which two parts of one combined allocation are known to have the
    /// same source location: they have the same value. `None` if the record does
    /// not tell parts apart.
    ///
    /// # Safety
    /// `record` is one that this object returned.
    unsafe fn part_key(&self, record: u64, part: usize) -> Option<u64>;

    /// Adds the source locations of a record, outermost function first. `part` is
    /// the part of a combined allocation, if the sample has one.
    ///
    /// # Safety
    /// `record` is one that this object returned.
    unsafe fn locate(
        &self,
        record: u64,
        part: Option<usize>,
        memory: &ProcessMemory,
        list: &mut LocationList,
    ) -> Explained;
}

/// What [`FrameRecords::locate`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Explained {
    /// All there is to say, possibly nothing.
    Fully,
    /// The compiler left no debug information for this frame, in any form. Only a
    /// symbol can name it.
    WithoutDebugInfo,
    /// The record's debug information cannot be read.
    Unreadable,
}

/// A table of frames in a host's format. Its memory stays valid and unchanged as
/// long as this object lives.
pub(crate) trait FrameTable: FrameRecords {
    /// All frames of the table, in ascending order of their records' addresses.
    /// Runs on the thread that adds the table, never inside a hook.
    fn frames(&self) -> Result<Vec<FrameRecord>, TableDefect>;
}

/// A runtime's own index of its frame tables, which are read where they are.
pub(crate) trait FrameIndex: FrameRecords {
    /// At most this many frames are ever found.
    fn capacity(&self) -> usize;

    /// A frame that is not a boundary. Runs on mutators, inside hooks.
    fn find(&self, return_address: u64) -> Option<IndexedFrame>;
}

/// A frame found through a [`FrameIndex`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexedFrame {
    /// In bytes, a positive multiple of 8: the distance to the caller's stack
    /// pointer.
    pub(crate) size: u64,
    /// The address of the runtime's record.
    pub(crate) record: u64,
}

/// No code lies below this address: the first page is never mapped.
pub(crate) const LOWEST_CODE: u64 = 4096;

/// Codes from here on are not the host's.
pub(crate) const HIGHEST_CODE: u64 = 1 << 60;

/// More return addresses than any table has: a greater count is garbage.
pub(crate) const MAX_COUNT: u64 = 1 << 26;
