//! Measures the stack that a call uses: fills what lies below with a pattern, and looks
//! how much of it is overwritten.

#![allow(unsafe_code, reason = "reads and writes below the stack pointer")]

use super::native::Registers;

/// The bytes of stack that `call` uses.
#[inline(never)]
pub(super) fn stack_used(call: &mut dyn FnMut()) -> usize {
    const PAINT: u64 = 0x5AFE_5AFE_5AFE_5AFE;
    const WORDS: u64 = 8192;
    let top = Registers::capture().sp - 256;
    for word in 1..WORDS {
        // SAFETY: 64 KiB below the stack pointer are mapped on a test's thread, whose
        // stack has 2 MiB, and no live frame is there: 256 bytes are left for the
        // functions that this one calls.
        unsafe { core::ptr::write_volatile((top - 8 * word) as *mut u64, PAINT) };
    }
    call();
    let untouched = (1..WORDS).rev().take_while(|word| {
        // SAFETY: the same addresses as above.
        let now = unsafe { core::ptr::read_volatile((top - 8 * word) as *const u64) };
        now == PAINT
    });
    256 + 8 * (WORDS as usize - 1 - untouched.count())
}
