//! The runtime's timing hooks: it calls them when its collector begins to work, and when it goes
//! on with the program (`runtime/misc.c`, `call_timing_hook` in OCaml 5). Ours report a slice to
//! the mutator, and call those that were set before.
//!
//! In OCaml 4 `Gc.full_major` and `Gc.compact` mark and sweep without slices, and call no hook.

use std::ffi::CStr;
use std::sync::OnceLock;

use super::hook_variable::{Hook, HookBefore};
use crate::probes::SliceKind;
use crate::runtimes::attach::symbols::lookup;

/// An edge of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Edge {
    Begin,
    End,
}

/// Reports an edge to the mutator of the calling thread, which runs the runtime's code.
pub(super) type Report = fn(SliceKind, Edge);

static REPORT: OnceLock<Report> = OnceLock::new();

/// The runtime's variable, what its hook is called for, and our hook.
const HOOKS: [(&CStr, SliceKind, Edge, Hook); 6] = [
    (c"caml_minor_gc_begin_hook", SliceKind::Minor, Edge::Begin, hook::<0>),
    (c"caml_minor_gc_end_hook", SliceKind::Minor, Edge::End, hook::<1>),
    (c"caml_major_slice_begin_hook", SliceKind::Major, Edge::Begin, hook::<2>),
    (c"caml_major_slice_end_hook", SliceKind::Major, Edge::End, hook::<3>),
    (c"caml_finalise_begin_hook", SliceKind::Finalisers, Edge::Begin, hook::<4>),
    (c"caml_finalise_end_hook", SliceKind::Finalisers, Edge::End, hook::<5>),
];

static BEFORE: [HookBefore; HOOKS.len()] = [const { HookBefore::none() }; HOOKS.len()];

/// Our hook for the variable with this index.
extern "C" fn hook<const INDEX: usize>() {
    let (_, kind, edge, _) = HOOKS[INDEX];
    if let Some(report) = REPORT.get() {
        report(kind, edge);
    }
    BEFORE[INDEX].call();
}

/// Sets the hooks. Once in a process, before the runtime collects. A runtime without one of the variables
/// has no such slices in its time line.
pub(super) fn set_hooks(report: Report) {
    if REPORT.set(report).is_err() {
        return;
    }
    for ((name, _, _, ours), before) in HOOKS.into_iter().zip(&BEFORE) {
        let Some(variable) = lookup(name) else { continue };
        // SAFETY: `caml_timing_hook` variables of the runtime, which hold such pointers.
        unsafe { before.set(variable, ours) };
    }
}
