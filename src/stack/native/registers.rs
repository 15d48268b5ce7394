//! The registers that unwinding starts from.

#![allow(unsafe_code, reason = "registers are read by assembly")]

/// The registers that unwinding needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Registers {
    /// A return address or the like: the byte before it belongs to the function.
    pub(crate) pc: u64,
    pub(crate) sp: u64,
    /// `rbp`, whether or not it is a frame pointer.
    pub(crate) bp: u64,
}

impl Registers {
    /// Of no function: unwinding finds nothing.
    pub(crate) const NONE: Registers = Registers { pc: 0, sp: 0, bp: 0 };

    /// Those of the function this is inlined into.
    #[inline(always)]
    pub(crate) fn capture() -> Self {
        let (pc, sp, bp): (u64, u64, u64);
        // SAFETY: copies registers to registers; touches no memory and no flags.
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
