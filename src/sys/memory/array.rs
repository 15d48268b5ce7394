//! Arrays of fixed length.
#![allow(unsafe_code, reason = "owns the memory that it maps and unmaps")]

use super::mapping::{map, mapping_size, populate, unmap};
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;

/// A type for which all bits zero is a valid value, and which needs no drop.
///
/// # Safety
/// Both must hold.
pub(crate) unsafe trait Zeroable {}

// SAFETY: zero is a valid integer, and integers need no drop.
unsafe impl Zeroable for u64 {}
// SAFETY: the same of atomic ones.
unsafe impl Zeroable for core::sync::atomic::AtomicU64 {}
// SAFETY: the same.
unsafe impl Zeroable for core::sync::atomic::AtomicU16 {}

/// An array of fixed length, zeroed at first, at an address that never changes.
pub(crate) struct MappedArray<T: Zeroable> {
    /// The start of a mapping of `mapping_size::<T>(len)` bytes, which this value owns.
    start: NonNull<T>,
    len: usize,
    owns: PhantomData<T>,
}

/// An array of words.
pub(crate) type Region = MappedArray<u64>;

// SAFETY: it owns its elements, like a `Box<[T]>`.
unsafe impl<T: Zeroable + Send> Send for MappedArray<T> {}
// SAFETY: a shared reference gives shared access to the elements only.
unsafe impl<T: Zeroable + Sync> Sync for MappedArray<T> {}

impl<T: Zeroable> MappedArray<T> {
    /// Maps `len` zeroed elements; `None` if the system refuses.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let start = map(mapping_size::<T>(len)?)?.cast();
        Some(Self { start, len, owns: PhantomData })
    }

    /// Has the system provide all pages at once, which takes far less time than a fault for
    /// each. Without effect before Linux 5.14. Not inside hooks.
    pub(crate) fn populate(&self) {
        if let Some(bytes) = mapping_size::<T>(self.len) {
            populate(self.start.cast(), bytes);
        }
    }

    /// The first element. [`MappedArray::from_raw`] is the inverse.
    pub(crate) fn into_raw(self) -> *mut T {
        core::mem::ManuallyDrop::new(self).start.as_ptr()
    }

    /// The inverse of [`MappedArray::into_raw`]; `None` for NULL.
    ///
    /// # Safety
    /// `start` is NULL or came from `into_raw` of an array of `len` elements, and nothing
    /// else refers to the elements.
    pub(crate) unsafe fn from_raw(start: *mut T, len: usize) -> Option<Self> {
        Some(Self { start: NonNull::new(start)?, len, owns: PhantomData })
    }
}

impl<T: Zeroable> Deref for MappedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements begin at `start`. They were zeroed, which is valid for a
        // `Zeroable` type, or written since; and they live as long as `self`.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zeroable> DerefMut for MappedArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: `len` valid elements begin at `start`, which only `self` refers to, and
        // `self` is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zeroable> AsRef<[T]> for MappedArray<T> {
    fn as_ref(&self) -> &[T] {
        self
    }
}

impl<T: Zeroable> AsMut<[T]> for MappedArray<T> {
    fn as_mut(&mut self) -> &mut [T] {
        self
    }
}

impl<T: Zeroable> Drop for MappedArray<T> {
    fn drop(&mut self) {
        if let Some(bytes) = mapping_size::<T>(self.len) {
            // SAFETY: `new` mapped this many bytes. All borrows of `self` have ended.
            unsafe { unmap(self.start.cast(), bytes) };
        }
    }
}
