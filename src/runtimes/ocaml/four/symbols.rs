//! What is used of the runtime of OCaml 4.

use std::ffi::{CStr, c_int, c_void};

use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::hook_table::{RuntimeFunction, hook_table};
use crate::runtimes::attach::symbols::{Symbol, functions, lookup, needed};

hook_table! {
    /// The profiler's functions (`runtime/caml/memprof.h`, 4.14.1) that are
    /// replaced: they share state that hooks do not keep. Not those that make, leave and delete the
    /// context of a thread, which stays the runtime's own.
    pub(super) trait ProfilerHooks replaces ProfilerFunctions {
        /// A sample falls on what was just allocated in the young heap: one block, or
        /// `count` in one go with these encoded lengths. The young pointer was moved
        /// already, and must not be touched (`caml_alloc_small_dispatch`,
        /// `runtime/minor_gc.c`).
        fn caml_memprof_track_young(
            wosize: usize,
            from_caml: c_int,
            count: c_int,
            lengths: *const u8,
        );
        /// A block was allocated in the major heap (`runtime/memory.c`).
        fn caml_memprof_track_alloc_shr(block: usize);
        /// A custom block owns memory outside the heap (`runtime/custom.c`), which dies
        /// with it.
        fn caml_memprof_track_custom(block: usize, bytes: usize);
        /// Blocks were read from marshalled data, one behind the other from `start` to
        /// `end`, all young or all major (`runtime/intern.c`).
        fn caml_memprof_track_interned(start: *const usize, end: *const usize);
        /// The young heap was emptied or replaced, or an allocation must not be sampled.
        fn caml_memprof_renew_minor_sample();
        /// Young blocks were promoted or are dead (`caml_empty_minor_heap`,
        /// `runtime/minor_gc.c`).
        fn caml_memprof_minor_update();
        /// Marking is done (`mark_slice`, `runtime/major_gc.c`).
        fn caml_memprof_update_clean_phase();
        /// The heap is being compacted (`do_compaction`, `runtime/compact.c`): it wants
        /// every word that holds an address, and changes them all by the end. No other
        /// hook is called until then.
        fn caml_memprof_invert_tracked();
        /// The profiler's young roots are promoted.
        fn caml_memprof_oldify_young_roots();
        /// The profiler's roots are scanned.
        fn caml_memprof_do_roots(action: *mut c_void);
        /// Callbacks that could not run before run now.
        fn caml_memprof_handle_postponed_exn() -> usize;
        /// `Gc.Memprof.start`. Raises.
        fn caml_memprof_start(rate: usize, depth: usize, tracker: usize) -> usize;
        /// `Gc.Memprof.stop`. Raises.
        fn caml_memprof_stop(unit: usize) -> usize;
    }
}

/// All that is used of a runtime.
pub(super) struct Runtime {
    /// Those to be replaced.
    pub(super) functions: ProfilerFunctions,
    /// `caml_memprof_enter_thread`: the thread with this context goes on.
    pub(super) enter_thread: RuntimeFunction<EnterThread>,
    /// `caml_memprof_set_suspended`: while an uncaught exception is printed nothing is sampled
    /// (`runtime/printexc.c`).
    pub(super) set_suspended: RuntimeFunction<SetSuspended>,
    /// `Caml_state`: points to the state.
    pub(super) state: usize,
    /// `caml_memprof_young_trigger`.
    pub(super) young_trigger: usize,
    /// `caml_something_to_do`, an int.
    pub(super) something_to_do: usize,
    pub(super) update_young_limit: usize,
    pub(super) invert_root: usize,
    pub(super) failwith: usize,
    /// Native code's entry to C; none in bytecode.
    pub(super) c_call: Option<Symbol>,
    /// `caml_garbage_collection` (`runtime/signals_nat.c`), where native code goes when
    /// an allocation leads below the young limit; none in bytecode. May raise.
    pub(super) gc_entry: Option<RuntimeFunction<GcEntryFunction>>,
    /// `caml_frametable`; none in bytecode.
    pub(super) frame_tables: Option<usize>,
}

/// `void caml_garbage_collection (void)`.
pub(super) type GcEntryFunction = extern "C-unwind" fn();

/// `void caml_memprof_enter_thread (struct caml_memprof_th_ctx *)`.
pub(super) type EnterThread = extern "C" fn(*mut c_void);

/// `void caml_memprof_set_suspended (int)`.
pub(super) type SetSuspended = extern "C" fn(c_int);

const ENTER_THREAD: &CStr = c"caml_memprof_enter_thread";
const SET_SUSPENDED: &CStr = c"caml_memprof_set_suspended";
const GC_ENTRY: &CStr = c"caml_garbage_collection";

/// The runtime in this program.
pub(super) fn find() -> Result<Runtime, Refusal> {
    let also = [c"caml_c_call", GC_ENTRY, ENTER_THREAD, SET_SUSPENDED];
    let (functions, [c_call, gc_entry, enter_thread, set_suspended]) =
        functions(ProfilerFunctions::NAMES, also)?;
    let measured = |symbol: Option<Symbol>, name| {
        symbol.filter(|symbol| symbol.size > 0).ok_or(Refusal::Symbol(name))
    };
    Ok(Runtime {
        functions: ProfilerFunctions::found(functions),
        enter_thread: RuntimeFunction::new(ENTER_THREAD, measured(enter_thread, ENTER_THREAD)?),
        set_suspended: RuntimeFunction::new(SET_SUSPENDED, measured(set_suspended, SET_SUSPENDED)?),
        state: needed(c"Caml_state")?,
        young_trigger: needed(c"caml_memprof_young_trigger")?,
        something_to_do: needed(c"caml_something_to_do")?,
        update_young_limit: needed(c"caml_update_young_limit")?,
        invert_root: needed(c"caml_invert_root")?,
        failwith: needed(c"caml_failwith")?,
        c_call,
        gc_entry: gc_entry
            .filter(|symbol| symbol.size > 0)
            .map(|symbol| RuntimeFunction::new(GC_ENTRY, symbol)),
        frame_tables: lookup(c"caml_frametable"),
    })
}
