//! Keeps allocations that are far from the next sample on the runtime's fast path.
//!
//! A hook for new objects sets `has_hook`, with which the runtime leaves its fast path for every
//! object (`newobj_of0`, `gc.c`). What calls the hook there tests `hook_events` only. So the bit is
//! cleared while the next sample is farther away than the objects of a page: then the hook is called where
//! a page is used up, and for the few objects that never take the fast path. What was allocated in
//! between is the difference of the runtime's own count.
//!
//! Other tools have hooks for objects, too, and see none while the gate is closed. A change of
//! hooks, whoever makes it, sets the bit again (`rb_objspace_set_event_hook`). Where it is found set,
//! the caller is asked whether there are others; then the gate stays open until the next collection,
//! where that is asked again.
//!
//! Under the runtime's lock.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use super::layout::{FLAGS, HAS_HOOK, IS_MINOR, PAGE_OBJECTS, SLOT_WORDS, TOTAL};

/// As many words can be allocated without a call of the hook.
const UNSEEN_WORDS: isize = (PAGE_OBJECTS * SLOT_WORDS) as isize;

/// The gate of the objects of one heap.
#[derive(Clone, Copy)]
pub(super) struct Gate {
    flags: &'static AtomicU32,
    total: &'static AtomicUsize,
    /// The runtime's count when the hook was called last.
    seen: usize,
    is_closed: bool,
    /// Another tool has a hook.
    stays_open: bool,
}

impl Gate {
    /// # Safety
    /// `objspace` is the runtime's `rb_objspace_t`, with the proved layout.
    pub(super) unsafe fn new(objspace: usize) -> Gate {
        // SAFETY: a `uint32_t` there by the contract; the heap is never unmapped. The runtime writes it
        // without atomic instructions, under its lock, which our caller holds.
        let flags = unsafe { AtomicU32::from_ptr((objspace + FLAGS) as *mut u32) };
        // SAFETY: the same of a `size_t`.
        let total = unsafe { AtomicUsize::from_ptr((objspace + TOTAL) as *mut usize) };
        let seen = total.load(Ordering::Relaxed);
        Gate { flags, total, seen, is_closed: false, stays_open: false }
    }

    /// Whether the collection, or the last one, marks young objects only.
    pub(super) fn is_minor(&self) -> bool {
        self.flags.load(Ordering::Relaxed) & IS_MINOR != 0
    }

    /// The objects that were allocated since the last call.
    pub(super) fn count(&mut self) -> usize {
        let total = self.total.load(Ordering::Relaxed);
        let count = total.wrapping_sub(self.seen);
        self.seen = total;
        count
    }

    /// So many words are left to the next sample.
    pub(super) fn set(&mut self, left: isize, has_others: impl Fn() -> bool) {
        let flags = self.flags.load(Ordering::Relaxed);
        let is_open = flags & HAS_HOOK != 0;
        if self.is_closed && is_open {
            self.stays_open = has_others();
        }
        self.is_closed = left >= UNSEEN_WORDS && !self.stays_open;
        if self.is_closed == is_open {
            self.flags.store(flags ^ HAS_HOOK, Ordering::Relaxed);
        }
    }

    /// A collection: whether it still has to stay open.
    pub(super) fn ask_again(&mut self, has_others: impl Fn() -> bool) {
        self.stays_open = self.stays_open && has_others();
    }

    /// No object is allocated unseen from now on. Async-signal-safe.
    pub(super) fn open(&mut self) {
        self.is_closed = false;
        self.flags.store(self.flags.load(Ordering::Relaxed) | HAS_HOOK, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words of an `rb_objspace_t`, of which the flags and the count are used.
    fn gate(objspace: &'static [AtomicUsize; 4]) -> Gate {
        // SAFETY: both fields are within the array, which lives as long as the process.
        unsafe { Gate::new(objspace.as_ptr() as usize) }
    }

    fn is_open(objspace: &[AtomicUsize; 4]) -> bool {
        objspace[FLAGS / 8].load(Ordering::Relaxed) & HAS_HOOK as usize != 0
    }

    fn objspace() -> &'static [AtomicUsize; 4] {
        let words: [AtomicUsize; 4] = Default::default();
        words[FLAGS / 8].store(HAS_HOOK as usize | 0xdead_0000_0000_0004, Ordering::Relaxed);
        Box::leak(Box::new(words))
    }

    #[test]
    fn it_is_closed_while_no_page_reaches_the_next_sample() {
        let objspace = objspace();
        let mut gate = gate(objspace);
        for (left, open) in
            [(UNSEEN_WORDS - 1, true), (UNSEEN_WORDS, false), (isize::MAX, false), (0, true)]
        {
            gate.set(left, || false);
            assert_eq!(is_open(objspace), open, "{left}");
        }
        // Nothing else has changed.
        let flags = objspace[FLAGS / 8].load(Ordering::Relaxed);
        assert_eq!(flags, HAS_HOOK as usize | 0xdead_0000_0000_0004);
    }

    #[test]
    fn it_stays_open_for_others() {
        let objspace = objspace();
        let mut gate = gate(objspace);
        gate.set(isize::MAX, || false);
        assert!(!is_open(objspace));
        objspace[FLAGS / 8].fetch_or(HAS_HOOK as usize, Ordering::Relaxed);
        gate.set(isize::MAX, || true);
        assert!(is_open(objspace));
        gate.ask_again(|| true);
        gate.set(isize::MAX, || unreachable!("it was open before"));
        assert!(is_open(objspace));
        gate.ask_again(|| false);
        gate.set(isize::MAX, || unreachable!("it was open before"));
        assert!(!is_open(objspace));
        // A change of other hooks.
        objspace[FLAGS / 8].fetch_or(HAS_HOOK as usize, Ordering::Relaxed);
        gate.set(isize::MAX, || false);
        assert!(!is_open(objspace));
    }

    #[test]
    fn it_is_opened_at_once_and_closes_again() {
        let objspace = objspace();
        let mut gate = gate(objspace);
        gate.set(isize::MAX, || false);
        gate.open();
        assert!(is_open(objspace));
        gate.set(isize::MAX, || false);
        assert!(!is_open(objspace));
    }

    #[test]
    fn what_passed_unseen_is_counted() {
        let objspace = objspace();
        let mut gate = gate(objspace);
        objspace[TOTAL / 8].fetch_add(410, Ordering::Relaxed);
        assert_eq!((gate.count(), gate.count()), (410, 0));
    }
}
