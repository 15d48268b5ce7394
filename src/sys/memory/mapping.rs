//! Mappings, and the reserve that small ones are taken from.
//!
//! A session needs some fifteen arrays at once. They are parts of one mapping, the
//! *reserve*, which the first array maps: one system call for each would be a noticeable
//! part of what tracing costs a short program. What does not fit the reserve is mapped
//! separately. A dropped part is returned to the system and not used again.
#![allow(unsafe_code, reason = "calls mmap, mremap, madvise and munmap")]

use core::ptr::NonNull;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::sys::errno::KeepErrno;

pub(super) const PAGE: usize = 4096;

/// The usual size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// The size in bytes of a mapping for `len` elements: whole pages, at least one. It is the
/// same for any number of elements that fit the same pages, so an array need not remember
/// which number it was mapped for.
pub(super) fn mapping_size<T>(len: usize) -> Option<usize> {
    const { assert!(size_of::<T>() > 0 && align_of::<T>() <= PAGE) };
    len.max(1).checked_mul(size_of::<T>())?.checked_next_multiple_of(PAGE)
}

/// The size of the reserve: a little more than most sessions need.
pub(super) const RESERVE_BYTES: usize = 34 << 20;

/// The first unused address of the reserve; 0 before it is mapped.
static NEXT: AtomicUsize = AtomicUsize::new(0);

/// The end of the reserve; 0 before it is mapped.
static END: AtomicUsize = AtomicUsize::new(0);

/// Maps `bytes` zeroed bytes, a multiple of the page size; `None` if the system refuses.
pub(super) fn map(bytes: usize) -> Option<NonNull<u8>> {
    let _keep = KeepErrno::new();
    if NEXT.load(Ordering::Acquire) == 0 {
        map_reserve();
    }
    take_from_reserve(bytes).or_else(|| map_separately(bytes))
}

/// The first thread maps the reserve. Threads that come at the same time may find it empty
/// and map separately.
#[cold]
fn map_reserve() {
    let Some(start) = map_separately(RESERVE_BYTES) else { return };
    let address = start.as_ptr() as usize;
    if NEXT.compare_exchange(0, address, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
        END.store(address + RESERVE_BYTES, Ordering::Release);
    } else {
        // SAFETY: mapped above with this size and not published.
        unsafe { unmap(start, RESERVE_BYTES) };
    }
}

/// The next `bytes` bytes of the reserve; `None` if it has fewer left.
pub(super) fn take_from_reserve(bytes: usize) -> Option<NonNull<u8>> {
    let end = END.load(Ordering::Acquire);
    let advance = |next: usize| next.checked_add(bytes).filter(|&after| after <= end);
    let taken = NEXT.fetch_update(Ordering::AcqRel, Ordering::Relaxed, advance).ok()?;
    NonNull::new(taken as *mut u8)
}

/// Maps zeroed bytes, which copies of this process have for themselves (`MAP_PRIVATE`) or share.
pub(in crate::sys) fn map_anonymous(bytes: usize, sharing: i32) -> Option<NonNull<u8>> {
    let flags = sharing | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new anonymous mapping at an address of the kernel's choice overlaps no
    // memory in use.
    let start = unsafe { libc::mmap(core::ptr::null_mut(), bytes, access, flags, -1, 0) };
    if start == libc::MAP_FAILED { None } else { NonNull::new(start.cast()) }
}

fn map_separately(bytes: usize) -> Option<NonNull<u8>> {
    let start = map_anonymous(bytes, libc::MAP_PRIVATE)?;
    if bytes >= HUGE_PAGE {
        // The hook that first touches a huge page would have to zero all of it. If the
        // kernel ignores the advice, only the cost changes.
        // SAFETY: the range was just mapped, and this advice does not change its contents.
        unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_NOHUGEPAGE) };
    }
    Some(start)
}

/// Has the system provide the pages of a mapping now.
pub(super) fn populate(start: NonNull<u8>, bytes: usize) {
    let _keep = KeepErrno::new();
    // SAFETY: this advice does not change what the pages hold. The kernel checks the range.
    unsafe { libc::madvise(start.as_ptr().cast(), bytes, libc::MADV_POPULATE_WRITE) };
}

/// Resizes a mapping, which may move; `None`, and nothing changes, if the system refuses.
///
/// # Safety
/// `start` came from [`map`] or [`remap`] with `old` bytes, and nothing borrows them. After
/// success `start` is no longer valid.
pub(super) unsafe fn remap(start: NonNull<u8>, old: usize, new: usize) -> Option<NonNull<u8>> {
    let _keep = KeepErrno::new();
    // SAFETY: the caller owns the `old` bytes at `start` and nothing borrows them. mremap
    // may move a part of a mapping, such as a part of the reserve.
    let moved = unsafe { libc::mremap(start.as_ptr().cast(), old, new, libc::MREMAP_MAYMOVE) };
    if moved == libc::MAP_FAILED { None } else { NonNull::new(moved.cast()) }
}

/// # Safety
/// `start` came from [`map`] or [`remap`] with `bytes` bytes, and nothing refers to them any
/// more.
pub(super) unsafe fn unmap(start: NonNull<u8>, bytes: usize) {
    // SAFETY: the caller owns the bytes and nothing refers to them. munmap accepts a part of
    // a mapping, such as a part of the reserve.
    unsafe { libc::munmap(start.as_ptr().cast(), bytes) };
}
