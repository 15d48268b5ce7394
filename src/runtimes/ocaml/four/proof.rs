//! The live proof of a layout, before anything is changed.
//!
//! The runtime is lent a state in which each word holds a different number, works on
//! that with its own functions, and what it read and wrote shows which word is which.
//! Then everything is put back.
//!
//! Before `main` the runtime has no state yet, or an empty one if it is about to
//! start. In a program that runs (`heaptap attach`) the calling thread holds the master lock, so that
//! nobody else looks at the state, but for handlers of signals (`caml_record_signal`,
//! `runtime/signals.c`, 4.14.1): on any thread, they set `caml_something_to_do` to 1 and then the young
//! limit of the state to the end of the young heap. So that variable is never taken back when a
//! handler has set it, the limit is computed anew at the end, the lent state is never freed, and a
//! proof that was disturbed is repeated.

use std::sync::atomic::{AtomicI32, Ordering, fence};

use super::layout::{KNOWN, KnownRelease, STATE_WORDS, StateLayout};
use super::profile_in_use::InUse;
use super::symbols::Runtime;
use crate::runtimes::attach::Refusal;
use crate::runtimes::attach::symbols::{Symbol, code_of, function_at};
use crate::runtimes::ocaml::lent::Lent;
use crate::runtimes::ocaml::variable::Variable;
use crate::tracer::WORD;

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
    something_to_do: Pending,
}

