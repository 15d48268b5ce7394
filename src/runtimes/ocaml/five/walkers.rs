//! How the stack is walked: from the domain's current stack through the chain of
//! fibers to the first.
//!
//! Native code is walked by the frame tables, from where OCaml last called C. With
//! `HEAPTAP_UNWINDER=runtime` the runtime's own unwinder is used instead, which is
//! slower: two traces with the same seed, one by each, must be equal.

use std::ffi::c_void;
use std::ptr;

use super::layout::{HANDLER_PARENT, STACK_HANDLER, STACK_SP, StateLayout, word};
use super::symbols::Runtime;
use crate::runtimes::attach::symbols::{function_at, lookup};
use crate::runtimes::ocaml::backtrace::Backtrace;
use crate::runtimes::ocaml::bytecode::{BytecodeStack, Code, HandlerLink};
use crate::runtimes::ocaml::frames;
use crate::tracer::{StackLocator, StackSource, StackTop, WORD};

/// How the stacks of all domains are walked.
#[derive(Clone, Copy)]
pub(super) struct Walk {
    kind: WalkKind,
    layout: &'static StateLayout,
}

#[derive(Clone, Copy)]
enum WalkKind {
    Tables,
    Bytecode(Code),
    Runtime(Unwinder),
    /// Not possible: backtraces are empty.
    None,
}

impl Walk {
    /// Chosen before `main`: later, others may change the environment.
    pub(super) fn choose(runtime: &Runtime, layout: &'static StateLayout) -> Walk {
        let asked = frames::asks_runtime();
        let unwinder = if asked { Unwinder::find(runtime.is_native) } else { None };
        let kind = match unwinder {
            Some(unwinder) => WalkKind::Runtime(unwinder),
            None if runtime.is_native => WalkKind::Tables,
            None => Code::find().map_or(WalkKind::None, WalkKind::Bytecode),
        };
        Walk { kind, layout }
    }

    /// Where backtraces of the domain with this state come from.
    pub(super) fn stack_source(self, state: usize) -> StackSource {
        let Walk { kind, layout } = self;
        match kind {
            WalkKind::Tables => StackSource::Tables(StackLocator {
                locate: innermost,
                arguments: [state, layout.current_stack],
            }),
            WalkKind::Bytecode(code) => {
                StackSource::Own(Box::new(move |room| bytecode(code, state, layout, room)))
            }
            WalkKind::Runtime(unwinder) => {
                StackSource::Own(Box::new(move |room| unwinder.walk(room)))
            }
            WalkKind::None => StackSource::None,
        }
    }
}

/// The innermost OCaml frame (`caml_get_stack_sp_pc`, `runtime/fiber.c`) of a domain in
/// whose state `current_stack` is at this index.
fn innermost(state: usize, current_stack: usize) -> StackTop {
    // SAFETY: the state of the domain that runs the hook, and `prove` has shown the layout.
    let stack = unsafe { word(state, current_stack) };
    if stack == 0 {
        return StackTop::default();
    }
    // SAFETY: not NULL, so a `stack_info`, which lives as long as the fiber runs.
    let sp = unsafe { word(stack, STACK_SP) };
    // SAFETY: not NULL, so a `stack_info`, which has this word too.
    let high = unsafe { word(stack, STACK_HANDLER) };
    if sp == high {
        // Nothing has run on it yet.
        return StackTop::default();
    }
    // SAFETY: below the stack's end, so what OCaml pushed when it called C.
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
        let get = lookup(c"caml_get_callstack")?;
        let free = lookup(c"caml_stat_free")?;
        let code = if is_native { None } else { Some(Code::find()?) };
        Some(Unwinder {
            // SAFETY: `size_t caml_get_callstack (size_t, backtrace_slot **,
            // size_t *, ptrdiff_t)`.
            get: unsafe { function_at(get) },
            // SAFETY: `void caml_stat_free (void *)`.
            free: unsafe { function_at(free) },
            code,
        })
    }

    /// Walks the stack of the running domain.
    fn walk(self, room: &mut [u64]) -> usize {
        let (mut slots, mut size) = (ptr::null_mut(), 0);
        let depth = (self.get)(isize::MAX as usize, &raw mut slots, &raw mut size, -1);
        for (index, place) in room.iter_mut().enumerate().take(depth) {
            // SAFETY: the unwinder has filled `depth` slots.
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

/// As `get_callstack` in `runtime/backtrace_byt.c`.
fn bytecode(code: Code, state: usize, layout: &StateLayout, room: &mut [u64]) -> usize {
    // SAFETY: the state of the domain that runs the hook, and `prove` has shown the layout.
    let mut stack = unsafe { word(state, layout.current_stack) };
    // SAFETY: another word of that state, in the layout that `prove` has shown.
    let mut handler_offset = Some(unsafe { word(state, layout.trap_sp_off) } as isize);
    let addresses = code.now();
    let mut backtrace = Backtrace::new(room);
    while stack != 0 {
        // SAFETY: not NULL, so a `stack_info` of a fiber that has not ended, or of the running one.
        let words = unsafe { bytecode_stack(stack, handler_offset.take()) };
        // SAFETY: the stack of the domain that runs the hook, or one that waits for it.
        unsafe { backtrace.push_bytecode(addresses, words) };
        // SAFETY: a stack ends with its `stack_handler`.
        stack = unsafe { word(words.high, HANDLER_PARENT) };
    }
    backtrace.depth
}

/// The words of a stack in bytecode. `handler_offset`: of one that runs its innermost handler, in words
/// from its end.
///
/// # Safety
/// A `stack_info` that stays.
pub(super) unsafe fn bytecode_stack(stack: usize, handler_offset: Option<isize>) -> BytecodeStack {
    // SAFETY: by the contract a `stack_info`.
    let sp = unsafe { word(stack, STACK_SP) };
    // SAFETY: by the contract a `stack_info`.
    let high = unsafe { word(stack, STACK_HANDLER) };
    let offset = match handler_offset {
        Some(offset) => offset,
        // A stack that waits for another has the offset on top, as an OCaml integer.
        // SAFETY: between the stack's pointer and its end.
        None if sp < high => unsafe { word(sp, 0) as isize >> 1 },
        None => 0,
    };
    let handler = high.wrapping_add_signed(offset.wrapping_mul(WORD as isize));
    BytecodeStack { sp, high, handler, link: HandlerLink::FromEnd }
}
