//! Large zeroed arrays on the heap.

/// From this size on, allocators take memory fresh from the system (glibc:
/// `M_MMAP_THRESHOLD`), where it is zero already. Below it they touch every page
/// to clear it.
pub(crate) const UNTOUCHED: usize = 128 << 10;

/// A zeroed array. With [`UNTOUCHED`] bytes or more, pages that are never used
/// cost nothing, which matters for domains with few events.
pub(crate) fn boxed<T: Clone + Default, const N: usize>() -> Box<[T; N]> {
    let array: Box<[T]> = vec![T::default(); N].into();
    match array.try_into() {
        Ok(array) => array,
        Err(_) => unreachable!("the vector has N elements"),
    }
}
