//! The event hooks of the program: whether another one than ours wants to see objects.
//!
//! Under the runtime's lock, which whoever changes the list holds.

use super::layout::{
    DELETED, HOOK_FLAGS, HOOK_FUNCTION, HOOK_NEXT, NEW_OBJECT, RACTOR_HOOKS, VM_MAIN_RACTOR,
};
use super::symbols::{EventHook, Runtime};
use crate::sys::process_memory::read_word;

/// The list of the main ractor, the only one as long as there is a trace.
#[derive(Clone, Copy)]
pub(super) struct HookList {
    /// Where the address of the first hook is.
    first: usize,
}

impl HookList {
    /// `None` if there is no such ractor.
    pub(super) fn find(runtime: &Runtime) -> Option<HookList> {
        let vm = read_word(runtime.vm).filter(|&vm| vm != 0)?;
        let ractor = read_word(vm + VM_MAIN_RACTOR).filter(|&ractor| ractor != 0)?;
        read_word(ractor + RACTOR_HOOKS).map(|_| HookList { first: ractor + RACTOR_HOOKS })
    }

    /// The function and the events of each hook that is not about to be removed.
    pub(super) fn hooks(self) -> impl Iterator<Item = (usize, u32)> {
        /// More than a program has; a list that is longer is none.
        const MOST: usize = 1000;
        // Read by the kernel: a list that is not as known ends, and does no harm.
        let next = |at: usize| read_word(at).filter(|&hook| hook != 0);
        let hooks = std::iter::successors(next(self.first), move |&hook| next(hook + HOOK_NEXT));
        hooks.take(MOST).filter_map(|hook| {
            let flags = read_word(hook + HOOK_FLAGS)?;
            let is_there = flags as u32 & DELETED == 0;
            is_there.then_some((read_word(hook + HOOK_FUNCTION)?, (flags >> 32) as u32))
        })
    }

    /// Whether a hook for new objects has another function than this.
    pub(super) fn has_others_than(self, own: EventHook) -> bool {
        self.hooks().any(|(function, events)| {
            events & NEW_OBJECT != 0 && function != own as *const () as usize
        })
    }
}
