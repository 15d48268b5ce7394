//! What is used of the runtime of OCaml 5.

use std::ffi::{CStr, c_int, c_void};

use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::hook_table::{RuntimeFunction, hook_table};
use crate::runtimes::attach::symbols::{self, Symbol, functions, lookup, needed};
use crate::runtimes::attach::thread_pointer::thread_pointer;

/// `scanning_action` (`runtime/caml/roots.h`).
pub(super) type ScanningAction = extern "C" fn(data: *mut c_void, value: usize, at: *mut usize);

/// `caml_result` (`runtime/caml/mlvalues.h`).
#[repr(C)]
pub(super) struct CamlResult {
    pub(super) is_exception: c_int,
    pub(super) data: usize,
}

hook_table! {
    /// The profiler's functions (`runtime/caml/memprof.h`, 5.3.0) that are
    /// replaced, and the one that is called when a minor collection is over in all domains.
    /// `state` is a `caml_domain_state *`.
    pub(super) trait ProfilerHooks replaces ProfilerFunctions {
        /// A sample falls on what is about to be allocated in the young heap: one block,
        /// or `count` in one go with these encoded lengths. The young pointer was moved
        /// already, and must not be touched. Only `caml_alloc_small_dispatch` calls it.
        fn caml_memprof_sample_young(
            wosize: usize,
            from_caml: c_int,
            count: c_int,
            lengths: *const u8,
        );
        /// A block was allocated in the major heap, read from marshalled data, or owns
        /// memory outside the heap, which dies with the block.
        fn caml_memprof_sample_block(block: usize, allocated: usize, words: usize, source: c_int);
        /// The young heap was emptied or replaced, or an allocation must not be sampled.
        /// The caller updates the young limit.
        fn caml_memprof_set_trigger(state: usize);
        /// The profiler's roots are scanned; with `weak` when the heap is compacted, and
        /// the addresses of blocks change (`caml_compact_heap`, `runtime/shared_heap.c`).
        fn caml_memprof_scan_roots(
            action: ScanningAction,
            flags: c_int,
            data: *mut c_void,
            state: usize,
            weak: bool,
        );
        /// This domain has promoted its survivors. Other domains may still be promoting.
        fn caml_memprof_after_minor_gc(state: usize);
        /// Marking is done in all domains, which stand still (`stw_cycle_all_domains`,
        /// `runtime/major_gc.c`).
        fn caml_memprof_after_major_gc(state: usize);
        /// Callbacks that could not run before run now.
        fn caml_memprof_run_callbacks_res() -> CamlResult;
        /// `Gc.Memprof.start`. Raises.
        fn caml_memprof_start(rate: usize, depth: usize, tracker: usize) -> usize;
        /// `Gc.Memprof.stop`. Raises.
        fn caml_memprof_stop(unit: usize) -> usize;
        /// `Gc.Memprof.discard`. Raises.
        fn caml_memprof_discard(profile: usize) -> usize;
        /// Not the profiler's (`runtime/finalise.c`): called when all domains are through
        /// with a minor collection and this one has not gone on yet.
        fn caml_final_empty_young(state: usize);
    }
}

/// `caml_memprof_new_domain`: a domain begins, on its thread, before it allocates anything.
pub(super) type NewDomain = extern "C" fn(parent: usize, child: usize);
/// `caml_memprof_delete_domain`: a domain ends, or could not be started.
pub(super) type DeleteDomain = extern "C" fn(state: usize);
/// `caml_memprof_enter_thread`: the thread goes on.
pub(super) type EnterThread = extern "C" fn(thread: *mut c_void);
/// `caml_memprof_update_suspended`: while an uncaught exception is printed nothing is sampled
/// (`runtime/printexc.c`).
pub(super) type UpdateSuspended = extern "C" fn(suspended: bool);

/// The profiler's functions that hooks call: they keep what the runtime has of domains and
/// threads, which is its own in a session too.
#[derive(Clone, Copy)]
pub(super) struct WrappedFunctions {
    pub(super) new_domain: RuntimeFunction<NewDomain>,
    pub(super) delete_domain: RuntimeFunction<DeleteDomain>,
    pub(super) enter_thread: RuntimeFunction<EnterThread>,
    pub(super) update_suspended: RuntimeFunction<UpdateSuspended>,
}

const WRAPPED: [&CStr; 4] = [
    c"caml_memprof_new_domain",
    c"caml_memprof_delete_domain",
    c"caml_memprof_enter_thread",
    c"caml_memprof_update_suspended",
];

/// `caml_alloc_small_dispatch` (`runtime/minor_gc.c`): an allocation has moved the young pointer of
/// `state` below the limit. Words without the first header, flags, how many blocks, and their
/// encoded lengths. May raise.
pub(super) type SmallDispatch =
    extern "C-unwind" fn(state: usize, wosize: usize, c_int, count: c_int, lengths: *const u8);

const SMALL_DISPATCH: &CStr = c"caml_alloc_small_dispatch";

/// All that is used of a runtime.
#[derive(Clone, Copy)]
pub(super) struct Runtime {
    /// Those to be replaced.
    pub(super) functions: ProfilerFunctions,
    pub(super) wrapped: WrappedFunctions,
    /// The one that calls the profiler for samples in the young heap.
    pub(super) small_dispatch: RuntimeFunction<SmallDispatch>,
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

/// The runtime in this program.
pub(super) fn find() -> Result<Runtime, Refusal> {
    if symbols::is_late() {
        // Its `caml_state` has a place of its own in each thread.
        return Err(Refusal::Layout("a runtime of OCaml 5 that came after the program's start"));
    }
    let also = [c"caml_c_call", SMALL_DISPATCH];
    let (functions, [c_call, small_dispatch]) = functions(ProfilerFunctions::NAMES, also)?;
    let (wrapped, []) = symbols::functions(WRAPPED, [])?;
    let [new_domain, delete_domain, enter_thread, update_suspended] = wrapped;
    let [new_name, delete_name, enter_name, update_name] = WRAPPED;
    let small_dispatch = small_dispatch.filter(|symbol| symbol.size > 0);
    Ok(Runtime {
        functions: ProfilerFunctions::found(functions),
        wrapped: WrappedFunctions {
            new_domain: RuntimeFunction::new(new_name, new_domain),
            delete_domain: RuntimeFunction::new(delete_name, delete_domain),
            enter_thread: RuntimeFunction::new(enter_name, enter_thread),
            update_suspended: RuntimeFunction::new(update_name, update_suspended),
        },
        small_dispatch: RuntimeFunction::new(
            SMALL_DISPATCH,
            small_dispatch.ok_or(Refusal::Symbol(SMALL_DISPATCH))?,
        ),
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
