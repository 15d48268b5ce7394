//! How much stack a call uses, found out by painting what lies below.

#![allow(unsafe_code, reason = "writes below the stack pointer")]

use super::native::Registers;

/// How much of the stack below its caller's frame a call uses.
#[inline(never)]
pub(super) fn stack_used(call: &mut dyn FnMut()) -> usize {
    const PAINT: u64 = 0x5AFE_5AFE_5AFE_5AFE;
    const WORDS: u64 = 8192;
    let top = Registers::capture().sp - 256;
    for word in 1..WORDS {
        // SAFETY: below the stack pointer and above the end of a test's stack;
        // 256 bytes are left for this function's own calls.
        unsafe { core::ptr::write_volatile((top - 8 * word) as *mut u64, PAINT) };
    }
    call();
    let untouched = (1..WORDS).rev().take_while(|word| {
        // SAFETY: painted above.
        let now = unsafe { core::ptr::read_volatile((top - 8 * word) as *const u64) };
        now == PAINT
    });
    256 + 8 * (WORDS as usize - 1 - untouched.count())
}
