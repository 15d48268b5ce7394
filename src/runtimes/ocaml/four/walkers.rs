//! How the stack is walked.
//!
//! Native code is walked by the frame tables, from where OCaml last called C. With
//! `HEAPTAP_UNWINDER=runtime` the runtime's own unwinder is used instead, which is
//! slower: two traces with the same seed, one by each, must be equal.
//!
//! In bytecode the stack is an array of words in which return addresses are
//! recognised by where they point, and codes are offsets into the bytecode.

use std::ptr;

use super::layout::StateLayout;
use super::proof::Proved;
use super::symbols::Runtime;
use crate::runtimes::attach::symbols;
use crate::runtimes::ocaml::bytecode::Code;
use crate::runtimes::ocaml::frames;
use crate::tracer::{StackLocator, StackSource, StackTop};

/// Where backtraces come from in this runtime.
pub(super) fn stack_source(runtime: &Runtime, proved: Proved) -> StackSource {
    let state =
        State { pointer: runtime.state as *const *const usize, layout: &proved.known.state };
    let asked = frames::asks_runtime();
    if !proved.is_native {
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
    let locate = |pointer: usize, layout: usize| {
        // SAFETY: the address of a static, passed below.
        let layout = unsafe { &*(layout as *const StateLayout) };
        innermost(State { pointer: pointer as *const *const usize, layout })
    };
    let arguments = [runtime.state, ptr::from_ref(&proved.known.state) as usize];
    StackSource::Tables(StackLocator { locate, arguments })
}

/// The runtime's state, as long as a hook runs.
#[derive(Clone, Copy)]
struct State {
    /// `Caml_state`, which the runtime sets before it allocates anything
    /// (`caml_init_domain`, `runtime/domain.c`).
    pointer: *const *const usize,
    layout: &'static StateLayout,
}

// SAFETY: read inside hooks only, under the master lock.
unsafe impl Send for State {}

impl State {
    /// The word at an index of the layout.
    #[inline]
    fn word(self, index: usize) -> usize {
        // SAFETY: `pointer` is the address of `Caml_state`, a variable of the runtime, which
        // is never unloaded.
        let state = unsafe { self.pointer.read() };
        // SAFETY: the runtime sets `Caml_state` before the first hook, and `proof` has
        // proved that the state has this word.
        unsafe { state.wrapping_add(index).read() }
    }
}

/// The innermost OCaml frame: `caml_collect_current_callstack` in
/// `runtime/backtrace_nat.c` begins there too.
fn innermost(state: State) -> StackTop {
    let sp = state.word(state.layout.bottom_of_stack) as u64;
    // The stack pointer is NULL until OCaml code first calls C.
    let return_address =
        if sp == 0 { 0 } else { state.word(state.layout.last_return_address) as u64 };
    StackTop { return_address, sp, native_limit: 0 }
}

/// Walks with `caml_next_frame_descriptor` (`runtime/backtrace_nat.c`).
fn by_runtime(state: State, next: usize, room: &mut [u64]) -> usize {
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
fn bytecode_by_runtime(code: Code, state: State, next: usize, room: &mut [u64]) -> usize {
    // SAFETY: `code_t caml_next_frame_pointer(value **, value **)`.
    let next: extern "C" fn(*mut usize, *mut usize) -> usize = unsafe { std::mem::transmute(next) };
    let (mut sp, mut trap) = (state.word(state.layout.extern_sp), state.word(state.layout.trapsp));
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
fn bytecode(code: Code, state: State, room: &mut [u64]) -> usize {
    let mut sp = state.word(state.layout.extern_sp) as *const usize;
    let high = state.word(state.layout.stack_high) as *const usize;
    let mut trap = state.word(state.layout.trapsp) as *const usize;
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