/// `caml_something_to_do`, which handlers of signals set to 1 at any time.
struct Pending(&'static AtomicI32);

impl Pending {
    /// What is pending in the proof. A handler's is 1.
    const LENT: libc::c_int = 2;

    /// Nothing is pending. Returns what was.
    fn clear(&self) -> libc::c_int {
        self.0.swap(0, Ordering::SeqCst)
    }

    /// Something is, unless a handler has said so before. False: one has.
    fn lend(&self) -> bool {
        self.0.compare_exchange(0, Self::LENT, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Nothing is any more. False: a handler has said that something is.
    fn take_back(&self) -> bool {
        self.0.compare_exchange(Self::LENT, 0, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// What it was, or what a handler has made of it since. Returns whether one has.
    fn restore(&self, before: libc::c_int) -> bool {
        self.take_back();
        let is_disturbed = self.0.load(Ordering::SeqCst) != 0;
        if before != 0 {
            self.0.store(before, Ordering::SeqCst);
        }
        is_disturbed
    }
}

/// Whether the runtime has a heap.
pub(super) fn is_running(runtime: &Runtime) -> bool {
    // SAFETY: `CAMLextern caml_domain_state * Caml_state` (`runtime/domain.c`).
    let state: Variable<*const usize> = unsafe { Variable::at(runtime.state) };
    let state = state.get();
    // SAFETY: a word of the state, which is 0 until there is a heap (`caml_init_domain`,
    // `runtime/domain.c`); its index is the same in all releases that are known.
    !state.is_null() && unsafe { state.wrapping_add(KNOWN[0].state.young_start).read() } != 0
}

const _: () = assert!(KNOWN[0].state.young_start == KNOWN[1].state.young_start);

/// What the runtime is. Before it has a heap; or while it runs, on the thread that holds its lock
/// and is outside of the profiler.
pub(super) fn prove(runtime: &Runtime) -> Result<Proved, Refusal> {
    let variables = Variables {
        // SAFETY: `CAMLextern caml_domain_state * Caml_state` (`runtime/domain.c`).
        state: unsafe { Variable::at(runtime.state) },
        // SAFETY: `value * caml_memprof_young_trigger` (`runtime/memprof.c`).
        trigger: unsafe { Variable::at(runtime.young_trigger) },
        // SAFETY: `int volatile caml_something_to_do` (`runtime/signals.c`), which is never unloaded.
        something_to_do: Pending(unsafe { &*(runtime.something_to_do as *const AtomicI32) }),
    };
    let is_running = is_running(runtime);
    if is_running && InUse::find(runtime).is_none() {
        // Then the profiler's functions do what they are asked for.
        return Err(Refusal::InUse);
    }
    let mut refusal = Refusal::Layout("the young limit");
    for known in &KNOWN {
        match prove_undisturbed(runtime, &variables, &known.state, is_running) {
            Ok(is_native) => return Ok(Proved { known, is_native }),
            Err(why) => refusal = why,
        }
    }
    Err(refusal)
}

/// The same for one layout, until no signal comes meanwhile.
fn prove_undisturbed(
    runtime: &Runtime,
    variables: &Variables,
    layout: &StateLayout,
    is_running: bool,
) -> Result<bool, Refusal> {
    /// A proof takes some microseconds, and signals come a thousand times a second at most.
    const ATTEMPTS: usize = 20;
    let mut outcome = Attempt::Disturbed;
    for _ in 0..ATTEMPTS {
        outcome = prove_one(runtime, variables, layout, is_running);
        if !matches!(outcome, Attempt::Disturbed) {
            break;
        }
    }
    match outcome {
        Attempt::Held(is_native) => Ok(is_native),
        Attempt::Failed(refusal) => Err(refusal),
        Attempt::Disturbed => Err(Refusal::Layout("signals come all the time")),
    }
}

/// What comes of a proof.
enum Attempt {
    /// The runtime has this layout; whether there is native code.
    Held(bool),
    Failed(Refusal),
    /// A signal came, and what was observed means nothing.
    Disturbed,
}

fn prove_one(
    runtime: &Runtime,
    variables: &Variables,
    layout: &StateLayout,
    is_running: bool,
) -> Attempt {
    let Variables { state, trigger, something_to_do } = variables;
    let lent = Lent::new(LENT_WORDS, |index| mark(layout, index));
    let (state_before, trigger_before) = (state.get(), trigger.get());
    if is_running && !is_young_heap(state_before, trigger_before, layout) {
        return Attempt::Failed(Refusal::Layout("the young heap"));
    }
    let something_before = something_to_do.clear();
    state.set(lent.address() as *mut usize);
    let observed = observe(runtime, variables, layout, &lent);
    state.set(state_before);
    trigger.set(trigger_before);
    let is_disturbed = something_to_do.restore(something_before);
    if is_running {
        // A handler has set the limit of one state or the other.
        fence(Ordering::SeqCst);
        // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`.
        let update: extern "C" fn() = unsafe { function_at(runtime.update_young_limit) };
        update();
        // A handler that has found it may still write to it.
        std::mem::forget(lent);
    }
    if is_disturbed {
        return Attempt::Disturbed;
    }
    let is_native = observed.and_then(|()| match (runtime.frame_tables, &runtime.c_call) {
        (Some(_), Some(call)) => check_entry_to_c(call, layout).map(|()| true),
        (None, None) => Ok(false),
        _ => Err(Refusal::Layout("neither native code nor bytecode")),
    });
    is_native.map_or_else(Attempt::Failed, Attempt::Held)
}

/// Whether the words of a state describe a young heap, and this trigger of samples that it has none.
fn is_young_heap(state: *const usize, trigger: usize, layout: &StateLayout) -> bool {
    // SAFETY: the state of a runtime that runs, which has more words in every release.
    let word = |index: usize| unsafe { state.wrapping_add(index).read() };
    let (start, end) = (word(layout.young_alloc_start), word(layout.young_alloc_end));
    let (lowest, highest) = (word(layout.young_start), word(layout.young_end));
    let words = end.checked_sub(start).map(|bytes| bytes / WORD);
    let mut bounds = [word(layout.young_limit), word(layout.young_trigger)].into_iter();
    lowest <= start
        && end <= highest
        && words == Some(word(layout.minor_heap_wsz))
        && trigger == start
        && bounds.all(|bound| (start..=end).contains(&bound))
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
    something_to_do.lend();
    update();
    if limit() != mark(layout.young_alloc_end) {
        return Err(Refusal::Layout("the end of the young heap"));
    }
    something_to_do.take_back();
    // Without a profile there is no sample in the heap: the trigger is its start.
    trigger.set(0);
    // SAFETY: the table declares it as `runtime/caml/memprof.h` does. As long as no
    // profile is being taken, which is so before `main` and was looked at otherwise, it sets the
    // trigger and calls `caml_update_young_limit`.
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
