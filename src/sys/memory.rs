//! Arrays in anonymous mappings.
//!
//! Hooks may not call malloc: the host may be inside it, or have replaced it.
//! What must grow under a hook lives here instead, and growing is one `mremap`.
//! Pages that were never touched cost nothing, so capacities may be generous.
//!
//! A session needs some fifteen of them at once. They are parts of one mapping,
//! made with the first: a system call for each would be a good part of what a
//! short program pays for being traced. What does not fit is mapped alone. A part
//! is given back to the system when it is dropped, and never used again.
//!
//! Nothing here panics or unwinds; a refused mapping is `None` or `false`, and
//! `errno` is kept.
#![allow(unsafe_code, reason = "owns memory that it maps and unmaps itself")]

use super::errno::KeepErrno;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

/// Types for which all bits zero is a valid value, and which need no drop.
///
/// # Safety
/// Both must hold.
pub(crate) unsafe trait Zeroable {}

// SAFETY: zero is a number.
unsafe impl Zeroable for u64 {}

/// A fixed array, zeroed at first, at an address that never changes.
pub(crate) struct MappedArray<T: Zeroable> {
    start: NonNull<T>,
    len: usize,
    owns: PhantomData<T>,
}

/// A fixed block of words.
pub(crate) type Region = MappedArray<u64>;

// SAFETY: it owns its elements as a Box<[T]> does.
unsafe impl<T: Zeroable + Send> Send for MappedArray<T> {}
// SAFETY: a shared MappedArray gives shared elements only.
unsafe impl<T: Zeroable + Sync> Sync for MappedArray<T> {}

impl<T: Zeroable> MappedArray<T> {
    /// Maps `len` zeroed elements; `None` when the system refuses.
    pub(crate) fn new(len: usize) -> Option<Self> {
        let start = map(bytes_of::<T>(len)?)?.cast();
        Some(Self { start, len, owns: PhantomData })
    }

    /// The elements, for [`MappedArray::from_raw`] to take back.
    pub(crate) fn into_raw(self) -> *mut T {
        core::mem::ManuallyDrop::new(self).start.as_ptr()
    }

    /// Takes back what [`MappedArray::into_raw`] gave; `None` for NULL.
    ///
    /// # Safety
    /// It came from there, of an array of this length, and is used by nobody.
    pub(crate) unsafe fn from_raw(start: *mut T, len: usize) -> Option<Self> {
        Some(Self { start: NonNull::new(start)?, len, owns: PhantomData })
    }
}

impl<T: Zeroable> Deref for MappedArray<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: `len` elements are mapped, zeroed or written since, and
        // borrowed as `self` is.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Zeroable> DerefMut for MappedArray<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
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
        if let Some(bytes) = bytes_of::<T>(self.len) {
            // SAFETY: mapped by `new` with this size; nobody can borrow it now.
            unsafe { unmap(self.start.cast(), bytes) };
        }
    }
}

/// A growing array of plain values.
pub(crate) struct MappedVec<T: Copy> {
    start: NonNull<T>,
    /// The first `len` elements are initialised.
    len: usize,
    /// At least 1; as many elements fit the mapping.
    capacity: usize,
    owns: PhantomData<T>,
}

// SAFETY: it owns its elements as a Vec does.
unsafe impl<T: Copy + Send> Send for MappedVec<T> {}
// SAFETY: a shared MappedVec gives shared elements only.
unsafe impl<T: Copy + Sync> Sync for MappedVec<T> {}

impl<T: Copy> MappedVec<T> {
    /// An empty array with room for at least `capacity` elements before it must grow.
    pub(crate) fn new(capacity: usize) -> Option<Self> {
        let bytes = bytes_of::<T>(capacity)?;
        let start = map(bytes)?.cast();
        Some(Self { start, len: 0, capacity: bytes / size_of::<T>(), owns: PhantomData })
    }

    /// Appends `value`; false, and nothing changed, when there is no memory.
    #[must_use]
    pub(crate) fn push(&mut self, value: T) -> bool {
        if self.len == self.capacity && !self.reserve(1) {
            return false;
        }
        // SAFETY: `len < capacity`, so it lies within the mapping.
        let place = unsafe { self.start.add(self.len) };
        // SAFETY: mapped, aligned (pages are), and ours alone through `&mut self`.
        unsafe { place.write(value) };
        self.len += 1;
        true
    }

    /// Makes room for `additional` more elements; false when there is no memory.
    #[must_use]
    pub(crate) fn reserve(&mut self, additional: usize) -> bool {
        let Some(wanted) = self.len.checked_add(additional) else { return false };
        wanted <= self.capacity || self.grow(wanted.max(self.capacity.saturating_mul(2)))
    }

    #[cold]
    fn grow(&mut self, capacity: usize) -> bool {
        let (Some(old), Some(new)) = (bytes_of::<T>(self.capacity), bytes_of::<T>(capacity)) else {
            return false;
        };
        let _keep = KeepErrno::new();
        // SAFETY: the mapping has `old` bytes, is ours, and nobody borrows it.
        let moved =
            unsafe { libc::mremap(self.start.as_ptr().cast(), old, new, libc::MREMAP_MAYMOVE) };
        if moved == libc::MAP_FAILED {
            return false;
        }
        let Some(start) = NonNull::new(moved.cast()) else { return false };
        self.start = start;
        self.capacity = new / size_of::<T>();
        true
    }

    /// Keeps the first `len` elements, and the memory.
    pub(crate) fn truncate(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// How many elements fit without growing.
    #[cfg(any(test, debug_assertions))]
    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }
}

