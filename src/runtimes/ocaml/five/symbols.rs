//! What is used of the runtime of OCaml 5.

use std::ffi::{c_int, c_void};
use std::mem::transmute;

use crate::runtimes::attach::hook_table::hook_table;
use crate::runtimes::attach::refusal::Refusal;
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
    /// The profiler's functions (`runtime/caml/memprof.h`, 5.3.0), all of which are
    /// replaced, the one that calls it for samples in the young heap, and the one that
    /// is called when a minor collection is over in all domains. `state` is a `caml_domain_state *`, `thread` a `memprof_thread_t`.
    pub(super) trait ProfilerHooks replaces ProfilerFunctions {
        /// Not the profiler's (`runtime/minor_gc.c`): an allocation has moved the young
        /// pointer below the limit.
        fn caml_alloc_small_dispatch(
            state: usize,
            wosize: usize,
            flags: c_int,
            count: c_int,
            lengths: *const u8,
        );
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
        /// While an uncaught exception is printed nothing is sampled
        /// (`runtime/printexc.c`).
        fn caml_memprof_update_suspended(suspended: bool);
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
        /// A domain begins: on its thread, before it allocates anything.
        fn caml_memprof_new_domain(parent: usize, child: usize);
        /// A domain ends, or could not be started.
        fn caml_memprof_delete_domain(state: usize);
        /// A thread of a domain is about to begin. NULL makes its creation fail.
        fn caml_memprof_new_thread(state: usize) -> *mut c_void;
        /// The first thread of a domain.
        fn caml_memprof_main_thread(state: usize) -> *mut c_void;
        /// The thread goes on.
        fn caml_memprof_enter_thread(thread: *mut c_void);
        /// The thread is over.
        fn caml_memprof_delete_thread(thread: *mut c_void);
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

/// A function of the runtime without parameters or result.
type Procedure = unsafe extern "C" fn();
/// `caml_do_pending_actions_res` (`runtime/signals.c`).
type DoPending = unsafe extern "C" fn() -> CamlResult;
/// `caml_ev_counter` (`runtime/runtime_events.c`).
type CountEvent = unsafe extern "C" fn(c_int, u64);
/// `caml_raise` (`runtime/caml/fail.h`). Does not return.
type Raise = unsafe extern "C-unwind" fn(usize);

/// What the runtime's `caml_alloc_small_dispatch` calls. The first may run callbacks.
#[derive(Clone, Copy)]
pub(super) struct Dispatching {
    pub(super) do_pending_actions: DoPending,
    pub(super) handle_gc_interrupt: Procedure,
    pub(super) poll_gc_work: Procedure,
    pub(super) count_event: CountEvent,
    pub(super) raise: Raise,
}

impl Dispatching {
    fn find() -> Result<Dispatching, Refusal> {
        let pending = needed(c"caml_do_pending_actions_res")?;
        let interrupt = needed(c"caml_handle_gc_interrupt")?;
        let poll = needed(c"caml_poll_gc_work")?;
        let (counter, raise) = (needed(c"caml_ev_counter")?, needed(c"caml_raise")?);
        Ok(Dispatching {
            // SAFETY: `caml_result caml_do_pending_actions_res (void)`.
            do_pending_actions: unsafe { transmute::<usize, DoPending>(pending) },
            // SAFETY: `void caml_handle_gc_interrupt (void)`, `runtime/domain.c`.
            handle_gc_interrupt: unsafe { transmute::<usize, Procedure>(interrupt) },
            // SAFETY: `void caml_poll_gc_work (void)`, `runtime/domain.c`.
            poll_gc_work: unsafe { transmute::<usize, Procedure>(poll) },
            // SAFETY: `void caml_ev_counter (ev_runtime_counter, uint64_t)`.
            count_event: unsafe { transmute::<usize, CountEvent>(counter) },
            // SAFETY: `void caml_raise (value)`.
            raise: unsafe { transmute::<usize, Raise>(raise) },
        })
    }
}

/// All that is used of a runtime.
#[derive(Clone, Copy)]
pub(super) struct Runtime {
    /// Those to be replaced.
    pub(super) functions: ProfilerFunctions,
    pub(super) dispatching: Dispatching,
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
    let (functions, [c_call]) = functions(ProfilerFunctions::NAMES, [c"caml_c_call"])?;
    Ok(Runtime {
        functions: ProfilerFunctions::found(functions),
        dispatching: Dispatching::find()?,
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
