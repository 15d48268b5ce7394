//! The layout, proved before anything is changed.
//!
//! Before `main` the runtime has no state yet, and when it begins to start an
//! empty one. We lend it one of our own, filled with numbers that tell their
//! places, let it work on that with its own functions, and see what it read and
//! wrote. Then everything is put back.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::layout::{
    ALLOC_END, ALLOC_START, BOTTOM_OF_STACK, LAST_RETURN_ADDRESS, Layout, STATE_WORDS, TRIGGER,
    YOUNG_START,
};
use super::symbols::Runtime;
use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::symbols::Symbol;

/// Room for the state and what may follow it in a runtime we do not know.
const LENT_WORDS: usize = STATE_WORDS + 74;

/// What word `index` of the lent state holds: a number of its own, and a young
/// heap that the debug runtime's assertions find in order.
fn mark(index: usize) -> usize {
    const HEAP: usize = 0x1000_0000;
    match index {
        ALLOC_START => HEAP,
        TRIGGER => HEAP + 0x10_000,
        ALLOC_END => HEAP + 0x20_000,
        _ => HEAP + 0x100_000 + index * 0x1000,
    }
}

/// How the runtime's state is laid out.
pub(super) fn layout(runtime: &Runtime) -> Result<Layout, Refusal> {
    let state = runtime.state as *mut *mut usize;
    // SAFETY: `Caml_state`, 8 bytes.
    let state_before = unsafe { state.read() };
    // SAFETY: a word of the state, which is NULL until there is a heap
    // (`caml_init_domain`, `runtime/domain.c`).
    if !state_before.is_null() && unsafe { state_before.wrapping_add(YOUNG_START).read() } != 0 {
        return Err(Refusal::Layout("it runs already"));
    }
    let trigger = runtime.young_trigger as *mut usize;
    let something_to_do = runtime.something_to_do as *mut libc::c_int;
    // SAFETY: a variable of the runtime, of at least this size.
    let trigger_before = unsafe { trigger.read() };
    // SAFETY: as above.
    let something_before = unsafe { something_to_do.read() };
    let lent: Vec<AtomicUsize> = (0..LENT_WORDS).map(mark).map(AtomicUsize::new).collect();
    // SAFETY: as above. No other thread runs OCaml yet.
    unsafe { state.write(lent.as_ptr().cast::<usize>().cast_mut()) };
    let seen = observe(runtime, &lent, trigger, something_to_do);
    // SAFETY: as above, here and below.
    unsafe { state.write(state_before) };
    // SAFETY: as above.
    unsafe { trigger.write(trigger_before) };
    // SAFETY: as above.
    unsafe { something_to_do.write(something_before) };
    let mut layout = seen?;
    match (runtime.frame_tables, &runtime.c_call) {
        (Some(_), Some(call)) => check_entry_to_c(call, layout)?,
        (None, None) => layout.native = false,
        _ => return Err(Refusal::Layout("neither native code nor bytecode")),
    }
    Ok(layout)
}

