//! The live proof of a layout, before anything is changed.
//!
//! Before `main` there is no domain yet. The runtime's own functions work on a lent
//! state in which each word holds a different number; what they read and wrote shows
//! which word is which. The machine code of the entry to C shows the rest.

use super::layout::{FINAL_OLD_YOUNG, INTERRUPT, KNOWN, KnownRelease, STATE_WORDS, StateLayout};
use super::symbols::Runtime;
use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::{Symbol, code_of, function_at};
use crate::runtimes::attach::thread_pointer::thread_pointer;
use crate::runtimes::ocaml::lent::Lent;

/// Room for the state and what may follow it in an unknown runtime.
const LENT_WORDS: usize = STATE_WORDS + 128;

/// Room for `caml_final_info` and what may follow it.
const FINAL_WORDS: usize = 32;

/// What word `index` of a lent state holds: a different number for each. The young
/// heap's start is the lowest, as the assertions of the debug runtime require.
fn mark(layout: &StateLayout, index: usize) -> usize {
    const HEAP: usize = 0x1000_0000;
    if index == layout.young_start { HEAP } else { HEAP + 0x10_0000 + index * 0x1000 }
}

fn lend(layout: &StateLayout, words: usize) -> Lent {
    Lent::new(words, |index| mark(layout, index))
}

/// The release that the runtime is laid out as.
pub(super) fn prove(runtime: &Runtime) -> Result<&'static KnownRelease, Refusal> {
    let state = thread_pointer().wrapping_add(runtime.state_offset) as *const usize;
    // SAFETY: this thread's `caml_state`, a pointer.
    if unsafe { state.read() } != 0 {
        return Err(Refusal::Layout("it runs already"));
    }
    let mut refusal = Refusal::Layout("the profiler's part of a domain");
    for known in &KNOWN {
        match prove_one(runtime, &known.state) {
            Ok(()) => return Ok(known),
            // A layout whose profiler's part is right came closest.
            Err(why) if why != Refusal::Layout("the profiler's part of a domain") => refusal = why,
            Err(_) => {}
        }
    }
    Err(refusal)
}

/// That the runtime has this layout.
fn prove_one(runtime: &Runtime, layout: &StateLayout) -> Result<(), Refusal> {
    check_profiler(runtime, layout)?;
    check_limit(runtime, layout)?;
    check_finalisers(runtime, layout)?;
    match (runtime.is_native, runtime.c_call, runtime.alloc1) {
        (true, Some(call), Some(alloc)) => {
            // `caml_alloc1` is longer than seven bytes (`runtime/amd64.S`).
            let alloc = code_of(Symbol { address: alloc, size: 7 }, 7);
            if enters_c(code_of(call, usize::MAX), layout) && compares_limit(alloc, layout) {
                Ok(())
            } else {
                Err(Refusal::Layout("how native code calls C"))
            }
        }
        (false, None, None) => Ok(()),
        _ => Err(Refusal::Layout("neither native code nor bytecode")),
    }
}

/// The profiler makes its part of a domain's state, finds that there is no sample
/// to take, and takes its part down again (`runtime/memprof.c`): all that as long
/// as no profile was started, which is so before `main`.
fn check_profiler(runtime: &Runtime, layout: &StateLayout) -> Result<(), Refusal> {
    let lent = lend(layout, LENT_WORDS);
    let functions = &runtime.functions;
    // SAFETY: the table declares it as `runtime/caml/memprof.h` does. Without a parent it
    // uses the child only.
    let create = unsafe { runtime.wrapped.new_domain.get() };
    let created = lent.changes(|state| create(0, state));
    let [(index, profiler)] = created[..] else {
        return Err(Refusal::Layout("the profiler's part of a domain"));
    };
    lent.set(index, profiler);
    // SAFETY: the table declares it as `runtime/caml/memprof.h` does.
    let set_trigger = unsafe { functions.caml_memprof_set_trigger.get() };
    let set = lent.changes(|state| set_trigger(state));
    // SAFETY: the table declares it as `runtime/caml/memprof.h` does.
    let delete = unsafe { runtime.wrapped.delete_domain.get() };
    let deleted = lent.changes(|state| delete(state));
    if index != layout.memprof {
        return Err(Refusal::Layout("the profiler's part of a domain"));
    }
    if deleted != [(index, 0)] {
        return Err(Refusal::Layout("the end of the profiler's part of a domain"));
    }
    if set != [(layout.memprof_young_trigger, mark(layout, layout.young_start))] {
        return Err(Refusal::Layout("the trigger of samples"));
    }
    Ok(())
}

