//! How the stack is walked.
//!
//! Native code is walked by the frame tables, from where OCaml last called C. With
//! `HEAPTAP_UNWINDER=runtime` the runtime's own unwinder is used instead, which is
//! slower: two traces with the same seed, one by each, must be equal.
//!
//! In bytecode codes are offsets into the bytecode.

use std::ptr;

use super::layout::StateLayout;
use super::proof::Proved;
use super::state::State;
use super::symbols::Runtime;
use crate::runtimes::attach::symbols::{function_at, lookup};
use crate::runtimes::ocaml::backtrace::Backtrace;
use crate::runtimes::ocaml::bytecode::{BytecodeStack, Code, HandlerLink};
use crate::runtimes::ocaml::frames;
use crate::tracer::{StackLocator, StackSource, StackTop};

/// Where backtraces come from in this runtime.
pub(super) fn stack_source(runtime: &Runtime, proved: Proved) -> StackSource {
    let state = State::of(runtime, proved);
    let asked = frames::asks_runtime();
    if !proved.is_native {
        let Some(code) = Code::find() else { return StackSource::None };
        if asked && let Some(next) = lookup(c"caml_next_frame_pointer") {
            return StackSource::Own(Box::new(move |room| {
                bytecode_by_runtime(code, state, next, room)
            }));
        }
        return StackSource::Own(Box::new(move |room| bytecode(code, state, room)));
    }
    if asked && let Some(next) = lookup(c"caml_next_frame_descriptor") {
        return StackSource::Own(Box::new(move |room| by_runtime(state, next, room)));
    }
    let locate = |pointer: usize, layout: usize| {
        // SAFETY: the address of a static, passed below.
        let layout = unsafe { &*(layout as *const StateLayout) };
        innermost(State { pointer: pointer as *const *const usize, layout })
    };
    let arguments = [runtime.state, ptr::from_ref(&proved.known.state) as usize];
    StackSource::Tables(StackLocator { locate, arguments })
}

/// The innermost OCaml frame: `caml_collect_current_callstack` in
/// `runtime/backtrace_nat.c` begins there too.
fn innermost(state: State) -> StackTop {
    let sp = state.word(state.layout.bottom_of_stack) as u64;
    // The stack pointer is NULL until OCaml code first calls C.
    let return_address = if sp == 0 { 0 } else { state.last_return_address() };
    StackTop { return_address, sp, native_limit: 0 }
}

/// Walks with `caml_next_frame_descriptor` (`runtime/backtrace_nat.c`).
fn by_runtime(state: State, next: usize, room: &mut [u64]) -> usize {
    // SAFETY: `frame_descr * caml_next_frame_descriptor(uintnat *, char **)`.
    let next: extern "C" fn(*mut u64, *mut u64) -> *const u64 = unsafe { function_at(next) };
    let StackTop { mut return_address, mut sp, .. } = innermost(state);
    let mut backtrace = Backtrace::new(room);
    while sp != 0 {
        let descriptor = next(&raw mut return_address, &raw mut sp);
        if descriptor.is_null() {
            break;
        }
        // SAFETY: a descriptor begins with its return address.
        backtrace.push(unsafe { descriptor.read() });
    }
    backtrace.depth
}

/// Walks with `caml_next_frame_pointer` (`runtime/backtrace_byt.c`).
fn bytecode_by_runtime(code: Code, state: State, next: usize, room: &mut [u64]) -> usize {
    // SAFETY: `code_t caml_next_frame_pointer(value **, value **)`.
    let next: extern "C" fn(*mut usize, *mut usize) -> usize = unsafe { function_at(next) };
    let (mut sp, mut trap) = (state.word(state.layout.extern_sp), state.word(state.layout.trapsp));
    let mut backtrace = Backtrace::new(room);
    while sp != 0 {
        let address = next(&raw mut sp, &raw mut trap);
        if address == 0 {
            break;
        }
        backtrace.push(code.now().frame(address).unwrap_or(0));
    }
    backtrace.depth
}

/// As `caml_next_frame_pointer` in `runtime/backtrace_byt.c`.
fn bytecode(code: Code, state: State, room: &mut [u64]) -> usize {
    let StateLayout { extern_sp, stack_high, trapsp, .. } = *state.layout;
    let [sp, high, handler] = [extern_sp, stack_high, trapsp].map(|index| state.word(index));
    if sp == 0 {
        return 0;
    }
    let mut backtrace = Backtrace::new(room);
    let stack = BytecodeStack { sp, high, handler, link: HandlerLink::FromHandler };
    // SAFETY: from its pointer to its end the stack of the thread that runs the hook.
    unsafe { backtrace.push_bytecode(code.now(), stack) };
    backtrace.depth
}
