//! Memory that this process shares with its copies.
#![allow(unsafe_code, reason = "maps memory")]

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use super::memory::{Zeroable, map_anonymous};

/// Values, zeroed at first, that a copy of this process (see [`copy_process`](super::copy_process))
/// writes and this process reads. Pages that are never touched take no memory.
pub(crate) struct SharedArray<T> {
    start: NonNull<T>,
    len: usize,
    owns: PhantomData<T>,
}

// SAFETY: it gives out shared references only.
unsafe impl<T: Sync> Send for SharedArray<T> {}
// SAFETY: it gives out shared references only.
unsafe impl<T: Sync> Sync for SharedArray<T> {}

impl<T: Zeroable> SharedArray<T> {
    /// `None` if the system refuses.
    pub(crate) fn new(len: usize) -> Option<SharedArray<T>> {
        let bytes = len.checked_mul(size_of::<T>())?;
        let start = map_anonymous(bytes, libc::MAP_SHARED)?.cast();
        Some(SharedArray { start, len, owns: PhantomData })
    }
}

impl<T> Deref for SharedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `new` has mapped `len` zeroed values, which is valid for a `Zeroable` type, at a
        // page, so aligned. They live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T> Drop for SharedArray<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len * size_of::<T>()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn what_a_copy_writes_is_seen() {
        let words: SharedArray<AtomicU64> = SharedArray::new(1).unwrap();
        let write = || {
            words[0].store(17, Ordering::Relaxed);
            0
        };
        // SAFETY: the work writes one word.
        let copy = unsafe { crate::sys::copy_process::run_in_copy(write) }.unwrap();
        crate::sys::copy_process::wait_for(copy, core::time::Duration::from_secs(60), || false);
        assert_eq!(words[0].load(Ordering::Relaxed), 17);
    }
}
