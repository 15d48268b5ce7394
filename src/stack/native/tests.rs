//! Native unwinding against the C library's own.

use core::ffi::{c_int, c_void};
use core::hint::black_box;

use super::super::paint::stack_used;
use super::*;

/// The backtraces of both unwinders from one function.
#[derive(Default)]
struct Backtraces {
    ours: Vec<u64>,
    theirs: Vec<u64>,
}

fn unwinder() -> Unwinder<Vec<u64>> {
    Unwinder::new(vec![7; Unwinder::<Vec<u64>>::WORDS]).expect("as large as asked for")
}

/// Takes both backtraces; `limit` 0 = as far as it goes.
#[inline(never)]
extern "C" fn innermost(found: &mut Backtraces, limit: u64) {
    let registers = Registers::capture();
    let mut theirs = [core::ptr::null_mut::<c_void>(); 256];
    // SAFETY: `theirs` has room for 256 pointers.
    let count = unsafe { libc::backtrace(theirs.as_mut_ptr(), 256) };
    // The first is here.
    found.theirs = theirs[1..count as usize].iter().map(|pc| *pc as u64).collect();
    let modules = Modules::new().expect("this C library has _dl_find_object");
    let mut unwinder = unwinder();
    let limit = if limit == 0 { u64::MAX } else { limit };
    for _ in 0..2 {
        let mut codes = [0; 256];
        // SAFETY: captured in this function; the unwind tables lead along its stack.
        let count = unsafe { unwinder.unwind(&modules, registers, limit, &mut codes) };
        found.ours = codes[..count].to_vec();
    }
}

#[inline(never)]
extern "C" fn with_large_frame(found: &mut Backtraces, depth: u32) {
    let array = black_box([depth; 300]);
    nested(found, depth);
    black_box(array);
}

/// A frame whose size is only known when it runs, so that the compiler needs a
/// frame pointer: an array aligned to more than the stack is.
#[repr(align(64))]
struct Aligned([u8; 64]);

#[inline(never)]
extern "C" fn with_aligned_frame(found: &mut Backtraces, depth: u32) {
    let aligned = black_box(Aligned([depth as u8; 64]));
    nested(found, depth);
    black_box(aligned.0[0]);
}

#[inline(never)]
extern "C" fn nested(found: &mut Backtraces, depth: u32) {
    match (depth, depth % 3) {
        (0, _) => innermost(found, 0),
        (_, 0) => with_large_frame(found, depth - 1),
        (_, 1) => with_aligned_frame(found, depth - 1),
        _ => nested(found, depth - 1),
    }
    black_box(());
}

#[test]
fn frames_are_those_of_the_c_library() {
    let mut found = Backtraces::default();
    nested(&mut found, 20);
    assert!(found.ours.len() > 20);
    // Ours may end earlier, at a rule that is not simple.
    assert_eq!(found.ours, found.theirs[..found.ours.len()]);
    assert!(found.ours.len() + 3 >= found.theirs.len());
}

std::thread_local! {
    static FOUND: std::cell::RefCell<Backtraces> = std::cell::RefCell::default();
}

extern "C" fn compare(a: *const c_void, b: *const c_void) -> c_int {
    FOUND.with_borrow_mut(|found| with_large_frame(found, 3));
    // SAFETY: `qsort` passes pointers to elements of the array, which are bytes.
    let a = unsafe { *a.cast::<u8>() };
    // SAFETY: `qsort` passes pointers to elements of the array, which are bytes.
    let b = unsafe { *b.cast::<u8>() };
    c_int::from(a) - c_int::from(b)
}

#[test]
fn frames_of_the_c_library_are_crossed() {
    let mut bytes = [3_u8, 1, 2];
    // SAFETY: an array of three elements of one byte, and a comparison of such.
    unsafe { libc::qsort(bytes.as_mut_ptr().cast(), 3, 1, Some(compare)) };
    assert_eq!(bytes, [1, 2, 3]);
    FOUND.with_borrow(|found| {
        assert!(found.ours.len() > 8);
        assert_eq!(found.ours, found.theirs[..found.ours.len()]);
        let modules = Modules::new().expect("this C library has _dl_find_object");
        let own = modules.find(compare as *const () as u64).expect("a module").range;
        assert!(found.ours.iter().any(|pc| !own.contains(pc)), "none in the C library");
    });
}

#[inline(never)]
extern "C" fn limited(found: &mut Backtraces, limit: u64) {
    innermost(found, limit);
    black_box(());
}

#[test]
fn nothing_at_or_above_the_limit_is_read() {
    let mut found = Backtraces::default();
    let here = Registers::capture();
    limited(&mut found, here.sp);
    // The frames of `limited` and of nobody else end below our stack pointer.
    assert!(found.ours.len() <= 1);
    limited(&mut found, 0);
    assert!(found.ours.len() > 2);
}

#[test]
fn addresses_of_no_module_end_the_unwinding() {
    let modules = Modules::new().expect("this C library has _dl_find_object");
    let here = Registers::capture();
    let mut codes = [0; 4];
    for pc in [0, 1, 0x10, u64::MAX] {
        let registers = Registers { pc, ..here };
        // SAFETY: no module has the address, so no rule leads to a read.
        let count = unsafe { unwinder().unwind(&modules, registers, u64::MAX, &mut codes) };
        assert_eq!(count, 0);
    }
}

#[test]
fn unwinding_needs_little_stack() {
    let modules = Modules::new().expect("this C library has _dl_find_object");
    let mut unwinder = unwinder();
    let mut codes = [0; 64];
    let mut unwind = || {
        let registers = Registers::capture();
        // SAFETY: captured in this closure; the unwind tables lead along its stack.
        let count = unsafe { unwinder.unwind(&modules, registers, u64::MAX, &mut codes) };
        assert!(count > 2);
    };
    let used = stack_used(&mut unwind);
    println!("stack used by unwinding, no rule known: {used} bytes");
    let allowed = if cfg!(debug_assertions) { 16 << 10 } else { 1536 };
    assert!(used <= allowed, "{used} bytes");
}
