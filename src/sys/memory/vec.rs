//! Arrays that grow.
#![allow(unsafe_code, reason = "owns the memory that it maps and unmaps")]

use super::mapping::{map, mapping_size, remap, unmap};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// An array of plain values that grows.
pub(crate) struct MappedVec<T: Copy> {
    /// The start of a mapping of `mapping_size::<T>(capacity)` bytes, which this value owns.
    start: NonNull<T>,
    /// The first `len` elements are initialised.
    len: usize,
    /// How many elements fit the mapping. At least 1.
    capacity: usize,
    owns: PhantomData<T>,
}

// SAFETY: it owns its elements, like a `Vec`.
unsafe impl<T: Copy + Send> Send for MappedVec<T> {}
// SAFETY: a shared reference gives shared access to the elements only.
unsafe impl<T: Copy + Sync> Sync for MappedVec<T> {}

impl<T: Copy> MappedVec<T> {
    /// An empty array with a capacity of at least `capacity`; `None` if the system refuses.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        let bytes = mapping_size::<T>(capacity)?;
        let start = map(bytes)?.cast();
        Some(Self { start, len: 0, capacity: bytes / size_of::<T>(), owns: PhantomData })
    }

    /// Appends `value`. False, and nothing changes, if there is no memory.
    #[must_use]
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.len == self.capacity && !self.reserve(1) {
            return false;
        }
        // SAFETY: `len < capacity`, so the element is within the mapping.
        let slot = unsafe { self.start.add(self.len) };
        // SAFETY: the slot is mapped and, since mappings begin at a page, aligned. `&mut
        // self` excludes other accesses.
        unsafe { slot.write(value) };
        self.len += 1;
        true
    }

    /// Grows the capacity to at least `additional` more elements. False, and nothing
    /// changes, if there is no memory.
    #[must_use]
    pub(crate) fn reserve(&mut self, additional: usize) -> bool {
        let Some(wanted) = self.len.checked_add(additional) else { return false };
        wanted <= self.capacity || self.grow(wanted.max(self.capacity.saturating_mul(2)))
    }

    #[cold]
    fn grow(&mut self, capacity: usize) -> bool {
        let old = mapping_size::<T>(self.capacity);
        let (Some(old), Some(new)) = (old, mapping_size::<T>(capacity)) else { return false };
        // SAFETY: the mapping has `old` bytes. `self` owns it and is borrowed exclusively.
        let Some(start) = (unsafe { remap(self.start.cast(), old, new) }) else { return false };
        self.start = start.cast();
        self.capacity = new / size_of::<T>();
        true
    }

    /// Shortens the array to `len` elements. Keeps the capacity.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// How many elements fit before the array must grow.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Copy> Deref for MappedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements are initialised and live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for MappedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: the first `len` elements are initialised. Only `self` refers to them, and
        // it is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for MappedVec<T> {
    fn drop(&mut self) {
        if let Some(bytes) = mapping_size::<T>(self.capacity) {
            // SAFETY: the mapping has this many bytes. All borrows of `self` have ended.
            unsafe { unmap(self.start.cast(), bytes) };
        }
    }
}
