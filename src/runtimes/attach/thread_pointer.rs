//! The thread pointer, from which a thread's variables are addressed.

use std::arch::asm;

/// The calling thread's pointer. A variable of the initial TLS block has the same
/// distance from it in every thread.
#[inline]
pub(crate) fn thread_pointer() -> usize {
    let pointer: usize;
    // SAFETY: the first word at the thread pointer is its own address (System V
    // ABI, *Thread-local storage*).
    unsafe { asm!("mov {}, fs:0", out(reg) pointer, options(nostack, readonly, preserves_flags)) };
    pointer
}
