//! What a runtime implements to be traced unmodified.

use std::ffi::CStr;
use std::path::PathBuf;
use std::sync::Arc;

use super::patch::Replacement;
use super::refusal::Refusal;
use crate::probes::Cell;
use crate::tracer::{Failure, Options, Session};

/// Finds the address of a symbol, wherever the runtime is being looked for.
pub(crate) type Lookup<'a> = &'a dyn Fn(&CStr) -> Option<usize>;

/// A language runtime that can be traced without its cooperation. What has a default is what
/// not every runtime has.
pub(crate) trait Runtime: Sync {
    /// The language, as messages name it.
    fn name(&self) -> &'static str;

    /// Whether these symbols are those of this runtime. A refusal if they are those
    /// of a version that cannot be traced; then no other runtime is tried.
    fn detect(&self, lookup: Lookup<'_>) -> Result<bool, Refusal>;

    /// The environment variable that the runtime reads with `secure_getenv` when it
    /// starts, before it has a heap. A runtime in a library that the program loads
    /// is noticed by that.
    fn startup_variable(&self) -> Option<&'static CStr> {
        None
    }

    /// Has `attach` called as soon as there is a heap, and before the program's code runs, for a runtime whose
    /// layout cannot be proved before. False: it is attached to at once. Before `main`.
    fn wait_for_heap(&self, _attach: fn()) -> Result<bool, Refusal> {
        Ok(false)
    }

    /// Whether it has a heap already, and can be attached to nevertheless. Then
    /// [`attach`](Runtime::attach) and [`prepare_snapshots`](Runtime::prepare_snapshots) are called on a
    /// thread that holds its lock, at the beginning of a minor collection: outside of malloc, of the loader and of the
    /// profiler, while no other thread runs the runtime's code.
    fn is_running(&self) -> bool {
        false
    }

    /// The program that the runtime interprets, if that is in another file than the executable.
    /// Before `main`.
    fn interpreted(&self) -> Option<PathBuf> {
        None
    }

    /// Checks the runtime, found through [`super::symbols`], and returns how to
    /// trace it, in this session and in later ones. Changes nothing that it does not restore.
    /// `None` if another copy of this library traces it already. Once in a process, before the
    /// runtime has a heap, or where [`is_running`](Runtime::is_running) says.
    fn attach(&self) -> Result<Option<Attachment>, Refusal>;

    /// Makes heap snapshots possible, with or without a trace. Changes only hooks that the
    /// runtime offers. Before [`SessionHooks::prepare`], if there is a trace.
    fn prepare_snapshots(&self) -> Result<(), Refusal> {
        Err(Refusal::Snapshots("heap snapshots of this runtime are not supported"))
    }

    /// Has code that computes without allocating come to safe points, as far as a trace would
    /// have it do so. Of a runtime that is not traced and of which snapshots may be taken, before
    /// it has a heap. If it fails, the runtime is as before.
    fn hook_polls(&self) -> Result<(), Refusal> {
        Ok(())
    }

    /// Sets what the calling thread of the runtime is doing, and returns what it
    /// was doing, whether a session is live or not; `tracer/labels.rs` describes
    /// the protocol. 0 is no label.
    fn set_label(&self, _label: u32) -> u32 {
        0
    }

    /// Marks a block of the runtime's heap, young or not, with a tag. On a thread that runs the
    /// runtime's code.
    fn tag(&self, _probe: &Cell, _block: usize, _young: bool) -> Result<(), Failure> {
        Err(Failure::Order)
    }
}

/// A runtime that was detected.
pub(crate) struct Detected {
    pub(crate) runtime: &'static dyn Runtime,
    /// A refusal if this version cannot be traced.
    pub(crate) supported: Result<(), Refusal>,
}

/// The first of these runtimes that has these symbols.
pub(crate) fn detect(
    runtimes: impl IntoIterator<Item = &'static dyn Runtime>,
    lookup: Lookup<'_>,
) -> Option<Detected> {
    runtimes.into_iter().find_map(|runtime| match runtime.detect(lookup) {
        Ok(false) => None,
        Ok(true) => Some(Detected { runtime, supported: Ok(()) }),
        Err(refusal) => Some(Detected { runtime, supported: Err(refusal) }),
    })
}

/// How a runtime is traced.
pub(crate) struct Attachment {
    /// The runtime's options, which the environment completes.
    pub(crate) options: Options,
    /// The runtime's functions that hooks replace.
    pub(crate) replacements: Vec<Replacement>,
    /// What else a session takes.
    pub(crate) hooks: Box<dyn SessionHooks>,
}

/// What a runtime does when a session begins and ends, besides the replacement of its functions.
///
/// A session begins and ends before the runtime has a heap, or at a safe point of it
/// (`safe_point`): then no hook is running, except for those that have called the runtime
/// and use nothing of the session any more.
pub(crate) trait SessionHooks: Send + Sync {
    /// Notices what the program loads from now on, as sessions need to know it. Once, before the
    /// runtime has a heap; changes none of its code.
    fn watch(&self) {}

    /// Why no session can begin now. At a safe point; changes nothing.
    fn refusal(&self) -> Option<Refusal>;

    /// Makes everything ready for the first hook. On the thread that starts the session, which
    /// may allocate and block. The runtime may run, and nothing of it is used yet.
    fn prepare(&self, session: &Arc<Session>) -> Result<(), Failure>;

    /// The functions are replaced. At a safe point.
    fn begin(&self);

    /// The functions are the runtime's own again: so are its limits and variables after this. At
    /// a safe point.
    fn end(&self);

    /// Ends and frees what [`SessionHooks::prepare`] has made. After [`SessionHooks::end`], or if
    /// the session has not begun, on the thread that stops it.
    fn release(&self);

    /// The words that the program has allocated, by the runtime's own counters, if they are
    /// known. At a safe point.
    fn allocated_words(&self) -> Option<u64> {
        None
    }
}
