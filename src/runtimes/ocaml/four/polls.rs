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

use super::gc_entry::GcEntry;
use super::heap;
use super::proof::{self, Proved};
use super::state::State;
use super::symbols::{self, GcEntryFunction, Runtime};
use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::patch::{self, Jumps};
use crate::runtimes::attach::symbols::function_at;

/// What the hook of a program that is not traced needs.
struct PollEntry {
    gc_entry: GcEntry,
    state: State,
    update_young_limit: extern "C" fn(),
}

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
        Some(PollEntry {
            gc_entry: GcEntry::find(runtime)?,
            state: State::of(runtime, proved),
            // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`.
            update_young_limit: unsafe { function_at(runtime.update_young_limit) },
        })
    }
}

/// In place of the runtime's: as it does, and a poll is a safe point. May raise, and owns nothing.
extern "C-unwind" fn caml_garbage_collection() {
    // It is there before the jump to this hook is.
    let Some(entry) = POLL_ENTRY.get() else { return };
    let allocation = entry.gc_entry.allocation(entry.state.last_return_address());
    if allocation.count == 0 {
        if entry.state.limit_is_raised() {
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
