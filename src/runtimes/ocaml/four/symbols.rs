//! What is used of the runtime of OCaml 4.

use std::ffi::CStr;

use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::symbols::{Symbol, functions, lookup, needed};

/// All that is used of a runtime.
pub(super) struct Runtime {
    /// Those to be replaced, as in [`FUNCTIONS`].
    pub(super) functions: [Symbol; FUNCTIONS.len()],
    /// `Caml_state`: points to the state.
    pub(super) state: usize,
    /// `caml_memprof_young_trigger`.
    pub(super) young_trigger: usize,
    /// `caml_something_to_do`, an int.
    pub(super) something_to_do: usize,
    /// `caml_memprof_main_ctx`.
    pub(super) main_context: usize,
    pub(super) update_young_limit: usize,
    pub(super) invert_root: usize,
    pub(super) failwith: usize,
    /// Native code's entry to C; none in bytecode.
    pub(super) c_call: Option<Symbol>,
    /// [`GC_ENTRY`]; none in bytecode.
    pub(super) gc_entry: Option<Symbol>,
    /// `caml_frametable`; none in bytecode.
    pub(super) frame_tables: Option<usize>,
}

/// Where native code goes when an allocation leads below the young limit.
pub(super) const GC_ENTRY: &CStr = c"caml_garbage_collection";

/// The profiler's functions (`runtime/caml/memprof.h`), all of which are
/// replaced.
pub(super) const FUNCTIONS: [&CStr; 18] = [
    c"caml_memprof_track_young",
    c"caml_memprof_track_alloc_shr",
    c"caml_memprof_track_custom",
    c"caml_memprof_track_interned",
    c"caml_memprof_renew_minor_sample",
    c"caml_memprof_minor_update",
    c"caml_memprof_update_clean_phase",
    c"caml_memprof_invert_tracked",
    c"caml_memprof_oldify_young_roots",
    c"caml_memprof_do_roots",
    c"caml_memprof_handle_postponed_exn",
    c"caml_memprof_set_suspended",
    c"caml_memprof_new_th_ctx",
    c"caml_memprof_enter_thread",
    c"caml_memprof_leave_thread",
    c"caml_memprof_delete_th_ctx",
    c"caml_memprof_start",
    c"caml_memprof_stop",
];

/// The runtime in this program.
pub(super) fn find() -> Result<Runtime, Refusal> {
    let also = [c"caml_c_call", GC_ENTRY];
    let (functions, [c_call, gc_entry]) = functions(FUNCTIONS, also)?;
    Ok(Runtime {
        functions,
        state: needed(c"Caml_state")?,
        young_trigger: needed(c"caml_memprof_young_trigger")?,
        something_to_do: needed(c"caml_something_to_do")?,
        main_context: needed(c"caml_memprof_main_ctx")?,
        update_young_limit: needed(c"caml_update_young_limit")?,
        invert_root: needed(c"caml_invert_root")?,
        failwith: needed(c"caml_failwith")?,
        c_call,
        gc_entry,
        frame_tables: lookup(c"caml_frametable"),
    })
}
