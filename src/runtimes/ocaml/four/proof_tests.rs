use std::cell::Cell;
use std::ffi::{CStr, c_int};

use super::*;
use crate::runtimes::attach::hook_table::RuntimeFunction;
use crate::runtimes::ocaml::four::symbols::ProfilerFunctions;

/// `caml_c_call` of 4.13.1.
const C_CALL: [u8; 42] = [
    0x41, 0x8f, 0x86, 0xd8, 0, 0, 0, // pop 0xd8(%r14)
    0x49, 0x89, 0xa6, 0xd0, 0, 0, 0, // mov %rsp, 0xd0(%r14)
    0x48, 0x83, 0xec, 8, 0x48, 0x81, 0xec, 0, 0x10, 0, 0, 0x48, 0x89, 4, 0x24, 0x48, 0x81, 0xc4, 0,
    0x10, 0, 0, // touches the stack
    0x4d, 0x89, 0x7e, 8, // mov %r15, 8(%r14)
    0xff, 0xe0,
];

fn state_of(release: &str) -> &'static StateLayout {
    let known = KNOWN.iter().find(|known| known.releases.contain(release));
    known.map(|known| &known.state).expect("a release that is known")
}

#[test]
fn the_entry_to_c_says_where_things_are() {
    assert!(entry_stores(&C_CALL, state_of("4.13.1")));
    assert!(!entry_stores(&C_CALL, state_of("4.12.1")));
    for at in [3, 10, 39] {
        let mut other = C_CALL;
        other[at] += 8;
        assert!(!entry_stores(&other, state_of("4.13.1")), "byte {at}");
    }
}

#[test]
fn marks_differ() {
    for layout in KNOWN.iter().map(|known| &known.state) {
        let distinct: std::collections::BTreeSet<_> =
            (0..LENT_WORDS).map(|index| mark(layout, index)).collect();
        assert_eq!(distinct.len(), LENT_WORDS);
    }
}

thread_local! {
    /// How the runtime of this test's thread is laid out.
    static LAID_OUT: Cell<StateLayout> = const { Cell::new(KNOWN[0].state) };
    /// Its `Caml_state`, `caml_memprof_young_trigger` and `caml_something_to_do`.
    static STATE: Cell<usize> = const { Cell::new(0) };
    static TRIGGER: Cell<usize> = const { Cell::new(0) };
    static TO_DO: Cell<c_int> = const { Cell::new(0) };
}

/// Where a word of the state is that the proof has lent.
fn place(index: impl Fn(&StateLayout) -> usize) -> *mut usize {
    (STATE.get() as *mut usize).wrapping_add(index(&LAID_OUT.get()))
}

fn read(index: impl Fn(&StateLayout) -> usize) -> usize {
    // SAFETY: the proof lends a state with more words than any index of these tests.
    unsafe { place(index).read() }
}

extern "C" fn update_young_limit() {
    let limit = if TO_DO.get() != 0 {
        read(|layout| layout.young_alloc_end)
    } else {
        TRIGGER.get().max(read(|layout| layout.young_trigger))
    };
    // SAFETY: the proof lends a state with more words than any index of these tests.
    unsafe { place(|layout| layout.young_limit).write(limit) };
}

extern "C" fn renew_minor_sample() {
    TRIGGER.set(read(|layout| layout.young_alloc_start));
    update_young_limit();
}

/// What a runtime of bytecode with this layout is taken for, on this thread.
fn proved(layout: StateLayout) -> Result<Proved, Refusal> {
    LAID_OUT.set(layout);
    let symbol = |name: &CStr| {
        let is_renewal = name == c"caml_memprof_renew_minor_sample";
        let address = if is_renewal { renew_minor_sample as *const () as usize } else { 0 };
        Symbol { address, size: 1 }
    };
    prove(&Runtime {
        functions: ProfilerFunctions::found(ProfilerFunctions::NAMES.map(symbol)),
        enter_thread: RuntimeFunction::new(c"none", Symbol::default()),
        set_suspended: RuntimeFunction::new(c"none", Symbol::default()),
        state: STATE.with(|state| state.as_ptr() as usize),
        young_trigger: TRIGGER.with(|trigger| trigger.as_ptr() as usize),
        something_to_do: TO_DO.with(|to_do| to_do.as_ptr() as usize),
        update_young_limit: update_young_limit as *const () as usize,
        invert_root: 0,
        failwith: 0,
        c_call: None,
        gc_entry: None,
        frame_tables: None,
    })
}

#[test]
fn each_known_release_is_taken_for_itself() {
    for known in &KNOWN {
        let proved = proved(known.state).expect("a known layout");
        assert_eq!((proved.known.releases, proved.is_native), (known.releases, false));
        assert_eq!((STATE.get(), TRIGGER.get(), TO_DO.get()), (0, 0, 0), "all is put back");
    }
}

/// A word of the state that the live proof looks at.
type Word = fn(&mut StateLayout) -> &mut usize;

const COMPARED: [Word; 4] = [
    |layout| &mut layout.young_limit,
    |layout| &mut layout.young_trigger,
    |layout| &mut layout.young_alloc_start,
    |layout| &mut layout.young_alloc_end,
];

#[test]
fn an_unknown_release_is_taken_for_none() {
    for known in &KNOWN {
        for (number, place) in COMPARED.into_iter().enumerate() {
            for distance in [3, 5, 8] {
                let mut layout = known.state;
                *place(&mut layout) += distance;
                let taken = proved(layout).map(|taken| taken.known.releases);
                assert!(taken.is_err(), "word {number} moved by {distance}: {taken:?}");
            }
        }
    }
}
