//! The state of one call of a hook.

use crate::stack::native::Registers;

/// One call of a hook: when it began, and which of the facts that its events
/// share have been recorded already.
pub(crate) struct HookContext {
    /// Since the session's start.
    pub(crate) ticks: u64,
    /// Registers of the hook's caller.
    pub(crate) registers: Registers,
    /// The mutator's last [`Record::Time`](crate::queue::Record) is `ticks`.
    pub(crate) time_recorded: bool,
    /// The writer has the stack of this call.
    pub(crate) stack_recorded: bool,
}

impl HookContext {
    pub(crate) fn at(ticks: u64, registers: Registers) -> HookContext {
        HookContext { ticks, registers, time_recorded: false, stack_recorded: false }
    }
}
