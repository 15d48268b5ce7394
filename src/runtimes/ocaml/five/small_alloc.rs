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
//! samples, the hook calls the runtime's function, and gaps may be drawn anew.
//!
//! For the same reason a poll must not take a sample for an interrupt: see
//! [`polls`](crate::runtimes::ocaml::polls).
//!
//! Runs on mutators, with the lock of the domain.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::domain::{self, Domain, with};
use super::layout::{INTERRUPT, StateLayout, word};
use super::symbols::{Runtime, SmallDispatch};
use crate::runtimes::attach::Replacement;
use crate::runtimes::attach::patch::Original;
use crate::runtimes::ocaml::values::part_sizes;

/// `CAML_DO_TRACK` (`runtime/caml/memory.h`): may be sampled.
const TRACK: c_int = 1;

/// The runtime's function.
static ORIGINAL: Original<SmallDispatch> = Original::new();

/// Replaces the runtime's function by the hook, which calls it.
pub(super) fn replacement(runtime: &Runtime) -> Replacement {
    runtime.small_dispatch.wrapped_by(caml_alloc_small_dispatch, &ORIGINAL)
}

/// The young pointer has been moved, to below the limit. Returns when it has been moved with
/// enough room, and samples are taken. Raises what a callback raises, and owns nothing then.
extern "C-unwind" fn caml_alloc_small_dispatch(
    state: usize,
    wosize: usize,
    flags: c_int,
    count: c_int,
    lengths: *const u8,
) {
    // SAFETY: the running domain calls this function, with its own lock.
    let is_only_sampled =
        domain::layout().is_some_and(|layout| unsafe { is_only_sampled(state, layout) });
    // SAFETY: the type with which the runtime declares it. It is there before the jump to this
    // hook is.
    let Some(original) = (unsafe { ORIGINAL.get() }) else { return };
    if !is_only_sampled {
        return original(state, wosize, flags, count, lengths);
    }
    let work = |domain: &mut Domain| {
        if flags & TRACK == 0 {
            domain.renew();
            return domain.reset_limit();
        }
        // SAFETY: the runtime passes what it allocates.
        unsafe { sample(domain, wosize, count, lengths) };
    };
    // SAFETY: the running domain calls this function, with its own lock. Hooks do not nest, so
    // no other `&mut Domain` of it is alive.
    unsafe { with(state, work) };
}

/// Whether the young pointer is below the trigger of samples, but not below that of the
/// collector, and nothing has interrupted the domain.
///
/// # Safety
/// `state` is the running domain's, with its own lock.
unsafe fn is_only_sampled(state: usize, layout: &StateLayout) -> bool {
    // SAFETY: the state of a domain, and `prove` has shown the layout.
    let word = |index| unsafe { word(state, index) };
    let limit = (state as *mut usize).wrapping_add(layout.young_limit);
    // SAFETY: the runtime declares `young_limit` atomic (`domain_state.tbl`).
    let limit = unsafe { AtomicUsize::from_ptr(limit) }.load(Ordering::Relaxed);
    let pointer = word(layout.young_ptr);
    limit != INTERRUPT
        && pointer >= word(layout.young_trigger)
        && pointer < word(layout.memprof_young_trigger)
}

/// Takes the samples that fall on an allocation: one block of `wosize` words without its header, or
/// `count` in one go with these encoded lengths.
///
/// # Safety
/// `count` encoded lengths, or NULL, as the runtime has passed them.
#[inline]
pub(super) unsafe fn sample(domain: &mut Domain, wosize: usize, count: c_int, lengths: *const u8) {
    if count == 1 || lengths.is_null() {
        return domain.young_hit(std::iter::once(wosize.saturating_add(1)));
    }
    // SAFETY: by the contract `count` encoded lengths.
    domain.young_hit(unsafe { part_sizes(count, lengths) });
}
