//! Allocations: the hooks on a mutator's slow paths.
//!
//! No hook calls malloc, takes a lock, makes a system call (except to wait when the
//! writer has fallen behind) or needs more than 2 KiB of stack.

use std::ffi::c_void;

use heaptap_trace::Source;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, on_mutator, with_mutator};
use crate::abi::pointer::{check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, Refused, heaptap_status};
use crate::tracer::{AllocatedBlock, Registers};

/// Reports that the young pointer was set: at the start, and after each minor
/// collection.
///
/// The young heap is filled from above: an allocation lowers the pointer and
/// takes its slow path if the pointer is then below the limit. Install `*limit`,
/// which is at least `young_start`, as that limit.
///
/// The mutator's thread, or another that has stopped it.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses; `limit` is NULL or
/// room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_renew(
    mutator: *mut heaptap_mutator,
    young_ptr: *mut c_void,
    young_start: *mut c_void,
    limit: *mut *mut c_void,
) -> heaptap_status {
    guard(|| {
        check(limit)?;
        let (pointer, start) = (young_ptr as usize, young_start as usize);
        if start == 0 || start > pointer || !pointer.is_multiple_of(size_of::<usize>()) {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let new = unsafe { with_mutator(mutator, |mutator, _| Ok(mutator.renew(pointer, start))) }?;
        // SAFETY: this function requires `limit` to be NULL or room for the result.
        unsafe { write(limit, new as *mut c_void) }
    })
}

/// Reports an allocation that went below the limit, but not below `young_start`.
///
/// `young_ptr` is the pointer after the allocation. `words` holds the size in
/// words, headers included, of each of the `count` blocks that were allocated
/// together, in the order of their addresses from `young_ptr` up. Each word is
/// sampled independently, so each block gets the samples on its own words.
/// Install `*limit`. It is also written with `HEAPTAP_STATUS_LOST`.
///
/// The mutator's thread, before the next allocation; headers and fields need not
/// be initialised yet. Costs 150 to 400 ns for each sampled block, plus a few ns
/// for each frame that has not changed since the last sample and about 20 ns for
/// each new one.
///
/// # Safety
/// The pointers are NULL or as described; no other thread uses the mutator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_hit(
    mutator: *mut heaptap_mutator,
    young_ptr: *mut c_void,
    words: *const usize,
    count: usize,
    limit: *mut *mut c_void,
) -> heaptap_status {
    let registers = Registers::capture();
    guard(|| {
        check(limit)?;
        check(words)?;
        let pointer = young_ptr as usize;
        if count > 1 << 16 || !pointer.is_multiple_of(size_of::<usize>()) {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: not NULL, aligned, and this function requires `count` numbers there.
        let words = unsafe { std::slice::from_raw_parts(words, count) }.iter().copied();
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let hit = unsafe {
            with_mutator(mutator, |mutator, _| Ok(mutator.young_hit(pointer, words, registers)?))
        }?;
        // SAFETY: this function requires `limit` to be NULL or room for the result.
        unsafe { write(limit, hit.limit as *mut c_void) }?;
        Ok(hit.recorded?)
    })
}

/// The slow half of `heaptap_major_alloc`, which has already subtracted `words`.
/// Do not call it directly.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_major_hit(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
    words: usize,
) -> heaptap_status {
    let registers = Registers::capture();
    let block = AllocatedBlock { source: Source::Major, address: block as usize, words };
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit(left, block, registers)?)) }
}

/// The slow half of `heaptap_external_alloc`, which has already subtracted
/// `words`. Do not call it directly.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_external_hit(
    mutator: *mut heaptap_mutator,
    memory: *mut c_void,
    words: usize,
) -> heaptap_status {
    let registers = Registers::capture();
    let block = AllocatedBlock { source: Source::External, address: memory as usize, words };
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit(left, block, registers)?)) }
}

/// Reports that external memory is about to be released.
///
/// Any mutator, not only the one that allocated it. Call it before the memory is
/// released: another thread may be given the same address at once. Memory that
/// was not sampled costs one table lookup.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_external_free(
    mutator: *mut heaptap_mutator,
    memory: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe {
        on_mutator(mutator, |mutator, _| {
            mutator.external_free(memory as usize);
            Ok(())
        })
    }
}
