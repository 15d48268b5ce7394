//! A stack for hooks to run on.
//!
//! A runtime may leave the C code that it calls very little stack. Such a
//! runtime's hooks use a few words of the program's stack and run on one of
//! these. One is enough for hooks that run one at a time.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::sys::memory::Region;

/// 512 KiB. Pages that are never touched take no memory.
const WORDS: usize = 64 << 10;

/// A stack that is never unmapped.
#[derive(Clone, Copy)]
pub(crate) struct OwnStack {
    /// One past its highest address; 16-byte aligned.
    top: usize,
}

impl OwnStack {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<OwnStack> {
        let bottom = Region::new(WORDS)?.into_raw() as usize;
        Some(OwnStack { top: (bottom + WORDS * size_of::<u64>()) & !15 })
    }

    /// Calls `function(argument)` on this stack.
    ///
    /// # Safety
    /// Nothing else runs on this stack until the call returns, and `function` does
    /// not unwind.
    #[inline]
    pub(crate) unsafe fn run(&self, function: extern "C" fn(*mut c_void), argument: *mut c_void) {
        // SAFETY: `new` mapped the stack for good, and by this function's contract
        // nobody else uses it now and nothing unwinds through `call_on`.
        unsafe { call_on(self.top, function, argument) };
    }
}

/// Calls `function(argument)` with the stack pointer at `top`.
#[unsafe(naked)]
unsafe extern "C" fn call_on(
    top: usize,
    function: extern "C" fn(*mut c_void),
    argument: *mut c_void,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_has_room_and_returns() {
        extern "C" fn deep(result: *mut c_void) {
            let large = std::hint::black_box([1u8; 100_000]);
            let here = &raw const large as usize;
            let sum = large.iter().map(|&byte| usize::from(byte)).sum();
            // SAFETY: the test passes the address of two words.
            unsafe { result.cast::<[usize; 2]>().write([here, sum]) };
        }
        let stack = OwnStack::new().unwrap();
        for _ in 0..2 {
            let mut result = [0usize; 2];
            // SAFETY: no other thread knows this stack, and `deep` does not unwind.
            unsafe { stack.run(deep, (&raw mut result).cast()) };
            assert_eq!(result[1], 100_000);
            assert!((stack.top - WORDS * 8..stack.top).contains(&result[0]));
        }
    }
}
