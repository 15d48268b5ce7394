//! Allocations: the hooks on a mutator's slow paths.
//!
//! No hook calls malloc, takes a lock, makes a system call (except to wait when the
//! writer has fallen behind) or needs more than 2 KiB of stack.

use std::ffi::c_void;

use heaptap_trace::Source;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, on_mutator, with_mutator};
use crate::abi::pointer::{check, write};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, HEAPTAP_STATUS_ORDER, Refused, heaptap_status};
use crate::tracer::{AllocatedBlock, Mutator, Registers};

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
        check_young(young_ptr, words, count)?;
        // SAFETY: not NULL, aligned, and this function requires `count` numbers there.
        let words = unsafe { std::slice::from_raw_parts(words, count) }.iter().copied();
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let hit = unsafe {
            with_mutator(mutator, |mutator, _| {
                check_downward(mutator)?;
                Ok(mutator.young_hit(young_ptr as usize, words, registers)?)
            })
        }?;
        // SAFETY: this function requires `limit` to be NULL or room for the result.
        unsafe { write(limit, hit.limit as *mut c_void) }?;
        Ok(hit.recorded?)
    })
}

/// `heaptap_young_hit` for a host that knows the kinds of its blocks: `kinds` holds that of each of
/// the `count` blocks, from `heaptap_kind_name`, or 0.
///
/// # Safety
/// The pointers are NULL or as described; no other thread uses the mutator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_hit_kinds(
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
        check(kinds)?;
        // SAFETY: not NULL, aligned, and this function requires `count` numbers there.
        let words = unsafe { std::slice::from_raw_parts(words, count) }.iter().copied();
        // SAFETY: not NULL, and this function requires `count` numbers there.
        let kinds = unsafe { std::slice::from_raw_parts(kinds, count) };
        let kind = |index: usize| kinds.get(index).copied().unwrap_or(0);
        // SAFETY: this function requires that `mutator` is NULL or a handle that no
        // other thread uses.
        let hit = unsafe {
            with_mutator(mutator, |mutator, _| {
                check_downward(mutator)?;
                Ok(mutator.young_hit_of_kinds(young_ptr as usize, words, kind, registers)?)
            })
        }?;
        // SAFETY: this function requires `limit` to be NULL or room for the result.
        unsafe { write(limit, hit.limit as *mut c_void) }?;
        Ok(hit.recorded?)
    })
}

/// Checks what the host says of an allocation in the young heap.
pub(super) fn check_young(
    young_ptr: *mut c_void,
    words: *const usize,
    count: usize,
) -> Result<(), Refused> {
    check(words)?;
    if count > 1 << 16 || !(young_ptr as usize).is_multiple_of(size_of::<usize>()) {
        return Err(Refused(HEAPTAP_STATUS_OPTION));
    }
    Ok(())
}

fn check_downward(mutator: &Mutator) -> Result<(), Refused> {
    if mutator.is_upward() { Err(Refused(HEAPTAP_STATUS_ORDER)) } else { Ok(()) }
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
    let block = allocated(Source::Major, block, words, 0);
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
    let block = allocated(Source::External, memory, words, 0);
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit(left, block, registers)?)) }
}

/// The slow half of `heaptap_major_alloc_kind`, which has already subtracted `words`. A host whose
/// slow half has something else to do first asks `heaptap_due` before it allocates.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_major_hit_kind(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
    words: usize,
    kind: u8,
) -> heaptap_status {
    let registers = Registers::capture();
    let block = allocated(Source::Major, block, words, kind);
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit(left, block, registers)?)) }
}

/// The slow half of `heaptap_external_alloc_kind`, which has already subtracted `words`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_external_hit_kind(
    mutator: *mut heaptap_mutator,
    memory: *mut c_void,
    words: usize,
    kind: u8,
) -> heaptap_status {
    let registers = Registers::capture();
    let block = allocated(Source::External, memory, words, kind);
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit(left, block, registers)?)) }
}

/// What the slow half of an inline function is given.
pub(super) fn allocated(
    source: Source,
    block: *mut c_void,
    words: usize,
    kind: u8,
) -> AllocatedBlock {
    AllocatedBlock { source, address: block as usize, words, kind }
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
