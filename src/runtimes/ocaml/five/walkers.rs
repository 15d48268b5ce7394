//! How the stack is walked: from the domain's current stack through the chain of
//! fibers to the first.
//!
//! Native code by the frame tables, from where OCaml last called C. With
//! `HEAPTAP_UNWINDER=runtime` the runtime's own unwinder is asked instead, which
//! is slower: two traces of one seed, one by each, must be the same.
//!
//! In bytecode a stack is an array of words in which return addresses are
//! recognised by where they point.

use std::ffi::c_void;
use std::ptr;

use super::layout::{CURRENT_STACK, HANDLER_PARENT, Places, STACK_HANDLER, STACK_SP, word};
use super::symbols::Runtime;
use crate::runtimes::attach::symbols;
use crate::runtimes::ocaml::bytecode::Code;
use crate::runtimes::ocaml::frames;
use crate::sampling::WORD;
use crate::tracer::{StackLocator, StackSource, StackTop};

/// How all domains' stacks are walked.
#[derive(Clone, Copy)]
pub(super) enum Walk {
    Tables,
    /// With the place of the innermost handler's offset in a domain's state.
    Bytecode(Code, usize),
    Runtime(Unwinder),
    /// There is no way: backtraces are empty.
    None,
}

impl Walk {
    /// Chosen before `main`: later, others may change the environment.
    pub(super) fn choose(runtime: &Runtime, places: Places) -> Walk {
        let asked = frames::asks_runtime();
        if asked && let Some(unwinder) = Unwinder::find(runtime.is_native) {
            return Walk::Runtime(unwinder);
        }
        if runtime.is_native {
            return Walk::Tables;
        }
        Code::find().map_or(Walk::None, |code| Walk::Bytecode(code, places.trap_offset))
    }

    /// The way for the domain with this state.
    pub(super) fn way(self, state: usize) -> StackSource {
        match self {
            Walk::Tables => StackSource::Tables(StackLocator {
                locate: |state, _| innermost(state),
                arguments: [state, 0],
            }),
            Walk::Bytecode(code, trap) => {
                StackSource::Own(Box::new(move |room| bytecode(code, (state, trap), room)))
            }
            Walk::Runtime(unwinder) => StackSource::Own(Box::new(move |room| unwinder.walk(room))),
            Walk::None => StackSource::None,
        }
    }
}

/// Where the innermost OCaml frame is (`caml_get_stack_sp_pc`,
/// `runtime/fiber.c`).
fn innermost(state: usize) -> StackTop {
    // SAFETY: the domain's state.
    let stack = unsafe { word(state, CURRENT_STACK) };
    if stack == 0 {
        return StackTop::default();
    }
    // SAFETY: a stack, here and below.
    let sp = unsafe { word(stack, STACK_SP) };
    // SAFETY: as above.
    let high = unsafe { word(stack, STACK_HANDLER) };
    if sp == high {
        // Nothing has run on it yet.
        return StackTop::default();
    }
    // SAFETY: what OCaml pushed when it called C.
    let return_address = unsafe { word(sp, 0) } as u64;
    StackTop { return_address, sp: (sp + WORD) as u64, native_limit: 0 }
}

type GetCallstack = extern "C" fn(usize, *mut *mut usize, *mut usize, isize) -> usize;
type Free = extern "C" fn(*mut c_void);

/// The runtime's own unwinder (`caml_get_callstack`, `runtime/backtrace_nat.c`
/// and `runtime/backtrace_byt.c`).
#[derive(Clone, Copy)]
pub(super) struct Unwinder {
    get: GetCallstack,
    free: Free,
    /// Of bytecode, whose frames are its addresses.
    code: Option<Code>,
}

impl Unwinder {
    fn find(is_native: bool) -> Option<Unwinder> {
        let get = symbols::lookup(c"caml_get_callstack")?;
        let free = symbols::lookup(c"caml_stat_free")?;
        let code = if is_native { None } else { Some(Code::find()?) };
        Some(Unwinder {
            // SAFETY: `size_t caml_get_callstack (size_t, backtrace_slot **,
            // size_t *, ptrdiff_t)`.
            get: unsafe { std::mem::transmute::<usize, GetCallstack>(get) },
            // SAFETY: `void caml_stat_free (void *)`.
            free: unsafe { std::mem::transmute::<usize, Free>(free) },
            code,
        })
    }

    /// Walks the stack of the running domain.
    fn walk(self, room: &mut [u64]) -> usize {
        let (mut slots, mut size) = (ptr::null_mut(), 0);
        let depth = (self.get)(isize::MAX as usize, &raw mut slots, &raw mut size, -1);
        for (index, place) in room.iter_mut().enumerate().take(depth) {
            // SAFETY: one of so many slots.
            let slot = unsafe { slots.wrapping_add(index).read() };
            *place = match self.code {
                Some(code) => code.now().frame(slot).unwrap_or(0),
                // SAFETY: a descriptor, which begins with its return address.
                None => unsafe { word(slot, 0) as u64 },
            };
        }
        (self.free)(slots.cast());
        depth
    }
}

/// As `get_callstack` in `runtime/backtrace_byt.c`: of each stack all words from
/// its pointer up that point into the code, but for those of exception handlers.
fn bytecode(code: Code, (state, trap): (usize, usize), room: &mut [u64]) -> usize {
    // SAFETY: the domain's state, here and below.
    let mut stack = unsafe { word(state, CURRENT_STACK) };
    // SAFETY: as above.
    let mut trap = unsafe { word(state, trap) } as isize;
    let addresses = code.now();
    let mut depth = 0;
    let mut first = true;
    while stack != 0 {
        // SAFETY: a stack, here and below.
        let mut sp = unsafe { word(stack, STACK_SP) };
        // SAFETY: as above.
        let high = unsafe { word(stack, STACK_HANDLER) };
        if !first && sp < high {
            // A stack that waits for another has the offset of its innermost
            // handler on top, as an OCaml integer.
            // SAFETY: between the stack's pointer and its end.
            trap = unsafe { word(sp, 0) } as isize >> 1;
        }
        first = false;
        while sp < high {
            // SAFETY: as above.
            let value = unsafe { word(sp, 0) };
            if value & 1 == 0 {
                if sp == high.wrapping_add_signed(trap * WORD as isize) {
                    // SAFETY: a handler's second word is the offset of the next.
                    trap = unsafe { word(sp, 1) } as isize >> 1;
                } else if let Some(frame) = addresses.frame(value) {
                    if let Some(place) = room.get_mut(depth) {
                        *place = frame;
                    }
                    depth += 1;
                }
            }
            sp += WORD;
        }
        // SAFETY: a stack's handler.
        stack = unsafe { word(high, HANDLER_PARENT) };
    }
    depth
}
