//! What snapshots use of the runtime.

use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::{Symbol, code_of, function, functions, lookup, needed};
use crate::runtimes::ocaml::MajorVersion;
use crate::runtimes::ocaml::four::layout::{KnownRelease, StateLayout};
use crate::runtimes::ocaml::four::proof::Proved;
use crate::runtimes::ocaml::heap::scan::Action;
use crate::runtimes::ocaml::heap::{CodeKind, Words};
use crate::tracer::WORD;

/// A function that reports roots.
pub(super) type Scan = extern "C" fn(Action);

/// A function that reports those of a stack.
pub(super) type ScanStack = extern "C" fn(Action, usize, usize, usize, usize);

/// Addresses of variables and functions of the runtime.
pub(super) struct Variables {
    /// `Caml_state`
    state: usize,
    pub(super) known: &'static KnownRelease,
    /// That of its state.
    pub(super) layout: &'static StateLayout,
    pub(super) code: CodeKind,
    /// `caml_do_local_roots_nat`, in native code.
    pub(super) scan_stack: Option<ScanStack>,
    /// `caml_heap_start`
    pub(super) heap_start: usize,
    /// `caml_gc_phase`
    pub(super) gc_phase: usize,
    /// `caml_gc_sweep_hp`
    pub(super) sweep_position: usize,
    /// `caml_minor_gc_end_hook`
    pub(super) minor_gc_end_hook: usize,
    /// `caml_enter_blocking_section_hook` and `caml_leave_blocking_section_hook`
    pub(super) blocking_hooks: [usize; 2],
    /// `caml_scan_roots_hook`
    pub(super) scan_roots_hook: usize,
    /// `caml_ephe_list_head`
    pub(super) ephemerons: usize,
    /// `caml_ephe_none`
    pub(super) ephemeron_none: usize,
    /// `caml_scan_global_roots`
    pub(super) scan_global_roots: Scan,
    /// `caml_final_do_roots`
    pub(super) scan_finalisers: Scan,
    /// `caml_memprof_do_roots`
    pub(super) scan_profiler: Scan,
    /// `caml_do_roots`: all roots, with or without those of modules.
    pub(super) scan_all: extern "C" fn(Action, i32),
    /// `caml_empty_minor_heap`
    empty_minor_heap: extern "C" fn(),
    /// `caml_finish_major_cycle`
    finish_major_cycle: extern "C" fn(),
    /// `caml_memprof_enter_thread`
    enter_profiler: extern "C" fn(usize),
    /// `caml_memprof_main_ctx`
    profiler_context: usize,
    /// `caml_cleanup_on_exit`
    pub(super) cleans_up: usize,
    /// `caml_final_register` and `caml_final_register_called_without_value`
    pub(super) register_finaliser: [usize; 2],
    /// Whether `caml_request_minor_gc` sets the word of the state that is known for that.
    pub(super) can_request: bool,
    /// `caml_garbage_collection`, which native code calls where it polls.
    pub(super) poll_entry: Option<usize>,
}

impl Variables {
    /// Before `main`, or when the runtime starts.
    pub(super) fn find(proved: Proved) -> Result<Variables, Refusal> {
        let (_, [request]) = functions([], [c"caml_request_minor_gc"])?;
        Ok(Variables {
            state: needed(c"Caml_state")?,
            known: proved.known,
            layout: &proved.known.state,
            code: CodeKind::find(MajorVersion::Four, proved.is_native)?,
            scan_stack: if proved.is_native {
                // SAFETY: takes an action and four words (`runtime/caml/roots.h`).
                Some(unsafe { function(c"caml_do_local_roots_nat")? })
            } else {
                None
            },
            heap_start: needed(c"caml_heap_start")?,
            gc_phase: needed(c"caml_gc_phase")?,
            sweep_position: needed(c"caml_gc_sweep_hp")?,
            minor_gc_end_hook: needed(c"caml_minor_gc_end_hook")?,
            blocking_hooks: [
                needed(c"caml_enter_blocking_section_hook")?,
                needed(c"caml_leave_blocking_section_hook")?,
            ],
            scan_roots_hook: needed(c"caml_scan_roots_hook")?,
            ephemerons: needed(c"caml_ephe_list_head")?,
            ephemeron_none: needed(c"caml_ephe_none")?,
            // SAFETY: `void caml_scan_global_roots (scanning_action)`, `globroots.h`.
            scan_global_roots: unsafe { function(c"caml_scan_global_roots")? },
            // SAFETY: `void caml_final_do_roots (scanning_action)`, `finalise.h`.
            scan_finalisers: unsafe { function(c"caml_final_do_roots")? },
            // SAFETY: `void caml_memprof_do_roots (scanning_action)`, `memprof.h`.
            scan_profiler: unsafe { function(c"caml_memprof_do_roots")? },
            // SAFETY: `void caml_do_roots (scanning_action, int)`, `runtime/caml/roots.h`.
            scan_all: unsafe { function(c"caml_do_roots")? },
            // SAFETY: `void caml_empty_minor_heap (void)`, `minor_gc.h`.
            empty_minor_heap: unsafe { function(c"caml_empty_minor_heap")? },
            // SAFETY: `void caml_finish_major_cycle (void)`, `major_gc.h`.
            finish_major_cycle: unsafe { function(c"caml_finish_major_cycle")? },
            // SAFETY: `void caml_memprof_enter_thread (struct caml_memprof_th_ctx *)`.
            enter_profiler: unsafe { function(c"caml_memprof_enter_thread")? },
            profiler_context: needed(c"caml_memprof_main_ctx")?,
            cleans_up: needed(c"caml_cleanup_on_exit")?,
            register_finaliser: [
                needed(c"caml_final_register")?,
                needed(c"caml_final_register_called_without_value")?,
            ],
            can_request: request.is_some_and(|request| requests(request, &proved.known.state)),
            poll_entry: lookup(c"caml_garbage_collection").filter(|_| proved.is_native),
        })
    }

    /// Collects everything that is dead. What dies in the middle of a cycle is kept by that one
    /// and by the next.
    pub(super) fn collect(&self) {
        // In a blocking section the profiler has no context, and the collector wants one.
        (self.enter_profiler)(self.profiler_context);
        (self.empty_minor_heap)();
        for _ in 0..3 {
            (self.finish_major_cycle)();
        }
    }

    /// Where a word of the runtime's state is; `None` before the runtime has a state.
    pub(super) fn state_word(&self, index: usize) -> Option<*mut usize> {
        // SAFETY: `Caml_state` is a variable of the runtime, which is never unloaded.
        let state = unsafe { (self.state as *const usize).read() };
        (state != 0).then(|| (state + index * WORD) as *mut usize)
    }

    /// A word of the runtime's state.
    pub(super) fn state(&self, words: Words, index: usize) -> usize {
        words.field(words.word(self.state), index)
    }
}

/// Whether the function stores 1 in the word of the state that asks for a minor collection.
fn requests(function: Symbol, layout: &StateLayout) -> bool {
    let offset = (layout.requested_minor_gc as u32 * WORD as u32).to_le_bytes();
    // mov qword ptr [reg + disp32], 1
    code_of(function, 32).windows(11).any(|bytes| {
        bytes.starts_with(&[0x48, 0xc7])
            && bytes[2] & 0xf8 == 0x80
            && bytes[3..7] == offset
            && bytes[7..] == [1, 0, 0, 0]
    })
}
