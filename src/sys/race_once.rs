//! A value that is made once, and that nobody waits for.
//!
//! `OnceLock` lets other threads wait for the one that makes the value. A program that forks
//! meanwhile leaves a child without that thread, in which they wait for ever. Here, threads that
//! need the value at the same time each make one, and the first that is ready stays.

use once_cell::race::OnceBox;

/// A value that is made by the first who needs it.
pub(crate) struct RaceOnce<T>(OnceBox<T>);

impl<T> RaceOnce<T> {
    pub(crate) const fn new() -> Self {
        Self(OnceBox::new())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    /// The value. `make` may run on several threads; all get the same result.
    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }

    /// Sets the value unless it was set before: then the error is that of before.
    pub(crate) fn set(&self, value: T) -> Result<&T, &T> {
        let is_first = self.0.set(Box::new(value)).is_ok();
        let value = self.get().expect("set here or before");
        if is_first { Ok(value) } else { Err(value) }
    }
}

#[cfg(test)]
mod tests {
    use std::ptr;
    use std::sync::{Arc, Barrier};

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
