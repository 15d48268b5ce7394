use std::cell::Cell;
use std::ffi::CStr;

use super::*;
use crate::runtimes::attach::hook_table::RuntimeFunction;
use crate::runtimes::ocaml::five::heap;
use crate::runtimes::ocaml::five::layout::{set_word, word};
use crate::runtimes::ocaml::five::symbols::{ProfilerFunctions, WrappedFunctions};

/// `caml_c_call` of 5.3.0, as far as it matters.
const C_CALL: [u8; 27] = [
    0x4d, 0x8b, 0x56, 0x28, // mov 0x28(%r14), %r10
    0x49, 0x89, 0x22, // mov %rsp, (%r10)
    0x4d, 0x8b, 0x5e, 0x40, 0x49, 0x89, 0x63, 8, 0x4d, 0x89, 0x13, 0x4c, 0x89, 0xdc, 0x4d, 0x89,
    0x7e, 8, // mov %r15, 8(%r14)
    0xff, 0xd0,
];

fn newest() -> &'static StateLayout {
    &KNOWN[0].state
}

#[test]
fn the_entry_to_c_says_where_things_are() {
    assert!(enters_c(&C_CALL, newest()));
    for at in [3, 24] {
        let mut other = C_CALL;
        other[at] += 8;
        assert!(!enters_c(&other, newest()), "byte {at}");
    }
    // push %rbp; mov %rsp, %rbp
    assert!(!enters_c(&[&[0x55, 0x48, 0x89, 0xe5], &C_CALL[..]].concat(), newest()));
    assert!(enters_c(&[&LANDING, &C_CALL[..]].concat(), newest()));
}

thread_local! {
    /// How the runtime of this test's thread is laid out.
    static LAID_OUT: Cell<StateLayout> = const { Cell::new(KNOWN[0].state) };
    /// Its `caml_state`.
    static STATE: Cell<usize> = const { Cell::new(0) };
}

/// A word of a state of the runtime under test.
fn read(state: usize, index: impl Fn(&StateLayout) -> usize) -> usize {
    // SAFETY: the proof lends a state with more words than any index of these tests.
    unsafe { word(state, index(&LAID_OUT.get())) }
}

fn write(state: usize, index: impl Fn(&StateLayout) -> usize, value: usize) {
    // SAFETY: the proof lends a state with more words than any index of these tests.
    unsafe { set_word(state, index(&LAID_OUT.get()), value) };
}

extern "C" fn new_domain(_parent: usize, child: usize) {
    write(child, |layout| layout.memprof, 0x7777_0000);
}

extern "C" fn set_trigger(state: usize) {
    write(state, |layout| layout.memprof_young_trigger, read(state, |layout| layout.young_start));
}

extern "C" fn delete_domain(state: usize) {
    write(state, |layout| layout.memprof, 0);
}

extern "C" fn update_limit(state: usize) {
    if read(state, |layout| layout.action_pending) != 0 {
        write(state, |layout| layout.young_limit, INTERRUPT);
    }
}

extern "C" fn final_empty_young(state: usize) {
    let finalisers = read(state, |layout| layout.final_info);
    for (to, from) in FINAL_OLD_YOUNG {
        // SAFETY: a word of `caml_final_info`, which the proof lends.
        let young = unsafe { word(finalisers, from) };
        // SAFETY: another word of it.
        unsafe { set_word(finalisers, to, young) };
    }
}

/// A runtime of bytecode that is laid out like this, on this thread.
fn runtime(layout: StateLayout) -> Runtime {
    LAID_OUT.set(layout);
    let function = |name: &CStr| match name.to_bytes() {
        b"caml_memprof_new_domain" => new_domain as *const () as usize,
        b"caml_memprof_set_trigger" => set_trigger as *const () as usize,
        b"caml_memprof_delete_domain" => delete_domain as *const () as usize,
        b"caml_final_empty_young" => final_empty_young as *const () as usize,
        _ => 0,
    };
    let symbol = |name: &CStr| Symbol { address: function(name), size: 1 };
    const NEW: &CStr = c"caml_memprof_new_domain";
    const DELETE: &CStr = c"caml_memprof_delete_domain";
    let state = STATE.with(|state| state.as_ptr() as usize);
    Runtime {
        functions: ProfilerFunctions::found(ProfilerFunctions::NAMES.map(symbol)),
        wrapped: WrappedFunctions {
            new_domain: RuntimeFunction::new(NEW, symbol(NEW)),
            delete_domain: RuntimeFunction::new(DELETE, symbol(DELETE)),
            enter_thread: RuntimeFunction::new(c"none", Symbol::default()),
            update_suspended: RuntimeFunction::new(c"none", Symbol::default()),
        },
        small_dispatch: RuntimeFunction::new(c"none", Symbol::default()),
        state_offset: state.wrapping_sub(thread_pointer()),
        heap_state: 0,
        domain_terminating: 0,
        update_limit_after_call: update_limit as *const () as usize,
        failwith: 0,
        is_native: false,
        c_call: None,
        alloc1: None,
    }
}

/// The release that a runtime with this layout is taken for.
fn proved(layout: StateLayout) -> Result<&'static KnownRelease, Refusal> {
    prove(&runtime(layout))
}

#[test]
fn each_known_release_is_taken_for_itself() {
    for known in &KNOWN {
        assert_eq!(proved(known.state).map(|proved| proved.releases), Ok(known.releases));
    }
    STATE.set(1);
    assert_eq!(proved(KNOWN[0].state).err(), Some(Refusal::Layout("it runs already")));
}

/// A word of the state that the live proof looks at.
type Word = fn(&mut StateLayout) -> &mut usize;

/// One of them moves in every release that adds a word: `domain_state.tbl` grows in its middle, and
/// the profiler's words are its last.
const COMPARED: [Word; 5] = [
    |layout| &mut layout.memprof,
    |layout| &mut layout.memprof_young_trigger,
    |layout| &mut layout.final_info,
    |layout| &mut layout.young_start,
    |layout| &mut layout.young_limit,
];

#[test]
fn an_unknown_release_is_taken_for_none() {
    for known in &KNOWN {
        for (number, place) in COMPARED.into_iter().enumerate() {
            for distance in [1, 2, 4, 8] {
                let mut layout = known.state;
                *place(&mut layout) += distance;
                let taken = proved(layout).map(|taken| taken.releases);
                assert!(taken.is_err(), "word {number} moved by {distance}: {taken:?}");
            }
        }
    }
}

#[test]
fn a_release_whose_heap_is_not_known_is_not_walked() {
    for known in KNOWN.iter().filter(|known| known.heap.is_none()) {
        let runtime = runtime(known.state);
        let refusal = heap::prepare(&runtime, prove(&runtime).unwrap()).unwrap_err();
        assert!(matches!(refusal, Refusal::Snapshots(_)), "{refusal}");
    }
}