impl<T: Copy> Deref for MappedVec<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // SAFETY: the first `len` elements are initialised; borrowed as `self` is.
        unsafe { core::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> DerefMut for MappedVec<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and `self` is borrowed exclusively.
        unsafe { core::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl<T: Copy> Drop for MappedVec<T> {
    fn drop(&mut self) {
        if let Some(bytes) = bytes_of::<T>(self.capacity) {
            // SAFETY: the mapping has this size; nobody can borrow it now.
            unsafe { unmap(self.start.cast(), bytes) };
        }
    }
}

const PAGE: usize = 4096;

/// No smaller mapping has room for a huge page, of the usual size.
const HUGE_PAGE: usize = 2 << 20;

/// The size of the mapping for `len` elements: whole pages, at least one. It is
/// the same for `len` and for as many elements as fit that mapping.
fn bytes_of<T>(len: usize) -> Option<usize> {
    const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE) };
    len.max(1).checked_mul(size_of::<T>())?.checked_next_multiple_of(PAGE)
}

/// What most sessions need is less, and little less.
const RESERVED: usize = 34 << 20;

/// The first address of the reserve that nobody has; 0 before it is made.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// Where the reserve ends; 0 before.
static END: AtomicUsize = AtomicUsize::new(0);

fn map(bytes: usize) -> Option<NonNull<u8>> {
    let _keep = KeepErrno::new();
    if NEXT.load(Ordering::Acquire) == 0 {
        make_reserve();
    }
    take_reserved(bytes).or_else(|| map_alone(bytes))
}

/// Whoever comes first makes it; who comes at the same time maps alone.
#[cold]
fn make_reserve() {
    let Some(start) = map_alone(RESERVED) else { return };
    let address = start.as_ptr() as usize;
    if NEXT.compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        END.store(address + RESERVED, Ordering::Release);
    } else {
        // SAFETY: just mapped, and used by nobody.
        unsafe { unmap(start, RESERVED) };
    }
}

/// A part of the reserve; none if it has not so much.
fn take_reserved(bytes: usize) -> Option<NonNull<u8>> {
    let end = END.load(Ordering::Acquire);
    let behind = |next: usize| next.checked_add(bytes).filter(|&behind| behind <= end);
    let taken = NEXT.fetch_update(Ordering::AcqRel, Ordering::Relaxed, behind).ok()?;
    NonNull::new(taken as *mut u8)
}

fn map_alone(bytes: usize) -> Option<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a fresh anonymous mapping touches no memory in use.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED {
        return None;
    }
    if bytes >= HUGE_PAGE {
        // A huge page would be zeroed whole inside the hook that first touches it.
        // Whether the kernel takes the advice changes cost only.
        // SAFETY: the range was just mapped; the advice does not alter its contents.
        unsafe { libc::madvise(start, bytes, libc::MADV_NOHUGEPAGE) };
    }
    NonNull::new(start.cast())
}

/// # Safety
/// `start` came from `map` or `mremap` with `bytes`, and nothing refers to it. A
/// part of a mapping may be unmapped, and moved, like a whole one.
unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: by the contract above.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_region_is_zeroed_and_writable() {
        let mut region = Region::new(10_000).unwrap();
        assert_eq!(region.len(), 10_000);
        assert!(region.iter().all(|&word| word == 0));
        region.as_mut()[9_999] = 7;
        assert_eq!(region.as_ref()[9_999], 7);
    }

    #[test]
    fn parts_of_the_reserve_and_others_are_apart() {
        // Small ones, and two that cannot both be in it.
        let lens = [1, 600, 2 << 20, 5, 2 << 20, 70_000];
        let mut regions: Vec<_> = lens.map(|len| Region::new(len).unwrap()).into();
        for (number, region) in (1..).zip(&mut regions) {
            assert!(region.iter().all(|&word| word == 0));
            region.fill(number);
        }
        drop(regions.remove(1));
        for (number, region) in [1, 3, 4, 5, 6].into_iter().zip(&regions) {
            assert!(region.iter().all(|&word| word == number));
        }
        assert!(take_reserved(RESERVED + PAGE).is_none());
        assert!(take_reserved(usize::MAX).is_none());
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(Region::new(usize::MAX).is_none());
        assert!(Region::new(usize::MAX / 16).is_none());
        assert!(MappedVec::<u64>::new(usize::MAX / 8).is_none());
        let mut array = MappedVec::<u64>::new(1).unwrap();
        assert!(array.push(3));
        assert!(!array.reserve(usize::MAX));
        assert!(!array.reserve(usize::MAX / 16));
        assert_eq!(*array, [3]);
    }

    #[test]
    fn an_odd_size_keeps_its_elements_over_growth() {
        let mut array = MappedVec::<[u8; 24]>::new(0).unwrap();
        for i in 0..100_000_u32 {
            assert!(array.push([(i % 251) as u8; 24]));
        }
        assert!(array.capacity() >= 100_000);
        assert!((0..100_000).all(|i| array[i] == [(i % 251) as u8; 24]));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u32),
        Truncate(usize),
        Reserve(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u32>().prop_map(Step::Push),
            1 => (0_usize..3000).prop_map(Step::Truncate),
            1 => (0_usize..3000).prop_map(Step::Reserve),
        ]
    }

    proptest! {
        #[test]
        fn it_does_what_a_vec_does(steps in proptest::collection::vec(step(), 0..4000)) {
            let mut mapped = MappedVec::new(1).unwrap();
            let mut vec = Vec::new();
            for step in steps {
                match step {
                    Step::Push(value) => { prop_assert!(mapped.push(value)); vec.push(value) }
                    Step::Truncate(len) => { mapped.truncate(len); vec.truncate(len) }
                    Step::Reserve(more) => {
                        prop_assert!(mapped.reserve(more));
                        prop_assert!(mapped.capacity() >= vec.len() + more);
                    }
                }
                prop_assert_eq!(&*mapped, &*vec);
            }
        }
    }
}
