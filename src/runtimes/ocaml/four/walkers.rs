//! How the stack is walked.
//!
//! Native code by the frame tables, from where OCaml last called C. With
//! `HEAPTAP_UNWINDER=runtime` the runtime's own unwinder is asked instead, which
//! is slower: two traces of one seed, one by each, must be the same.
//!
//! In bytecode the stack is an array of words in which return addresses are
//! recognised by where they point, and codes are offsets into the bytecode.

use super::layout::{BOTTOM_OF_STACK, EXTERN_SP, LAST_RETURN_ADDRESS, Layout, STACK_HIGH, TRAP_SP};
use super::symbols::Runtime;
use crate::runtimes::attach::symbols;
use crate::runtimes::ocaml::bytecode::Code;
use crate::runtimes::ocaml::frames;
use crate::tracer::{StackLocator, StackSource, StackTop};

/// The way for this runtime.
pub(super) fn way(runtime: &Runtime, layout: Layout) -> StackSource {
    let state = runtime.state;
    let asked = frames::asks_runtime();
    if !layout.native {
        let Some(code) = Code::find() else { return StackSource::None };
        if asked && let Some(next) = symbols::lookup(c"caml_next_frame_pointer") {
            return StackSource::Own(Box::new(move |room| {
                bytecode_by_runtime(code, state, next, room)
            }));
        }
        return StackSource::Own(Box::new(move |room| bytecode(code, state, room)));
    }
    if asked && let Some(next) = symbols::lookup(c"caml_next_frame_descriptor") {
        return StackSource::Own(Box::new(move |room| by_runtime(state, next, room)));
    }
    StackSource::Tables(StackLocator { locate: |state, _| innermost(state), arguments: [state, 0] })
}

/// A word of the runtime's state, whose pointer is at `state`.
fn word(state: usize, index: usize) -> usize {
    // SAFETY: `Caml_state`, which is set before anything is allocated.
    let state = unsafe { (state as *const *const usize).read() };
    // SAFETY: a word of the state.
    unsafe { state.wrapping_add(index).read() }
}

/// Where the innermost OCaml frame is: `caml_collect_current_callstack` in
/// `runtime/backtrace_nat.c` begins there too.
fn innermost(state: usize) -> StackTop {
    let sp = word(state, BOTTOM_OF_STACK) as u64;
    // The stack pointer is NULL until OCaml code first calls C.
    let return_address = if sp == 0 { 0 } else { word(state, LAST_RETURN_ADDRESS) as u64 };
    StackTop { return_address, sp, native_limit: 0 }
}

/// Walks with `caml_next_frame_descriptor` (`runtime/backtrace_nat.c`).
fn by_runtime(state: usize, next: usize, room: &mut [u64]) -> usize {
    // SAFETY: `frame_descr * caml_next_frame_descriptor(uintnat *, char **)`.
    let next: extern "C" fn(*mut u64, *mut u64) -> *const u64 =
        unsafe { std::mem::transmute(next) };
    let StackTop { mut return_address, mut sp, .. } = innermost(state);
    let mut depth = 0;
    while sp != 0 {
        let descriptor = next(&raw mut return_address, &raw mut sp);
        if descriptor.is_null() {
            break;
        }
        if let Some(place) = room.get_mut(depth) {
            // SAFETY: a descriptor begins with its return address.
            *place = unsafe { descriptor.read() };
        }
        depth += 1;
    }
    depth
}

/// Walks with `caml_next_frame_pointer` (`runtime/backtrace_byt.c`).
fn bytecode_by_runtime(code: Code, state: usize, next: usize, room: &mut [u64]) -> usize {
    // SAFETY: `code_t caml_next_frame_pointer(value **, value **)`.
    let next: extern "C" fn(*mut usize, *mut usize) -> usize = unsafe { std::mem::transmute(next) };
    let (mut sp, mut trap) = (word(state, EXTERN_SP), word(state, TRAP_SP));
    let mut depth = 0;
    while sp != 0 {
        let address = next(&raw mut sp, &raw mut trap);
        if address == 0 {
            break;
        }
        if let Some(place) = room.get_mut(depth) {
            *place = code.now().frame(address).unwrap_or(0);
        }
        depth += 1;
    }
    depth
}

/// As `caml_next_frame_pointer` in `runtime/backtrace_byt.c`: all words from the
/// stack pointer up that point into the code, but for those of exception
/// handlers.
fn bytecode(code: Code, state: usize, room: &mut [u64]) -> usize {
    let mut sp = word(state, EXTERN_SP) as *const usize;
    let high = word(state, STACK_HIGH) as *const usize;
    let mut trap = word(state, TRAP_SP) as *const usize;
    let addresses = code.now();
    let mut depth = 0;
    if sp.is_null() {
        return depth;
    }
    while sp < high {
        // SAFETY: between the stack pointer and the stack's end.
        let value = unsafe { sp.read() };
        // Most words are integers, or point into the heap.
        if value & 1 == 0 {
            if sp == trap {
                // SAFETY: the word behind a handler's address is the distance to
                // the next, as an OCaml integer of words.
                let next = unsafe { trap.wrapping_add(1).read() };
                trap = trap.wrapping_offset(next as isize >> 1);
            } else if let Some(frame) = addresses.frame(value) {
                if let Some(place) = room.get_mut(depth) {
                    *place = frame;
                }
                depth += 1;
            }
        }
        sp = sp.wrapping_add(1);
    }
    depth
}
