//! Young heaps that are filled upwards.

use std::ffi::c_void;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, with_mutator};
use crate::abi::hooks::check_young;
use crate::abi::pointer::{check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, Refused, heaptap_status};
use crate::tracer::Registers;

/// `heaptap_young_renew` for a young heap that is filled from below: an allocation raises the
/// pointer and takes its slow path if the pointer is then above the limit. Install `*limit`, which is
/// at most `young_end`, as that limit.
///
/// A mutator's young heap is filled in the direction of its last `..._renew`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses; `limit` is NULL or
/// room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_up_renew(
    mutator: *mut heaptap_mutator,
    young_ptr: *mut c_void,
    young_end: *mut c_void,
    limit: *mut *mut c_void,
) -> heaptap_status {
    guard(|| {
        check(limit)?;
        let (pointer, end) = (young_ptr as usize, young_end as usize);
        let is_heap = pointer != 0 && pointer <= end && end < 1 << 57;
        if !is_heap || !pointer.is_multiple_of(size_of::<usize>()) {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let new =
            unsafe { with_mutator(mutator, |mutator, _| Ok(mutator.renew_upward(pointer, end))) }?;
        // SAFETY: this function requires `limit` to be NULL or room for the result.
        unsafe { write(limit, new as *mut c_void) }
    })
}

/// `heaptap_young_hit` for such a heap: an allocation went above the limit, but not above
/// `young_end`.
///
/// `young_ptr` is the pointer after the allocation. `words` holds the size of each of the `count`
/// blocks in the order of their addresses, of which the last one ends at `young_ptr`. `kinds` is
/// NULL, or holds the kind of each, as for `heaptap_young_hit_kinds`. Otherwise like
/// `heaptap_young_hit`.
///
/// # Safety
/// The pointers are NULL or as described; no other thread uses the mutator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_up_hit(
    mutator: *mut heaptap_mutator,
    young_ptr: *mut c_void,
    words: *const usize,
    kinds: *const u8,
    count: usize,
    limit: *mut *mut c_void,
) -> heaptap_status {
    let registers = Registers::capture();
    guard(|| {
        check(limit)?;
        check_young(young_ptr, words, count)?;
        // SAFETY: not NULL, aligned, and this function requires `count` numbers there.
        let words = unsafe { std::slice::from_raw_parts(words, count) }.iter().copied();
        let kinds = if kinds.is_null() {
            &[]
        } else {
            // SAFETY: not NULL, and this function requires `count` numbers there.
            unsafe { std::slice::from_raw_parts(kinds, count) }
        };
        let kind = |index: usize| kinds.get(index).copied().unwrap_or(0);
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let hit = unsafe {
            with_mutator(mutator, |mutator, _| {
                Ok(mutator.young_hit_upward(young_ptr as usize, words, kind, registers)?)
            })
        }?;
        // SAFETY: this function requires `limit` to be NULL or room for the result.
        unsafe { write(limit, hit.limit as *mut c_void) }?;
        Ok(hit.recorded?)
    })
}
