//! Allocations that lead below the young limit.
//!
//! The runtime's `caml_alloc_small_dispatch` (`runtime/minor_gc.c`, 5.3.0) takes the
//! allocation back, does whatever is pending, and collects if fewer than
//! `Max_young_wosize` words are left (`caml_poll_gc_work`, `runtime/domain.c`); then it
//! allocates again, and only then checks whether a sample falls there. So a sample near
//! the end of a young heap is the *reason* for a collection, which draws the next gap
//! anew. The sample is lost, as are all in the last 250 words or so of each young heap, and
//! estimates are too low. A finaliser that runs after that collection would even get
//! samples of the code that it interrupted.
//!
//! What is drawn must not decide what is drawn anew. So the hook checks for a sample
//! first. If that is the only reason, nothing else happens: the program collects when it
//! would have done so untraced. If there is another reason, which does not depend on
//! samples, the hook does what the runtime does, and gaps may be drawn anew.
//!
//! For the same reason a poll must not take a sample for an interrupt: see
//! [`polls`](crate::runtimes::ocaml::polls).
//!
//! Runs on mutators, with the lock of the domain.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::domain::{self, Domain, with};
use super::layout::{INTERRUPT, StateLayout, set_word, word};
use super::symbols::{CamlResult, Dispatching};
use crate::runtimes::ocaml::values::part_sizes;
use crate::tracer::WORD;

/// `CAML_DO_TRACK` (`runtime/caml/memory.h`): may be sampled.
const TRACK: c_int = 1;
/// `CAML_FROM_CAML`: OCaml code allocates, so callbacks may run.
const FROM_OCAML: c_int = 2;

/// `EV_C_FORCE_MINOR_ALLOC_SMALL` (`runtime/caml/runtime_events.h`).
const FORCED_COLLECTION: c_int = 0;

/// What is being allocated: one block, or `count` in one go with these encoded lengths.
#[derive(Clone, Copy)]
pub(super) struct SmallAlloc {
    /// Words without the first header.
    pub(super) wosize: usize,
    pub(super) flags: c_int,
    pub(super) count: c_int,
    pub(super) lengths: *const u8,
}

/// The young pointer of `state` has been moved, to below the limit. Returns when it has been
/// moved with enough room, and samples are taken. Raises what a callback raises, and
/// owns nothing then.
///
/// # Safety
/// `state` is the running domain's, with its own lock, outside of other hooks, and
/// `alloc` is as the runtime has passed it.
pub(super) unsafe fn dispatch(state: usize, alloc: SmallAlloc) {
    let (Some(runtime), Some(layout)) = (domain::runtime(), domain::layout()) else { return };
    // SAFETY: this function's contract.
    if unsafe { is_only_sampled(state, layout) } {
        // SAFETY: this function's contract.
        return unsafe { sample(state, alloc) };
    }
    let size = (alloc.wosize + 1) * WORD;
    // SAFETY: this function's contract; `probe` has proved the layout.
    let pointer = || unsafe { word(state, layout.young_ptr) };
    // SAFETY: the same; the pointer is the running domain's own.
    let move_to = |pointer: usize| unsafe { set_word(state, layout.young_ptr, pointer) };
    move_to(pointer() + size);
    loop {
        // SAFETY: this function's contract.
        unsafe { do_what_is_pending(&runtime.dispatching, alloc.flags) };
        // SAFETY: this function's contract; `probe` has proved the layout.
        let start = unsafe { word(state, layout.young_start) };
        if pointer().wrapping_sub(start) >= size {
            break;
        }
        // SAFETY: `void caml_ev_counter (ev_runtime_counter, uint64_t)`.
        unsafe { (runtime.dispatching.count_event)(FORCED_COLLECTION, 1) };
        // SAFETY: `void caml_poll_gc_work (void)`, which the runtime calls here too.
        unsafe { (runtime.dispatching.poll_gc_work)() };
    }
    move_to(pointer() - size);
    // SAFETY: this function's contract; `probe` has proved the layout.
    if pointer() < unsafe { word(state, layout.memprof_young_trigger) } {
        // SAFETY: this function's contract.
        unsafe { sample(state, alloc) };
    }
}

/// Whether the young pointer is below the trigger of samples, but not below that of the
/// collector, and nothing has interrupted the domain.
///
/// # Safety
/// That of [`dispatch`].
unsafe fn is_only_sampled(state: usize, layout: &StateLayout) -> bool {
    // SAFETY: the state of a domain, and `probe` has proved the layout.
    let word = |index| unsafe { word(state, index) };
    let limit = (state as *mut usize).wrapping_add(layout.young_limit);
    // SAFETY: the runtime declares `young_limit` atomic (`domain_state.tbl`).
    let limit = unsafe { AtomicUsize::from_ptr(limit) }.load(Ordering::Relaxed);
    let pointer = word(layout.young_ptr);
    limit != INTERRUPT
        && pointer >= word(layout.young_trigger)
        && pointer < word(layout.memprof_young_trigger)
}

/// Takes the samples that fall on the allocation, if it may be sampled.
///
/// # Safety
/// That of [`dispatch`].
unsafe fn sample(state: usize, alloc: SmallAlloc) {
    let SmallAlloc { wosize, flags, count, lengths } = alloc;
    let work = |domain: &mut Domain| {
        if flags & TRACK == 0 {
            domain.renew();
            return domain.reset_limit();
        }
        if count == 1 || lengths.is_null() {
            return domain.young_hit(std::iter::once(wosize.saturating_add(1)));
        }
        // SAFETY: by the contract `count` encoded lengths.
        domain.young_hit(unsafe { part_sizes(count, lengths) });
    };
    // SAFETY: by the contract the running domain's, with its own lock. Hooks do not nest,
    // so no other `&mut Domain` of it is alive.
    unsafe { with(state, work) };
}

/// Stops for other domains, collects, and runs callbacks if OCaml code allocates, as far as
/// the runtime has any of that to do.
///
/// # Safety
/// That of [`dispatch`].
unsafe fn do_what_is_pending(functions: &Dispatching, flags: c_int) {
    if flags & FROM_OCAML == 0 {
        // SAFETY: `void caml_handle_gc_interrupt (void)`, which the runtime calls here too.
        return unsafe { (functions.handle_gc_interrupt)() };
    }
    // SAFETY: `caml_result caml_do_pending_actions_res (void)`, which the runtime calls here
    // too.
    let CamlResult { is_exception, data } = unsafe { (functions.do_pending_actions)() };
    if is_exception != 0 {
        // SAFETY: `void caml_raise (value)`, and no frame from here to OCaml's owns anything.
        unsafe { (functions.raise)(data) };
    }
}
