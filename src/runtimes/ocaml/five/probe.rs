//! The layout, proved before anything is changed.
//!
//! Before `main` there is no domain yet. We let the runtime's own functions work
//! on a state of ours, filled with numbers that tell their places, and see what
//! they read and wrote. Machine code says the rest.

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::layout::{
    ACTION_PENDING, CURRENT_STACK, FINAL_OLD_YOUNG, INTERRUPT, LIMIT, POINTER, Places, START,
    STATE_WORDS,
};
use super::symbols::Runtime;
use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::thread_pointer::thread_pointer;

/// Room for the state and what may follow it in a runtime we do not know.
const LENT_WORDS: usize = STATE_WORDS + 128;

/// Room for `caml_final_info`, likewise.
const FINAL_WORDS: usize = 32;

/// What word `index` holds: a number of its own. The young heap's start is the
/// lowest, as the debug runtime's assertions want it.
fn mark(index: usize) -> usize {
    const HEAP: usize = 0x1000_0000;
    if index == START { HEAP } else { HEAP + 0x10_0000 + index * 0x1000 }
}

/// Memory lent to the runtime.
struct Lent(Vec<AtomicUsize>);

impl Lent {
    fn new(words: usize) -> Lent {
        Lent((0..words).map(mark).map(AtomicUsize::new).collect())
    }

    fn address(&self) -> *mut c_void {
        self.0.as_ptr().cast::<c_void>().cast_mut()
    }

    fn set(&self, index: usize, value: usize) {
        if let Some(word) = self.0.get(index) {
            word.store(value, Ordering::Relaxed);
        }
    }

    /// What `work` changes: which words, and to what. They are put back.
    fn changes(&self, work: impl FnOnce(*mut c_void)) -> Vec<(usize, usize)> {
        let values = || self.0.iter().map(|word| word.load(Ordering::Relaxed));
        let before: Vec<usize> = values().collect();
        work(self.address());
        let pairs = values().enumerate().zip(&before);
        let changed: Vec<_> =
            pairs.filter(|((_, now), before)| now != *before).map(|(word, _)| word).collect();
        changed.iter().for_each(|&(index, _)| self.set(index, before[index]));
        changed
    }
}

/// Where things are, if the runtime is laid out as 5.3 or 5.4 is.
pub(super) fn check(runtime: &Runtime) -> Result<Places, Refusal> {
    let state = thread_pointer().wrapping_add(runtime.state_offset) as *const usize;
    // SAFETY: `caml_state`, 8 bytes.
    if unsafe { state.read() } != 0 {
        return Err(Refusal::Layout("it runs already"));
    }
    let places = check_profiler(runtime)?;
    check_limit(runtime)?;
    check_finalisers(runtime, places)?;
    match (runtime.is_native, runtime.c_call, runtime.alloc1) {
        (true, Some(call), Some(alloc)) => {
            // SAFETY: the function's code, of that size.
            let call = unsafe { code(call.address, call.size) };
            // SAFETY: the function's code, which is longer than that.
            let alloc = unsafe { code(alloc, 7) };
            if enters_c(call) && compares_limit(alloc) {
                Ok(places)
            } else {
                Err(Refusal::Layout("how native code calls C"))
            }
        }
        (false, None, None) => Ok(places),
        _ => Err(Refusal::Layout("neither native code nor bytecode")),
    }
}

/// # Safety
/// So many bytes of code are there.
unsafe fn code(address: usize, size: usize) -> &'static [u8] {
    // SAFETY: the caller's promise; text is never freed.
    unsafe { std::slice::from_raw_parts(address as *const u8, size) }
}

type OnState = extern "C" fn(*mut c_void);

/// A function of the runtime that takes a domain's state.
///
/// # Safety
/// It is one.
unsafe fn on_state(address: usize) -> OnState {
    // SAFETY: the caller's promise.
    unsafe { std::mem::transmute::<usize, OnState>(address) }
}

/// The profiler makes its part of a domain's state, finds that there is no sample
/// to take, and takes its part down again (`runtime/memprof.c`): all that as long
/// as no profile was started, which is so before `main`.
fn check_profiler(runtime: &Runtime) -> Result<Places, Refusal> {
    let lent = Lent::new(LENT_WORDS);
    let create = runtime.function(c"caml_memprof_new_domain");
    // SAFETY: `void caml_memprof_new_domain (caml_domain_state *parent,
    // caml_domain_state *child)`: without a parent looks at the child only.
    let create: extern "C" fn(*mut c_void, *mut c_void) = unsafe { std::mem::transmute(create) };
    let created = lent.changes(|state| create(std::ptr::null_mut(), state));
    let refusal = Refusal::Layout("the profiler's part of a domain");
    let [(place, profiler)] = created[..] else { return Err(refusal) };
    let Some(places) = Places::by_profiler(place) else { return Err(refusal) };
    lent.set(place, profiler);
    // SAFETY: `void caml_memprof_set_trigger (caml_domain_state *)`.
    let set_trigger = unsafe { on_state(runtime.function(c"caml_memprof_set_trigger")) };
    let set = lent.changes(|state| set_trigger(state));
    // SAFETY: `void caml_memprof_delete_domain (caml_domain_state *)`.
    let delete = unsafe { on_state(runtime.function(c"caml_memprof_delete_domain")) };
    let deleted = lent.changes(|state| delete(state));
    if deleted != [(place, 0)] {
        return Err(Refusal::Layout("the end of the profiler's part of a domain"));
    }
    if set != [(places.sample_trigger, mark(START))] {
        return Err(Refusal::Layout("the trigger of samples"));
    }
    Ok(places)
}

