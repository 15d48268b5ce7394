//! Large zeroed arrays on the heap.

/// From this size on, allocators take memory fresh from the system, where it is zero
/// already. Below it they touch every page to clear it.
///
/// glibc 2.36 does so from `M_MMAP_THRESHOLD` on, 128 KiB, if a heap has not that much
/// free. A thread's first heap has up to 132 KiB (`M_TOP_PAD` and a page, `malloc/arena.c`).
pub(crate) const UNTOUCHED: usize = 136 << 10;

/// A zeroed array. With [`UNTOUCHED`] bytes or more, pages that are never used
/// cost nothing, which matters for domains with few events.
pub(crate) fn boxed<T: Clone + Default, const N: usize>() -> Box<[T; N]> {
    let array: Box<[T]> = vec![T::default(); N].into();
    match array.try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector has N elements"),
    }
}
