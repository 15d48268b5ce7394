//! Memory that this process shares with its copies.
#![allow(unsafe_code, reason = "maps memory")]

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;

const PAGE: usize = 4096;

/// A `T` in a page that a copy of this process (see
/// [`copy_process`](super::copy_process)) writes to and this process reads.
pub(crate) struct SharedPage<T> {
    start: NonNull<T>,
    owns: PhantomData<T>,
}

// SAFETY: it gives out shared references only.
unsafe impl<T: Sync> Send for SharedPage<T> {}
// SAFETY: it gives out shared references only.
unsafe impl<T: Sync> Sync for SharedPage<T> {}

impl<T: Default> SharedPage<T> {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<SharedPage<T>> {
        const { assert!(size_of::<T>() <= PAGE && align_of::<T>() <= PAGE) };
        let start = map_shared(PAGE)?.cast::<T>();
        // SAFETY: a page that was just mapped, large enough for a `T` and aligned.
        unsafe { start.write(T::default()) };
        Some(SharedPage { start, owns: PhantomData })
    }
}

impl<T> SharedPage<T> {
    pub(crate) fn get(&self) -> &T {
        // SAFETY: `new` has written a `T`, and the page is mapped until `self` is dropped.
        unsafe { self.start.as_ref() }
    }
}

impl<T> Drop for SharedPage<T> {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), PAGE) };
    }
}

/// Words that a copy of this process writes and this process reads. Pages that are never
/// touched take no memory.
pub(crate) struct SharedWords {
    start: NonNull<AtomicU64>,
    len: usize,
}

// SAFETY: it gives out shared references to atomics only.
unsafe impl Send for SharedWords {}
// SAFETY: it gives out shared references to atomics only.
unsafe impl Sync for SharedWords {}

impl SharedWords {
    /// `len` words of 0; `None` if the system refuses.
    pub(crate) fn new(len: usize) -> Option<SharedWords> {
        let bytes = len.checked_mul(size_of::<AtomicU64>())?;
        let start = map_shared(bytes)?.cast();
        Some(SharedWords { start, len })
    }

    pub(crate) fn get(&self) -> &[AtomicU64] {
        // SAFETY: `new` has mapped `len` zeroed words, which live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl Drop for SharedWords {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this size, and nothing refers to it any more.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.len * size_of::<AtomicU64>()) };
    }
}

/// Maps zeroed bytes that copies of this process share.
fn map_shared(bytes: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps no
    // memory in use.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn what_a_copy_writes_is_seen() {
        let page: SharedPage<AtomicU32> = SharedPage::new().unwrap();
        let write = || {
            page.get().store(17, Ordering::Relaxed);
            0
        };
        // SAFETY: the work writes one word.
        let copy = unsafe { crate::sys::copy_process::run_in_copy(write) }.unwrap();
        crate::sys::copy_process::wait_for(copy, core::time::Duration::from_secs(60), || false);
        assert_eq!(page.get().load(Ordering::Relaxed), 17);
    }
}
