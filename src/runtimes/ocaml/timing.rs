//! The runtime's timing hooks: it calls them when its collector begins to work, and when it goes
//! on with the program (`runtime/misc.c`, `call_timing_hook` in OCaml 5). Ours report a slice to
//! the mutator, and call those that were set before.
//!
//! In OCaml 4 `Gc.full_major` and `Gc.compact` mark and sweep without slices, and call no hook.

use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::hook_variable::{Hook, HookBefore};
use crate::probes::SliceKind;
use crate::runtimes::attach::symbols::{function_at, lookup};

/// An edge of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Begin,
    End,
}

/// Reports an edge to the mutator of the calling thread, which runs the runtime's code.
pub(super) type Report = fn(SliceKind, Edge);

/// A [`Report`]; 0 if no session has a time line.
static REPORT: AtomicUsize = AtomicUsize::new(0);

/// The runtime's variable, what its hook is called for, and our hook.
const HOOKS: [(&CStr, SliceKind, Edge, Hook); 6] = [
    (c"caml_minor_gc_begin_hook", SliceKind::Minor, Edge::Begin, hook::<0>),
    (c"caml_minor_gc_end_hook", SliceKind::Minor, Edge::End, hook::<1>),
    (c"caml_major_slice_begin_hook", SliceKind::Major, Edge::Begin, hook::<2>),
    (c"caml_major_slice_end_hook", SliceKind::Major, Edge::End, hook::<3>),
    (c"caml_finalise_begin_hook", SliceKind::Finalisers, Edge::Begin, hook::<4>),
    (c"caml_finalise_end_hook", SliceKind::Finalisers, Edge::End, hook::<5>),
];

/// The hook of a variable: whether ours is set, perhaps behind another, and what was there before.
struct Place {
    is_set: AtomicBool,
    before: HookBefore,
}

static PLACES: [Place; HOOKS.len()] =
    [const { Place { is_set: AtomicBool::new(false), before: HookBefore::none() } }; HOOKS.len()];

/// Our hook for the variable with this index.
extern "C" fn hook<const INDEX: usize>() {
    let (_, kind, edge, _) = HOOKS[INDEX];
    let report = REPORT.load(Ordering::Acquire);
    if report != 0 {
        // SAFETY: `set_hooks` stored a function of this type.
        let report: Report = unsafe { function_at(report) };
        report(kind, edge);
    }
    PLACES[INDEX].before.call();
}

/// Sets the hooks, for a session that begins. A runtime without one of the variables
/// has no such slices in its time line.
pub(super) fn set_hooks(report: Report) {
    REPORT.store(report as usize, Ordering::Release);
    for ((name, _, _, ours), place) in HOOKS.into_iter().zip(&PLACES) {
        let Some(variable) = lookup(name) else { continue };
        // One that could not be removed is called by another that was set in front of it.
        if !place.is_set.swap(true, Ordering::AcqRel) {
            // SAFETY: `caml_timing_hook` variables of the runtime, which hold such pointers.
            unsafe { place.before.set(variable, ours) };
        }
    }
}

/// Removes them, for a session that ends. One that somebody has set another in front of stays, and
/// does nothing.
pub(super) fn remove_hooks() {
    REPORT.store(0, Ordering::Release);
    for ((name, _, _, ours), place) in HOOKS.into_iter().zip(&PLACES) {
        if !place.is_set.load(Ordering::Acquire) {
            continue;
        }
        // SAFETY: such a variable, and ours was set there before.
        let is_removed =
            lookup(name).is_some_and(|variable| unsafe { place.before.remove(variable, ours) });
        place.is_set.store(!is_removed, Ordering::Release);
    }
}
