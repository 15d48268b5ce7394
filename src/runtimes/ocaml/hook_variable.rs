//! Hooks that the runtime offers: variables that hold a pointer to a function,
//! `void (*)(void)`, or NULL.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::runtimes::attach::symbols::function_at;

/// A function that such a variable points to.
pub(super) type Hook = extern "C" fn();

/// The hook that was in a variable before ours.
pub(super) struct HookBefore(AtomicUsize);

impl HookBefore {
    pub(super) const fn none() -> HookBefore {
        HookBefore(AtomicUsize::new(0))
    }

    /// Puts our hook into a variable, in front of the one that is there. May be called again.
    ///
    /// # Safety
    /// The runtime declares such a variable at this address, and is never unloaded.
    pub(super) unsafe fn set(&self, variable: usize, ours: Hook) {
        // SAFETY: a variable of the runtime by the contract, as large as an address.
        let variable = unsafe { AtomicUsize::from_ptr(variable as *mut usize) };
        let before = variable.load(Ordering::Acquire);
        if before != ours as usize {
            // First, since our hook may be called as soon as it is there.
            self.0.store(before, Ordering::Release);
            variable.store(ours as usize, Ordering::Release);
        }
    }

    /// Puts what was there back. False if ours is not in the variable: somebody has set another.
    ///
    /// # Safety
    /// That of [`HookBefore::set`], which was called for this variable.
    pub(super) unsafe fn remove(&self, variable: usize, ours: Hook) -> bool {
        // SAFETY: a variable of the runtime by the contract, as large as an address.
        let variable = unsafe { AtomicUsize::from_ptr(variable as *mut usize) };
        let before = self.0.load(Ordering::Acquire);
        let (acquire, relaxed) = (Ordering::AcqRel, Ordering::Relaxed);
        variable.compare_exchange(ours as usize, before, acquire, relaxed).is_ok()
    }

    /// Calls it, if there was one.
    pub(super) fn call(&self) {
        let before = self.0.load(Ordering::Acquire);
        if before != 0 {
            // SAFETY: not NULL, so the function that the runtime would have called.
            let before: Hook = unsafe { function_at(before) };
            before();
        }
    }
}
