//! Where the calling function is.

#![allow(unsafe_code, reason = "registers are read by assembly")]

/// The registers that unwinding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// An address that a call returns to, or the like: the code it belongs to is
    /// that of the byte before.
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    /// `rbp`, whatever it is used for.
    pub(crate) bp: u64,
}

impl Registers {
    /// Of no function: nothing is found from there.
    pub(crate) const NONE: Registers = Registers { pc: 0, sp: 0, bp: 0 };

    /// Those of the function this is inlined into.
    #[inline(always)]
    pub(crate) fn capture() -> Self {
        let (pc, sp, bp): (u64, u64, u64);
        // SAFETY: only reads registers into registers.
        unsafe {
            core::arch::asm!(
                "lea {pc}, [rip + 2f]",
                "2:",
                "mov {sp}, rsp",
                "mov {bp}, rbp",
                pc = out(reg) pc,
                sp = out(reg) sp,
                bp = out(reg) bp,
                options(nostack),
            );
        }
        Self { pc, sp, bp }
    }
}