/// If an action is pending, the limit is set so that the next allocation sees to
/// it (`caml_update_young_limit_after_c_call`, `runtime/domain.c`).
fn check_limit(runtime: &Runtime) -> Result<(), Refusal> {
    // SAFETY: takes a domain's state, of which it uses these two words.
    let update = unsafe { on_state(runtime.update_limit_after_call) };
    let lent = Lent::new(LENT_WORDS);
    let interrupted = lent.changes(|state| update(state));
    lent.set(ACTION_PENDING, 0);
    let untouched = lent.changes(|state| update(state));
    if interrupted == [(LIMIT, INTERRUPT)] && untouched.is_empty() {
        Ok(())
    } else {
        Err(Refusal::Layout("the young limit"))
    }
}

/// What [`super::hooks`] does in place of `caml_final_empty_young`.
fn check_finalisers(runtime: &Runtime, places: Places) -> Result<(), Refusal> {
    // SAFETY: takes a domain's state, of which it uses `final_info`.
    let empty = unsafe { on_state(runtime.function(c"caml_final_empty_young")) };
    let (finalisers, others) = (Lent::new(FINAL_WORDS), Lent::new(FINAL_WORDS));
    let state = Lent::new(LENT_WORDS);
    // Whichever word it takes for them, it finds memory.
    (0..LENT_WORDS).for_each(|index| state.set(index, others.address() as usize));
    state.set(places.final_info, finalisers.address() as usize);
    let expected = FINAL_OLD_YOUNG.map(|(to, from)| (to, mark(from)));
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
fn enters_c(code: &[u8]) -> bool {
    // mov disp8(%r14), %r10; mov %rsp, (%r10)
    let stores_sp = [0x4d, 0x8b, 0x56, (CURRENT_STACK * 8) as u8, 0x49, 0x89, 0x22];
    // mov %r15, disp8(%r14)
    let stores_pointer = [0x4d, 0x89, 0x7e, (POINTER * 8) as u8];
    without_landing(code).starts_with(&stores_sp)
        && code.windows(stores_pointer.len()).any(|bytes| bytes == stores_pointer)
}

/// `caml_alloc1`: sub $16, %r15; cmp (%r14), %r15.
fn compares_limit(code: &[u8]) -> bool {
    without_landing(code).starts_with(&[0x49, 0x83, 0xef, 0x10, 0x4d, 0x3b, 0x3e])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `caml_c_call` of 5.3.0, as far as it matters.
    const C_CALL: [u8; 27] = [
        0x4d, 0x8b, 0x56, 0x28, // mov 0x28(%r14), %r10
        0x49, 0x89, 0x22, // mov %rsp, (%r10)
        0x4d, 0x8b, 0x5e, 0x40, 0x49, 0x89, 0x63, 8, 0x4d, 0x89, 0x13, 0x4c, 0x89, 0xdc, 0x4d,
        0x89, 0x7e, 8, // mov %r15, 8(%r14)
        0xff, 0xd0,
    ];

    #[test]
    fn the_entry_to_c_says_where_things_are() {
        assert!(enters_c(&C_CALL));
        for at in [3, 24] {
            let mut other = C_CALL;
            other[at] += 8;
            assert!(!enters_c(&other), "byte {at}");
        }
        // push %rbp; mov %rsp, %rbp
        assert!(!enters_c(&[&[0x55, 0x48, 0x89, 0xe5], &C_CALL[..]].concat()));
        assert!(enters_c(&[&LANDING, &C_CALL[..]].concat()));
    }

    #[test]
    fn changes_are_seen_and_undone() {
        extern "C" fn third(state: *mut c_void) {
            // SAFETY: lent memory of more words.
            unsafe { state.cast::<usize>().wrapping_add(2).write(7) };
        }
        let lent = Lent::new(8);
        assert_eq!(lent.changes(|state| third(state)), [(2, 7)]);
        assert_eq!(lent.changes(|state| third(state)), [(2, 7)]);
        lent.set(2, 7);
        assert_eq!(lent.changes(|state| third(state)), []);
    }
}
