//! What snapshots use of the runtime.

use std::ffi::CStr;

use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::symbols::{Symbol, functions, lookup, needed};
use crate::runtimes::ocaml::bytecode::Code;
use crate::runtimes::ocaml::descriptors::Descriptors;
use crate::runtimes::ocaml::four::layout::{KnownRelease, StateLayout};
use crate::runtimes::ocaml::four::proof::Proved;
use crate::runtimes::ocaml::heap::scan::Action;
use crate::runtimes::ocaml::heap::words::Words;
use crate::runtimes::ocaml::version::MajorVersion;
use crate::tracer::WORD;

/// A function that reports roots.
pub(super) type Scan = extern "C" fn(Action);

/// Addresses of variables and functions of the runtime.
pub(super) struct Variables {
    /// `Caml_state`
    state: usize,
    pub(super) known: &'static KnownRelease,
    /// That of its state.
    pub(super) layout: &'static StateLayout,
    pub(super) code: CodeKind,
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
    /// `caml_empty_minor_heap` and `caml_finish_major_cycle`
    collections: [extern "C" fn(); 2],
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

/// What only one kind of program has.
pub(super) enum CodeKind {
    Native {
        /// `caml_globals`
        globals: usize,
        descriptors: Descriptors,
        /// `caml_do_local_roots_nat`
        scan_stack: extern "C" fn(Action, usize, usize, usize, usize),
    },
    Bytecode {
        /// `caml_global_data`
        global_data: usize,
        /// Where the bytecode is, if that is known.
        code: Option<Code>,
    },
}

impl Variables {
    /// Before `main`, or when the runtime starts.
    pub(super) fn find(proved: Proved) -> Result<Variables, Refusal> {
        let (_, [request]) = functions([], [c"caml_request_minor_gc"])?;
        Ok(Variables {
            state: needed(c"Caml_state")?,
            known: proved.known,
            layout: &proved.known.state,
            code: if proved.is_native { native()? } else { bytecode()? },
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
            scan_global_roots: scan(c"caml_scan_global_roots")?,
            scan_finalisers: scan(c"caml_final_do_roots")?,
            scan_profiler: scan(c"caml_memprof_do_roots")?,
            // SAFETY: `void caml_do_roots (scanning_action, int)`, `runtime/caml/roots.h`.
            scan_all: unsafe {
                std::mem::transmute::<usize, extern "C" fn(Action, i32)>(needed(c"caml_do_roots")?)
            },
            collections: [
                collection(c"caml_empty_minor_heap")?,
                collection(c"caml_finish_major_cycle")?,
            ],
            // SAFETY: `void caml_memprof_enter_thread (struct caml_memprof_th_ctx *)`.
            enter_profiler: unsafe {
                std::mem::transmute::<usize, extern "C" fn(usize)>(needed(
                    c"caml_memprof_enter_thread",
                )?)
            },
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

    pub(super) fn is_native(&self) -> bool {
        matches!(self.code, CodeKind::Native { .. })
    }

    /// `caml_globals`, in native code.
    pub(super) fn native_globals(&self) -> Option<usize> {
        match self.code {
            CodeKind::Native { globals, .. } => Some(globals),
            CodeKind::Bytecode { .. } => None,
        }
    }

    /// Collects everything that is dead. What dies in the middle of a cycle is kept by that one
    /// and by the next.
    pub(super) fn collect(&self) {
        let [empty_minor_heap, finish_major_cycle] = self.collections;
        // In a blocking section the profiler has no context, and the collector wants one.
        (self.enter_profiler)(self.profiler_context);
        empty_minor_heap();
        for _ in 0..3 {
            finish_major_cycle();
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

fn scan(name: &'static CStr) -> Result<Scan, Refusal> {
    let address = needed(name)?;
    // SAFETY: the three functions that this is called with are declared as
    // `void … (scanning_action)` (`globroots.h`, `finalise.h` and `memprof.h`, 4.14.1).
    Ok(unsafe { std::mem::transmute::<usize, Scan>(address) })
}

fn collection(name: &'static CStr) -> Result<extern "C" fn(), Refusal> {
    let address = needed(name)?;
    // SAFETY: the two functions that this is called with are declared as `void … (void)`
    // (`minor_gc.h` and `major_gc.h`, 4.14.1).
    Ok(unsafe { std::mem::transmute::<usize, extern "C" fn()>(address) })
}

fn native() -> Result<CodeKind, Refusal> {
    type ScanStack = extern "C" fn(Action, usize, usize, usize, usize);
    let descriptors = Descriptors::find(MajorVersion::Four)
        .ok_or(Refusal::Layout("the index of frame descriptors"))?;
    let scan_stack = needed(c"caml_do_local_roots_nat")?;
    Ok(CodeKind::Native {
        globals: needed(c"caml_globals")?,
        descriptors,
        // SAFETY: takes an action and four words (`runtime/caml/roots.h`).
        scan_stack: unsafe { std::mem::transmute::<usize, ScanStack>(scan_stack) },
    })
}

fn bytecode() -> Result<CodeKind, Refusal> {
    Ok(CodeKind::Bytecode { global_data: needed(c"caml_global_data")?, code: Code::find() })
}

/// Whether the function stores 1 in the word of the state that asks for a minor collection.
fn requests(function: Symbol, layout: &StateLayout) -> bool {
    const MOST: usize = 32;
    let length = function.size.min(MOST);
    // SAFETY: the code of a function of the runtime, which has this size by the symbol or
    // unwind table of its image, and is never unmapped.
    let code = unsafe { std::slice::from_raw_parts(function.address as *const u8, length) };
    let offset = (layout.requested_minor_gc as u32 * WORD as u32).to_le_bytes();
    // mov qword ptr [reg + disp32], 1
    code.windows(11).any(|bytes| {
        bytes.starts_with(&[0x48, 0xc7])
            && bytes[2] & 0xf8 == 0x80
            && bytes[3..7] == offset
            && bytes[7..] == [1, 0, 0, 0]
    })
}