/// If an action is pending, the limit is set so that the next allocation sees to
/// it (`caml_update_young_limit_after_c_call`, `runtime/domain.c`).
fn check_limit(runtime: &Runtime, layout: &StateLayout) -> Result<(), Refusal> {
    // SAFETY: `void caml_update_young_limit_after_c_call (caml_domain_state *)`, which
    // uses two words of the state.
    let update: extern "C" fn(usize) = unsafe { function_at(runtime.update_limit_after_call) };
    let lent = lend(layout, LENT_WORDS);
    let interrupted = lent.changes(|state| update(state));
    lent.set(layout.action_pending, 0);
    let untouched = lent.changes(|state| update(state));
    if interrupted == [(layout.young_limit, INTERRUPT)] && untouched.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Layout("the young limit"))
    }
}

/// What the hook in place of `caml_final_empty_young` does.
fn check_finalisers(runtime: &Runtime, layout: &StateLayout) -> Result<(), Refusal> {
    // SAFETY: the table declares it as `runtime/caml/finalise.h` does; it uses
    // `final_info` of the state.
    let empty = unsafe { runtime.functions.caml_final_empty_young.get() };
    let finalisers = lend(layout, FINAL_WORDS);
    let others = lend(layout, FINAL_WORDS);
    let state = lend(layout, LENT_WORDS);
    // Whichever word it takes for them, it finds memory.
    (0..LENT_WORDS).for_each(|index| state.set(index, others.address()));
    state.set(layout.final_info, finalisers.address());
    let expected = FINAL_OLD_YOUNG.map(|(to, from)| (to, mark(layout, from)));
    let changed = finalisers.changes(|_| empty(state.address()));
    if changed == expected { Ok(()) } else { Err(Refusal::Layout("finalisers")) }
}

/// `endbr64`
const LANDING: [u8; 4] = [0xf3, 0x0f, 0x1e, 0xfa];

fn without_landing(code: &[u8]) -> &[u8] {
    code.strip_prefix(&LANDING).unwrap_or(code)
}

/// `caml_c_call` (`runtime/amd64.S`) first stores the stack pointer in the
/// current stack, and later the young pointer in the state that `r14` points to.
/// One that first saves the frame pointer has other stacks.
fn enters_c(code: &[u8], layout: &StateLayout) -> bool {
    // mov disp8(%r14), %r10; mov %rsp, (%r10)
    let stores_sp = [0x4d, 0x8b, 0x56, (layout.current_stack * 8) as u8, 0x49, 0x89, 0x22];
    // mov %r15, disp8(%r14)
    let stores_pointer = [0x4d, 0x89, 0x7e, (layout.young_ptr * 8) as u8];
    without_landing(code).starts_with(&stores_sp)
        && code.windows(stores_pointer.len()).any(|bytes| bytes == stores_pointer)
}

/// `caml_alloc1`: sub $16, %r15; cmp (%r14), %r15.
fn compares_limit(code: &[u8], layout: &StateLayout) -> bool {
    let compares_first = [0x49, 0x83, 0xef, 0x10, 0x4d, 0x3b, 0x3e];
    layout.young_limit == 0 && without_landing(code).starts_with(&compares_first)
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
