//! What is used of the runtime of OCaml 5.

use std::ffi::CStr;

use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::symbols::{self, Symbol, functions, lookup, needed};
use crate::runtimes::attach::thread_pointer::thread_pointer;

/// All that is used of a runtime.
#[derive(Clone, Copy)]
pub(super) struct Runtime {
    /// Those to be replaced, as in [`FUNCTIONS`].
    pub(super) functions: [Symbol; FUNCTIONS.len()],
    /// How far from the thread pointer `caml_state` lies, in every thread: it is
    /// a variable of the program or of a library it was started with.
    pub(super) state_offset: usize,
    /// `caml_global_heap_state`
    pub(super) heap_state: usize,
    pub(super) domain_terminating: usize,
    pub(super) update_limit_after_call: usize,
    pub(super) failwith: usize,
    pub(super) is_native: bool,
    /// Native code's entry to C; none in bytecode.
    pub(super) c_call: Option<Symbol>,
    /// Native code's smallest allocation; none in bytecode.
    pub(super) alloc1: Option<usize>,
}

/// The profiler's functions (`runtime/caml/memprof.h`), and the one that is
/// called when a minor collection is over in all domains.
pub(super) const FUNCTIONS: [&CStr; 18] = [
    c"caml_memprof_sample_young",
    c"caml_memprof_sample_block",
    c"caml_memprof_set_trigger",
    c"caml_memprof_update_suspended",
    c"caml_memprof_scan_roots",
    c"caml_memprof_after_minor_gc",
    c"caml_memprof_after_major_gc",
    c"caml_memprof_run_callbacks_res",
    c"caml_memprof_new_domain",
    c"caml_memprof_delete_domain",
    c"caml_memprof_new_thread",
    c"caml_memprof_main_thread",
    c"caml_memprof_enter_thread",
    c"caml_memprof_delete_thread",
    c"caml_memprof_start",
    c"caml_memprof_stop",
    c"caml_memprof_discard",
    c"caml_final_empty_young",
];

impl Runtime {
    /// Where the runtime's own function of this name is.
    pub(super) fn function(&self, name: &CStr) -> usize {
        let found = FUNCTIONS.iter().zip(&self.functions).find(|(known, _)| **known == name);
        found.map_or(0, |(_, symbol)| symbol.address)
    }
}

/// The runtime in this program.
pub(super) fn find() -> Result<Runtime, Refusal> {
    if symbols::is_late() {
        // Its `caml_state` has a place of its own in each thread.
        return Err(Refusal::Layout("a runtime of OCaml 5 that came after the program's start"));
    }
    let (functions, [c_call]) = functions(FUNCTIONS, [c"caml_c_call"])?;
    Ok(Runtime {
        functions,
        state_offset: needed(c"caml_state")?.wrapping_sub(thread_pointer()),
        heap_state: needed(c"caml_global_heap_state")?,
        domain_terminating: needed(c"caml_domain_terminating")?,
        update_limit_after_call: needed(c"caml_update_young_limit_after_c_call")?,
        failwith: needed(c"caml_failwith")?,
        is_native: lookup(c"caml_frametable").is_some(),
        c_call,
        alloc1: lookup(c"caml_alloc1"),
    })
}
