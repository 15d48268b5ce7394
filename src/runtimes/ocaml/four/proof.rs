//! The live proof of a layout, before anything is changed.
//!
//! Before `main` the runtime has no state yet, or an empty one if it is about to
//! start. It is lent a state in which each word holds a different number, works on
//! that with its own functions, and what it read and wrote shows which word is which.
//! Then everything is put back.

use super::layout::{KNOWN, KnownRelease, STATE_WORDS, StateLayout};
use super::symbols::Runtime;
use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::{Symbol, code_of, function_at};
use crate::runtimes::ocaml::lent::Lent;
use crate::runtimes::ocaml::variable::Variable;

/// Room for the state and what may follow it in an unknown runtime.
const LENT_WORDS: usize = STATE_WORDS + 74;

/// What a runtime was proved to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Proved {
    pub(super) known: &'static KnownRelease,
    /// Whether there is native code: else `bottom_of_stack` and
    /// `last_return_address` mean nothing.
    pub(super) is_native: bool,
}

/// What word `index` of the lent state holds: a different number for each, and a young
/// heap that the assertions of the debug runtime accept.
fn mark(layout: &StateLayout, index: usize) -> usize {
    const HEAP: usize = 0x1000_0000;
    match index {
        _ if index == layout.young_alloc_start => HEAP,
        _ if index == layout.young_trigger => HEAP + 0x10_000,
        _ if index == layout.young_alloc_end => HEAP + 0x20_000,
        _ => HEAP + 0x100_000 + index * 0x1000,
    }
}

/// The runtime's variables that the proof changes for a while.
struct Variables {
    /// `Caml_state`
    state: Variable<*mut usize>,
    /// `caml_memprof_young_trigger`
    trigger: Variable<usize>,
    /// `caml_something_to_do`
    something_to_do: Variable<libc::c_int>,
}

/// What the runtime is.
pub(super) fn prove(runtime: &Runtime) -> Result<Proved, Refusal> {
    let variables = Variables {
        // SAFETY: `CAMLextern caml_domain_state * Caml_state` (`runtime/domain.c`).
        state: unsafe { Variable::at(runtime.state) },
        // SAFETY: `value * caml_memprof_young_trigger` (`runtime/memprof.c`).
        trigger: unsafe { Variable::at(runtime.young_trigger) },
        // SAFETY: `int volatile caml_something_to_do` (`runtime/signals.c`).
        something_to_do: unsafe { Variable::at(runtime.something_to_do) },
    };
    let mut refusal = Refusal::Layout("the young limit");
    for known in &KNOWN {
        match prove_one(runtime, &variables, &known.state) {
            Ok(is_native) => return Ok(Proved { known, is_native }),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// Whether there is native code, if the runtime has this layout.
fn prove_one(
    runtime: &Runtime,
    variables: &Variables,
    layout: &StateLayout,
) -> Result<bool, Refusal> {
    let Variables { state, trigger, something_to_do } = variables;
    let state_before = state.get();
    // SAFETY: a word of the state, which is 0 until there is a heap
    // (`caml_init_domain`, `runtime/domain.c`).
    let young_start = || unsafe { state_before.wrapping_add(layout.young_start).read() };
    if !state_before.is_null() && young_start() != 0 {
        return Err(Refusal::Layout("it runs already"));
    }
    let (trigger_before, something_before) = (trigger.get(), something_to_do.get());
    let lent = Lent::new(LENT_WORDS, |index| mark(layout, index));
    state.set(lent.address() as *mut usize);
    let observed = observe(runtime, variables, layout, &lent);
    state.set(state_before);
    trigger.set(trigger_before);
    something_to_do.set(something_before);
    observed?;
    match (runtime.frame_tables, &runtime.c_call) {
        (Some(_), Some(call)) => check_entry_to_c(call, layout).map(|()| true),
        (None, None) => Ok(false),
        _ => Err(Refusal::Layout("neither native code nor bytecode")),
    }
}

/// What the runtime does with the lent state.
fn observe(
    runtime: &Runtime,
    variables: &Variables,
    layout: &StateLayout,
    lent: &Lent,
) -> Result<(), Refusal> {
    let Variables { trigger, something_to_do, .. } = variables;
    // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`: reads
    // and writes the state and the two variables, and calls nothing.
    let update: extern "C" fn() = unsafe { function_at(runtime.update_young_limit) };
    let mark = |index| mark(layout, index);
    let limit = || lent.get(layout.young_limit);
    something_to_do.set(0);
    // A trigger below the runtime's own leaves the runtime's own.
    trigger.set(mark(layout.young_alloc_start) + 0x8000);
    if lent.changes(|_| update()) != [(layout.young_limit, mark(layout.young_trigger))] {
        return Err(Refusal::Layout("the young limit"));
    }
    // One above it becomes the limit.
    let high = mark(layout.young_trigger) + 0x800;
    trigger.set(high);
    update();
    if limit() != high {
        return Err(Refusal::Layout("the trigger of samples"));
    }
    // If there is something to do, the limit is the end of the heap.
    something_to_do.set(1);
    update();
    if limit() != mark(layout.young_alloc_end) {
        return Err(Refusal::Layout("the end of the young heap"));
    }
    something_to_do.set(0);
    // Without a profile there is no sample in the heap: the trigger is its start.
    trigger.set(0);
    // SAFETY: the table declares it as `runtime/caml/memprof.h` does. As long as no
    // profile is being taken, which is so before `main`, it sets the trigger and calls
    // `caml_update_young_limit`.
    let renew = unsafe { runtime.functions.caml_memprof_renew_minor_sample.get() };
    renew();
    if trigger.get() != mark(layout.young_alloc_start) {
        return Err(Refusal::Layout("the start of the young heap"));
    }
    Ok(())
}

/// Native code enters C through `caml_c_call` (`runtime/amd64.S`), which stores
/// the young pointer, the return address and the stack pointer in the state that
/// `r14` points to. Those stores say where.
fn check_entry_to_c(call: &Symbol, layout: &StateLayout) -> Result<(), Refusal> {
    if entry_stores(code_of(*call, 64), layout) {
        Ok(())
    } else {
        Err(Refusal::Layout("how native code calls C"))
    }
}

fn entry_stores(code: &[u8], layout: &StateLayout) -> bool {
    let far = |index: usize| (index as u32 * 8).to_le_bytes();
    // pop disp32(%r14), or mov %reg, disp32(%r14): the last byte of each
    // operation names r14 as the base.
    let stores_far = |index: usize| {
        let wanted = far(index);
        code.windows(7).any(|bytes| {
            let store = matches!(bytes[..2], [0x41, 0x8f] | [0x49 | 0x4d, 0x89]);
            store && bytes[2] & 0xc7 == 0x86 && bytes[3..] == wanted
        })
    };
    // mov %r15, disp8(%r14), or mov %r15, (%r14).
    let stores_pointer = if layout.young_ptr == 0 {
        code.windows(3).any(|bytes| bytes == [0x4d, 0x89, 0x3e])
    } else {
        let wanted = [0x4d, 0x89, 0x7e, (layout.young_ptr * 8) as u8];
        code.windows(4).any(|bytes| bytes == wanted)
    };
    stores_far(layout.bottom_of_stack) && stores_far(layout.last_return_address) && stores_pointer
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
