//! A word of each thread, 0 at first.
//!
//! On `pthread_key_create`, since variables that the compiler makes thread-local may be
//! allocated when a thread first uses them.
#![allow(unsafe_code, reason = "calls the C library")]

use core::ffi::c_void;

/// The word of every thread.
pub(crate) struct ThreadWord {
    key: libc::pthread_key_t,
}

impl ThreadWord {
    /// `None` if there are too many keys.
    pub(crate) fn new() -> Option<ThreadWord> {
        let mut key = 0;
        // SAFETY: `pthread_key_create` writes the key.
        let failed = unsafe { libc::pthread_key_create(&raw mut key, None) };
        (failed == 0).then_some(ThreadWord { key })
    }

    /// The word of this thread. Callable from hooks.
    pub(crate) fn get(&self) -> usize {
        // SAFETY: the key was created and is never deleted.
        unsafe { libc::pthread_getspecific(self.key) as usize }
    }

    /// Sets that of this thread. Without memory it stays as it is. Where the process has more than
    /// thirty keys, glibc allocates once in each thread.
    pub(crate) fn set(&self, word: usize) {
        // SAFETY: the key was created and is never deleted; the value is not dereferenced.
        unsafe { libc::pthread_setspecific(self.key, word as *const c_void) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_its_word() {
        let word = ThreadWord::new().unwrap();
        word.set(7);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                assert_eq!(word.get(), 0);
                word.set(8);
                assert_eq!(word.get(), 8);
            });
        });
        assert_eq!(word.get(), 7);
    }
}
