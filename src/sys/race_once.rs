//! A value that is made once, and that nobody waits for.
//!
//! `OnceLock` lets other threads wait for the one that makes the value. A program that forks
//! meanwhile leaves a child without that thread, in which they wait for ever. Here, threads that
//! need the value at the same time each make one, and the first that is ready stays.
#![allow(unsafe_code, reason = "a pointer that is set once")]

use std::marker::PhantomData;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

/// A value that is made by the first who needs it.
pub(crate) struct RaceOnce<T> {
    /// NULL, or from `Box::into_raw`. Set once.
    value: AtomicPtr<T>,
    owns: PhantomData<T>,
}

// SAFETY: threads get `&T`, for which `T` is `Sync`, and any of them may drop the value, for
// which it is `Send`.
unsafe impl<T: Send + Sync> Sync for RaceOnce<T> {}

impl<T> RaceOnce<T> {
    pub(crate) const fn new() -> Self {
        Self { value: AtomicPtr::new(ptr::null_mut()), owns: PhantomData }
    }

    pub(crate) fn get(&self) -> Option<&T> {
        // SAFETY: NULL, or set by `set` and not freed before `self`.
        unsafe { self.value.load(Ordering::Acquire).as_ref() }
    }

    /// The value. `make` may run on several threads; all get the same result.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        if let Some(value) = self.get() {
            return value;
        }
        match self.set(make()) {
            Ok(value) | Err(value) => value,
        }
    }

    /// Sets the value unless it was set before: then the error is that of before.
    pub(crate) fn set(&self, value: T) -> Result<&T, &T> {
        let made = Box::into_raw(Box::new(value));
        let null = ptr::null_mut();
        match self.value.compare_exchange(null, made, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: from `Box::into_raw`; it is freed with `self`.
            Ok(_) => Ok(unsafe { &*made }),
            Err(first) => {
                // SAFETY: from `Box::into_raw` above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: another thread has set it; it is freed with `self`.
                Err(unsafe { &*first })
            }
        }
    }
}

impl<T> Drop for RaceOnce<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: from `Box::into_raw` in `set`, and nobody has a reference.
            drop(unsafe { Box::from_raw(value) });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn threads_at_the_same_time_do_not_wait_and_get_the_same() {
        let (once, all_make) = (RaceOnce::new(), Barrier::new(4));
        let counted = Arc::new(());
        let addresses: Vec<usize> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let value = once.get_or_init(|| {
                            // Nobody gets past it unless all make a value at once.
                            all_make.wait();
                            Arc::clone(&counted)
                        });
                        ptr::from_ref(value) as usize
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(addresses.windows(2).all(|pair| pair[0] == pair[1]));
        assert_eq!(Arc::strong_count(&counted), 2, "the others' values are dropped");
        drop(once);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    #[test]
    fn the_first_value_stays() {
        let once = RaceOnce::new();
        assert_eq!(once.get(), None);
        assert_eq!(once.set(1), Ok(&1));
        assert_eq!(once.set(2), Err(&1));
        assert_eq!(once.get(), Some(&1));
    }
}