/// What the runtime does with the lent state.
fn observe(
    runtime: &Runtime,
    lent: &[AtomicUsize],
    trigger: *mut usize,
    something_to_do: *mut libc::c_int,
) -> Result<Layout, Refusal> {
    // SAFETY: `void caml_update_young_limit (void)`, `runtime/signals.c`: reads
    // and writes the state and the two variables, and calls nothing.
    let update: extern "C" fn() = unsafe { std::mem::transmute(runtime.update_young_limit) };
    // SAFETY: a variable of the runtime, here and below.
    unsafe { something_to_do.write(0) };

    let word = |index: usize| lent.get(index).map_or(0, |word| word.load(Ordering::Relaxed));
    // A trigger below the runtime's own leaves the runtime's own.
    // SAFETY: as above.
    unsafe { trigger.write(mark(ALLOC_START) + 0x8000) };
    update();
    let changed = changed(lent);
    let limit = match changed[..] {
        [(index @ (0 | 1), value)] if value == mark(TRIGGER) => index,
        _ => return Err(Refusal::Layout("the young limit")),
    };
    // One above it is the limit.
    let high = mark(TRIGGER) + 0x800;
    // SAFETY: as above.
    unsafe { trigger.write(high) };
    update();
    if word(limit) != high {
        return Err(Refusal::Layout("the trigger of samples"));
    }
    // Something to do: the end of the heap.
    // SAFETY: as above.
    unsafe { something_to_do.write(1) };
    update();
    if word(limit) != mark(ALLOC_END) {
        return Err(Refusal::Layout("the end of the young heap"));
    }
    // SAFETY: as above.
    unsafe { something_to_do.write(0) };
    // Without a profile there is no sample in the heap: its start.
    // SAFETY: as above.
    unsafe { trigger.write(0) };
    let renew = runtime.functions.get(4).map_or(0, |renew| renew.address);
    // SAFETY: `void caml_memprof_renew_minor_sample (void)`, `runtime/memprof.c`:
    // as long as no profile is being taken, which is so before `main`, sets the
    // trigger and calls `caml_update_young_limit`.
    let renew: extern "C" fn() = unsafe { std::mem::transmute(renew) };
    renew();
    // SAFETY: as above.
    if unsafe { trigger.read() } != mark(ALLOC_START) {
        return Err(Refusal::Layout("the start of the young heap"));
    }
    Ok(if limit == 0 { Layout::LIMIT_FIRST } else { Layout::POINTER_FIRST })
}

/// The words that are no longer as they were lent.
fn changed(lent: &[AtomicUsize]) -> Vec<(usize, usize)> {
    let pairs = lent.iter().map(|word| word.load(Ordering::Relaxed)).enumerate();
    pairs.filter(|&(index, value)| value != mark(index)).collect()
}

/// Native code enters C through `caml_c_call` (`runtime/amd64.S`), which stores
/// the young pointer, the return address and the stack pointer in the state that
/// `r14` points to. Those stores say where.
fn check_entry_to_c(call: &Symbol, layout: Layout) -> Result<(), Refusal> {
    let length = call.size.clamp(1, 64);
    // SAFETY: the function's code, of that size.
    let code = unsafe { std::slice::from_raw_parts(call.address as *const u8, length) };
    if entry_stores(code, layout) {
        Ok(())
    } else {
        Err(Refusal::Layout("how native code calls C"))
    }
}

fn entry_stores(code: &[u8], layout: Layout) -> bool {
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
    let stores_pointer = if layout.pointer == 0 {
        code.windows(3).any(|bytes| bytes == [0x4d, 0x89, 0x3e])
    } else {
        let wanted = [0x4d, 0x89, 0x7e, (layout.pointer * 8) as u8];
        code.windows(4).any(|bytes| bytes == wanted)
    };
    stores_far(BOTTOM_OF_STACK) && stores_far(LAST_RETURN_ADDRESS) && stores_pointer
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `caml_c_call` of 4.13.1.
    const C_CALL: [u8; 42] = [
        0x41, 0x8f, 0x86, 0xd8, 0, 0, 0, // pop 0xd8(%r14)
        0x49, 0x89, 0xa6, 0xd0, 0, 0, 0, // mov %rsp, 0xd0(%r14)
        0x48, 0x83, 0xec, 8, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x89, 4, 0x24, 0x48, 0x81,
        0xc4, 0, 0x10, 0, 0, // touches the stack
        0x4d, 0x89, 0x7e, 8, // mov %r15, 8(%r14)
        0xff, 0xe0,
    ];

    #[test]
    fn the_entry_to_c_says_where_things_are() {
        assert!(entry_stores(&C_CALL, Layout::LIMIT_FIRST));
        assert!(!entry_stores(&C_CALL, Layout::POINTER_FIRST));
        for at in [3, 10, 39] {
            let mut other = C_CALL;
            other[at] += 8;
            assert!(!entry_stores(&other, Layout::LIMIT_FIRST), "byte {at}");
        }
    }

    #[test]
    fn marks_differ() {
        let lent: Vec<_> = (0..LENT_WORDS).map(mark).map(AtomicUsize::new).collect();
        assert!(changed(&lent).is_empty());
        let distinct: std::collections::BTreeSet<_> = (0..LENT_WORDS).map(mark).collect();
        assert_eq!(distinct.len(), lent.len());
    }
}
