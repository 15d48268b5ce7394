//! The runtime's timing hooks: it calls them when its collector begins to work, and when it goes
//! on with the program (`runtime/misc.c`, `call_timing_hook` in OCaml 5). Ours report a slice to
//! the mutator, and call those that were set before.
//!
//! In OCaml 4 `Gc.full_major` and `Gc.compact` mark and sweep without slices, and call no hook.

use std::ffi::CStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The hooks that were set before ours; 0 for none.
static BEFORE: [AtomicUsize; HOOKS.len()] = [const { AtomicUsize::new(0) }; HOOKS.len()];

/// The runtime's variable, and our hook.
const HOOKS: [(&CStr, extern "C" fn()); 6] = [
    (c"caml_minor_gc_begin_hook", minor_begins),
    (c"caml_minor_gc_end_hook", minor_ends),
    (c"caml_major_slice_begin_hook", slice_begins),
    (c"caml_major_slice_end_hook", slice_ends),
    (c"caml_finalise_begin_hook", finalisers_begin),
    (c"caml_finalise_end_hook", finalisers_end),
];

extern "C" fn minor_begins() {
    edge(0, SliceKind::Minor, Edge::Begin);
}

extern "C" fn minor_ends() {
    edge(1, SliceKind::Minor, Edge::End);
}

extern "C" fn slice_begins() {
    edge(2, SliceKind::Major, Edge::Begin);
}

extern "C" fn slice_ends() {
    edge(3, SliceKind::Major, Edge::End);
}

extern "C" fn finalisers_begin() {
    edge(4, SliceKind::Finalisers, Edge::Begin);
}

extern "C" fn finalisers_end() {
    edge(5, SliceKind::Finalisers, Edge::End);
}

fn edge(index: usize, kind: SliceKind, edge: Edge) {
    if let Some(report) = REPORT.get() {
        report(kind, edge);
    }
    let before = BEFORE.get(index).map_or(0, |before| before.load(Ordering::Relaxed));
    if before != 0 {
        // SAFETY: a `caml_timing_hook`, `void (*)(void)`, that was in the variable.
        let before = unsafe { std::mem::transmute::<usize, extern "C" fn()>(before) };
        before();
    }
}

/// Sets the hooks. Once in a process, before the runtime collects. A runtime without one of the variables
/// has no such slices in its time line.
pub(super) fn set_hooks(report: Report) {
    if REPORT.set(report).is_err() {
        return;
    }
    for ((name, ours), before) in HOOKS.into_iter().zip(&BEFORE) {
        let Some(address) = lookup(name) else { continue };
        // SAFETY: a variable of the runtime that holds a pointer to a function, and is read
        // when that is called; never unloaded.
        let hook = unsafe { &*(address as *const AtomicUsize) };
        before.store(hook.load(Ordering::Relaxed), Ordering::Relaxed);
        hook.store(ours as usize, Ordering::Release);
    }
}
