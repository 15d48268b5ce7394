//! The stack our hooks run on.
//!
//! OCaml's code touches the stack 4 KiB ahead before it calls C
//! (`runtime/amd64.S`), and turns a fault there into an exception that programs
//! catch; a fault inside C kills them. So hooks take a few words of the
//! program's stack and run on one of ours. One is enough, as they run one at a
//! time.

use std::arch::naked_asm;
use std::ffi::c_void;

use crate::sys::memory::Region;

/// Untouched pages cost nothing.
const WORDS: usize = 64 << 10;

/// A stack, mapped for good.
#[derive(Clone, Copy)]
pub(crate) struct OwnStack {
    /// Where it begins: 16-byte aligned.
    top: usize,
}

impl OwnStack {
    /// None when there is no memory.
    pub(crate) fn new() -> Option<OwnStack> {
        let bottom = Region::new(WORDS)?.into_raw() as usize;
        Some(OwnStack { top: (bottom + WORDS * size_of::<u64>()) & !15 })
    }

    /// Runs `function` there.
    ///
    /// # Safety
    /// Nothing runs there now, and `function` does not unwind.
    #[inline]
    pub(crate) unsafe fn run(&self, function: extern "C" fn(*mut c_void), argument: *mut c_void) {
        // SAFETY: the caller's promise; the stack is ours and large enough.
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
    fn what_runs_there_has_much_room_and_comes_back() {
        extern "C" fn deep(result: *mut c_void) {
            let large = std::hint::black_box([1u8; 100_000]);
            let here = &raw const large as usize;
            let sum = large.iter().map(|&byte| usize::from(byte)).sum();
            // SAFETY: two words of the test.
            unsafe { result.cast::<[usize; 2]>().write([here, sum]) };
        }
        let stack = OwnStack::new().unwrap();
        for _ in 0..2 {
            let mut result = [0usize; 2];
            // SAFETY: nothing else runs there.
            unsafe { stack.run(deep, (&raw mut result).cast()) };
            assert_eq!(result[1], 100_000);
            assert!((stack.top - WORDS * 8..stack.top).contains(&result[0]));
        }
    }
}
