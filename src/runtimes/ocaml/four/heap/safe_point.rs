//! The moments at which the heap can be walked: the end of each minor collection, which the
//! runtime reports to `caml_minor_gc_end_hook`, and polls of native code (`four/polls.rs`).
//!
//! # What a request leaves behind
//!
//! A request sets `requested_minor_gc` and raises `young_limit` (`poke`), so that the next
//! allocation or poll enters the runtime. Nobody takes that back when the request ends, however
//! it ends: between the look at the limit and the write another thread's signal, a sample
//! or a request of the runtime itself could raise it for a reason of its own, and a limit
//! below what the collector has decided meanwhile would let the program write behind its
//! young heap. The program itself lowers it, under the master lock, the first time that it matters:
//!
//! - An allocation calls `caml_alloc_small_dispatch`, which collects and computes the limit
//!   anew (`caml_update_young_limit`).
//! - A poll, since 4.13, calls `caml_process_pending_actions`, which leaves the limit
//!   unless something is pending: each poll of a loop would take the long way for ever. So
//!   `four/polls.rs` computes the limit anew there, and where it cannot, no limit is raised: in native
//!   code since 4.13 that is not traced, and takes no snapshots by itself.
//!
//! What remains is one minor collection that is done early.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::variables::Variables;
use super::{Heap, blocking, roots};
use crate::runtimes::attach::patch;
use crate::runtimes::ocaml::heap::Words;
use crate::runtimes::ocaml::hook_variable::HookBefore;
use crate::{control, safe_point};

static BEFORE: HookBefore = HookBefore::none();

/// Sets the hook. Before `main`, or when the runtime starts, or under its lock.
pub(super) fn install(heap: &'static Heap) {
    // SAFETY: `void (*caml_minor_gc_end_hook)(void)` is a variable of the runtime
    // (`runtime/minor_gc.c`), which is never unloaded.
    unsafe { BEFORE.set(heap.variables.minor_gc_end_hook, minor_collection_ended) };
}

/// The young heap is empty now. Under the master lock, on any thread, with little stack.
extern "C" fn minor_collection_ended() {
    BEFORE.call();
    let Some(heap) = super::heap() else { return };
    control::may_start_in_child();
    blocking::renew(heap, || has_one_thread(heap));
    // SAFETY: under the master lock nobody else runs OCaml code, and one word is read.
    let words = unsafe { Words::at_rest() };
    let layout = heap.variables.layout;
    control::note_major_collections(
        heap.variables.state(words, layout.stat_major_collections) as u64
    );
    if safe_point::is_wanted() {
        heap.on_own_stack(safe_point::at_safe_point);
    }
}

/// Whether the program has one thread only. Under the master lock.
fn has_one_thread(heap: &Heap) -> bool {
    // SAFETY: under the master lock nobody else runs OCaml code, and only roots are read.
    let words = unsafe { Words::at_rest() };
    roots::find_threads(&heap.variables, words).is_some_and(|threads| threads.len() == 1)
}

/// The same of a program that may not use threads of OCaml, or may not run yet: then it has none, or one.
pub(super) fn is_alone(heap: &Heap) -> bool {
    // SAFETY: `caml_scan_roots_hook`, which the systhreads library sets when it starts
    // (`runtime/roots_nat.c`).
    let has_threads = unsafe { (heap.variables.scan_roots_hook as *const usize).read() } != 0;
    !has_threads || has_one_thread(heap)
}

/// Whether the running thread lowers the limit again that [`poke`] raises.
fn may_raise(variables: &Variables) -> bool {
    variables.poll_entry.is_none_or(|entry| {
        // SAFETY: `caml_garbage_collection`, a function of the runtime longer than 16 bytes
        // (`runtime/signals_nat.c`). Its target, if it begins with a jump, is a relay or code of the
        // same runtime.
        unsafe { patch::is_replaced(entry) }
    })
}

/// Asks the running thread to collect at its next allocation; where the limit may not be raised,
/// when it next does what is pending, such as a signal or a switch of threads. On any thread.
///
/// As `caml_request_minor_gc` does, but without `caml_something_to_do`: up to 4.14.1 the
/// runtime would run pending actions inside its handler of stack overflows
/// (ocaml/ocaml#11303). The running thread may undo this at the same moment, so it has to be
/// repeated.
pub(super) fn poke(variables: &Variables) {
    let layout = variables.layout;
    let word = |index| {
        let word = variables.state_word(index)? as *const AtomicUsize;
        // SAFETY: a word of the runtime's state, which is never freed; its layout is proved.
        Some(unsafe { &*word })
    };
    let (Some(request), Some(limit), Some(end)) =
        (word(layout.requested_minor_gc), word(layout.young_limit), word(layout.young_alloc_end))
    else {
        return;
    };
    let end = end.load(Ordering::Relaxed);
    if variables.can_request && end != 0 {
        request.store(1, Ordering::Relaxed);
        if may_raise(variables) {
            limit.store(end, Ordering::Relaxed);
        }
    }
}
