//! Polls: native code looks in loops that do not allocate whether something is pending, since
//! 4.13, as if it allocated nothing (`Ipoll`, `asmcomp/amd64/emit.mlp`, 4.14.1).
//!
//! It compares the young pointer with the limit and calls `caml_garbage_collection`, where the
//! collector may run: all registers are saved, and the stack has descriptors. So a poll is a safe
//! point for snapshots. The runtime's own function does nothing there unless something is pending,
//! and leaves a raised limit as it is. In a traced program `hooks` replaces it; in one that is
//! not traced, the hook here does.
//!
//! Runs on mutators, inside hooks, under the master lock.

use std::sync::OnceLock;
use std::sync::atomic::{Ordering, fence};

use super::gc_entry::{Allocation, GcEntry};
use super::heap;
use super::layout::StateLayout;
use super::proof::{self, Proved};
use super::symbols::{self, GcEntryFunction, Runtime};
use crate::runtimes::attach::patch::{self, Jumps};
use crate::runtimes::attach::refusal::Refusal;

/// What the hook of a program that is not traced needs.
struct PollEntry {
    gc_entry: GcEntry,
    /// `Caml_state`: where the pointer to the state is.
    state: *const *const usize,
    layout: &'static StateLayout,
    update_young_limit: extern "C" fn(),
}

// SAFETY: the pointers are to variables of the runtime, which live as long as the program and are
// read under the master lock only.
unsafe impl Send for PollEntry {}
// SAFETY: nothing is changed once it is made, and what the pointers lead to is read under the
// master lock only.
unsafe impl Sync for PollEntry {}

static POLL_ENTRY: OnceLock<PollEntry> = OnceLock::new();

/// Replaces `caml_garbage_collection` in a program that is not traced. Before `main`, or when the
/// runtime starts. Does nothing in bytecode.
pub(super) fn hook() -> Result<(), Refusal> {
    let runtime = symbols::find()?;
    let proved = proof::prove(&runtime)?;
    let Some(function) = runtime.gc_entry.filter(|_| proved.is_native) else { return Ok(()) };
    // SAFETY: `caml_garbage_collection`, a function of the runtime longer than 16 bytes
    // (`runtime/signals_nat.c`). Its target, if it begins with a jump, is a relay or code of
    // the same runtime.
    if unsafe { patch::is_replaced(function.address()) } {
        return Ok(());
    }
    let Some(entry) = PollEntry::find(&runtime, proved) else { return Ok(()) };
    let hook: GcEntryFunction = caml_garbage_collection;
    let jumps = Jumps::prepare(&[function.replaced_by(hook)])?;
    if POLL_ENTRY.set(entry).is_ok() { jumps.write() } else { Ok(()) }
}

impl PollEntry {
    fn find(runtime: &Runtime, proved: Proved) -> Option<PollEntry> {
        // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`.
        let update_young_limit =
            unsafe { std::mem::transmute::<usize, extern "C" fn()>(runtime.update_young_limit) };
        Some(PollEntry {
            gc_entry: GcEntry::find(runtime)?,
            state: runtime.state as *const *const usize,
            layout: &proved.known.state,
            update_young_limit,
        })
    }

    /// A word of the runtime's state.
    fn word(&self, index: usize) -> usize {
        // SAFETY: `Caml_state` is a variable of the runtime.
        let state = unsafe { self.state.read() };
        // SAFETY: native code runs, so there is a state, whose layout `prove` has shown. Signal
        // handlers may change it.
        unsafe { state.wrapping_add(index).read_volatile() }
    }

    /// What the code allocates that has called the runtime.
    fn allocation(&self) -> Allocation {
        self.gc_entry.allocation(self.word(self.layout.last_return_address) as u64)
    }

    fn limit_is_raised(&self) -> bool {
        self.word(self.layout.young_limit) == self.word(self.layout.young_alloc_end)
    }
}

/// In place of the runtime's: as it does, and a poll is a safe point. May raise, and owns nothing.
extern "C-unwind" fn caml_garbage_collection() {
    // It is there before the jump to this hook is.
    let Some(entry) = POLL_ENTRY.get() else { return };
    let allocation = entry.allocation();
    if allocation.count == 0 {
        if entry.limit_is_raised() {
            at_raised_limit(entry.update_young_limit);
        }
        (entry.gc_entry.process_pending)();
    } else {
        allocation.pass_to(entry.gc_entry.dispatch);
    }
}

/// Native code polls because the limit was raised: by a request, whose snapshot is taken here if it is still
/// wanted, or for something that is pending, which the caller does next.
pub(super) fn at_raised_limit(update_young_limit: extern "C" fn()) {
    heap::at_poll();
    update_young_limit();
    // A handler of a signal on another thread sets `caml_something_to_do`, then the limit. Either
    // the limit is set after it was lowered, or the caller sees what is pending.
    fence(Ordering::SeqCst);
}
