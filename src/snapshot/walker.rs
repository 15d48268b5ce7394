//! What a runtime implements so that its heap can be walked.

use std::sync::{Arc, OnceLock};

use heaptap_heap::{Encoder, Name, Suspended};

use super::order::{NO_RUNTIME, SnapshotError};
use super::output::DescriptorSink;
use crate::safe_point::{self, SafePoints};
use crate::tracer::Session;

/// Writes a snapshot to a descriptor, without allocating.
pub(crate) type HeapEncoder<'w> = Encoder<'w, DescriptorSink>;

/// Why a walk ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WalkError {
    /// The file could not be written: an error number.
    Write(i32),
    /// The heap was not as expected.
    Heap(&'static str),
    /// What a host reported about its heap was wrong, and why.
    Host(&'static str),
}

impl From<i32> for WalkError {
    /// From what the encoder returns.
    fn from(errno: i32) -> WalkError {
        WalkError::Write(errno)
    }
}

/// A heap that can be walked.
pub(crate) trait HeapWalker: SafePoints {
    /// Runtime and release, such as `OCaml 4.14.1 native`. On the ordering thread.
    fn runtime(&self) -> String;

    /// Words of a block's header.
    fn header_words(&self) -> u32;

    /// Why this heap must not be walked now, if there is a reason. Any thread.
    fn refusal(&self) -> Option<&'static str> {
        None
    }

    /// Looks up what the walk needs and may not look up itself. On the ordering thread, before
    /// each snapshot; may allocate.
    fn prepare_walk(&self) {}

    /// Writes the whole heap. At a safe point, in [`SafePoints::at_rest`], or in a copy of
    /// the process made there. Neither allocates nor locks.
    fn walk(&self, encoder: &mut HeapEncoder<'_>, string_bytes: u32) -> Result<(), WalkError>;

    /// Calls `found` with the address and the number of every block that
    /// [`HeapWalker::session`] tracks. Where [`HeapWalker::walk`] is called.
    fn tracked(&self, _found: &mut dyn FnMut(usize, u64)) {}

    /// The session that traces this heap, if its blocks can be told. On the ordering thread.
    fn session(&self) -> Option<Arc<Session>> {
        None
    }

    /// Calls `found` with what the runtime knows about the code addresses of a snapshot. Those
    /// that it leaves out are looked up in the program's symbols. On the ordering thread,
    /// after the walk.
    fn name_code(&self, _codes: &Suspended, _found: &mut dyn FnMut(Name<'_>)) {}

    /// Has the runtime itself collect everything that is dead, and returns the blocks and
    /// words that it keeps. In a copy of the process, after the walk, for tests: it runs
    /// finalisers of C code. `None` if the threads that the copy lacks would have to take part.
    fn collect(&self) -> Option<(u64, u64)> {
        None
    }
}

static WALKER: OnceLock<&'static dyn HeapWalker> = OnceLock::new();

/// Makes snapshots of this heap possible. False if another heap was registered before: the
/// first one stays.
pub(crate) fn register(walker: &'static dyn HeapWalker) -> bool {
    WALKER.set(walker).is_ok() && safe_point::register(walker)
}

/// Runtime and release of the heap that can be walked, or why there is none.
pub(crate) fn walkable_runtime() -> Result<String, SnapshotError> {
    registered().map(HeapWalker::runtime)
}

pub(super) fn registered() -> Result<&'static dyn HeapWalker, SnapshotError> {
    WALKER.get().copied().ok_or(SnapshotError::Unsupported(NO_RUNTIME))
}
