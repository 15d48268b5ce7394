//! A flag of each thread, with a function that runs when a thread ends while its flag is set.
//!
//! On `pthread_key_create`, since variables that the compiler makes thread-local may be
//! allocated when a thread first uses them.
#![allow(unsafe_code, reason = "calls the C library")]

use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};

/// What is called when a thread ends: the flags' one function. There is one flag.
static ENDED: AtomicUsize = AtomicUsize::new(0);

/// The flag of every thread. May be used inside hooks: nothing is allocated.
pub(crate) struct ThreadFlag {
    key: libc::pthread_key_t,
}

impl ThreadFlag {
    /// A flag that is clear on every thread. `None` if there are too many keys, or a flag
    /// exists already.
    pub(crate) fn new(ended: fn()) -> Option<ThreadFlag> {
        let is_first =
            ENDED.compare_exchange(0, ended as usize, Ordering::AcqRel, Ordering::Relaxed);
        is_first.ok()?;
        let mut key = 0;
        // SAFETY: `pthread_key_create` writes the key; the destructor is never unloaded, since
        // a library that has attached stays.
        let failed = unsafe { libc::pthread_key_create(&raw mut key, Some(destructor)) };
        (failed == 0).then_some(ThreadFlag { key })
    }

    /// Whether the flag of this thread is set.
    pub(crate) fn is_set(&self) -> bool {
        // SAFETY: the key was created and is never deleted.
        unsafe { !libc::pthread_getspecific(self.key).is_null() }
    }

    /// Sets the flag of this thread. False if it was set.
    pub(crate) fn set(&self) -> bool {
        self.change(1)
    }

    /// Clears the flag of this thread. False if it was clear.
    pub(crate) fn clear(&self) -> bool {
        self.change(0)
    }

    fn change(&self, to: usize) -> bool {
        // SAFETY: the key was created and is never deleted.
        let before = unsafe { libc::pthread_getspecific(self.key) } as usize;
        // SAFETY: the key was created and is never deleted; the value is not dereferenced.
        before != to && unsafe { libc::pthread_setspecific(self.key, to as *const c_void) } == 0
    }
}

/// Called by the C library when a thread ends whose flag is set.
extern "C" fn destructor(_: *mut c_void) {
    let ended = ENDED.load(Ordering::Acquire);
    if ended != 0 {
        // SAFETY: `new` stored a function of this type.
        let ended = unsafe { core::mem::transmute::<usize, fn()>(ended) };
        ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ENDS: AtomicUsize = AtomicUsize::new(0);

    #[test]
    fn each_thread_has_its_flag_and_a_set_one_is_reported_at_the_end() {
        let flag = ThreadFlag::new(|| _ = ENDS.fetch_add(1, Ordering::Relaxed)).unwrap();
        assert!(ThreadFlag::new(|| {}).is_none());
        assert!(flag.set() && !flag.set() && flag.clear() && !flag.clear());
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(flag.set()));
        });
        std::thread::scope(|scope| {
            scope.spawn(|| assert!(flag.set() && flag.clear()));
        });
        assert_eq!(ENDS.load(Ordering::Relaxed), 1);
    }
}
