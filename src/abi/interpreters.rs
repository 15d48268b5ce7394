//! What runtimes without a young heap need: stacks that were captured before, scattered young blocks,
//! memory that belongs to a block, memory that is reallocated.

use std::ffi::c_void;

use heaptap_trace::Source;

use crate::abi::handle::{heaptap_mutator, on_mutator};
use crate::abi::hooks::allocated;
use crate::abi::pointer::check;
use crate::abi::status::{HEAPTAP_STATUS_OPTION, Refused, heaptap_status};
use crate::tracer::{Registers, Tracked, Tracking};

/// `heaptap_major_hit_kind` with a stack that the host has walked itself, for instance before it
/// asked malloc: the codes of `count` frames, innermost first, each from 1 to 2^60 - 1. Call it if
/// `heaptap_due` says so, after subtracting `words` by `heaptap_major_take`.
///
/// The mutator has no `where`: otherwise it returns `HEAPTAP_STATUS_ORDER`, and the block has its
/// stack as always.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses; `codes` is NULL or `count` numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_major_hit_at(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
    words: usize,
    kind: u8,
    codes: *const u64,
    count: usize,
) -> heaptap_status {
    let block = allocated(Source::Major, block, words, kind);
    let hit = || {
        check(codes)?;
        if count > 1 << 32 {
            return Err(Refused(HEAPTAP_STATUS_OPTION));
        }
        // SAFETY: not NULL, aligned, and this function requires `count` numbers there.
        Ok(unsafe { std::slice::from_raw_parts(codes, count) })
    };
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit_at(left, block, hit()?)?)) }
}

/// The slow half of `heaptap_young_alloc`, which has already subtracted `words`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_alloc_hit(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
    words: usize,
    kind: u8,
) -> heaptap_status {
    let registers = Registers::capture();
    let block = allocated(Source::Minor, block, words, kind);
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, left| Ok(mutator.hit(left, block, registers)?)) }
}

/// The slow half of `heaptap_block_outside`, which has already subtracted `words`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_outside_hit(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
    words: usize,
    young: u32,
) -> heaptap_status {
    let registers = Registers::capture();
    let block = allocated(Source::External, block, words, 0);
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe {
        on_mutator(mutator, |mutator, left| {
            let tracked = match mutator.session().options.tracking {
                Tracking::Addresses => Tracked::ByAddress,
                Tracking::Sweeps if young != 0 => Tracked::Young,
                Tracking::Sweeps => Tracked::Major,
            };
            Ok(mutator.hit_tracked(left, block, tracked, registers)?)
        })
    }
}

/// The slow half of `heaptap_skip`, which has already subtracted the words.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_skip_hit(mutator: *mut heaptap_mutator) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe {
        on_mutator(mutator, |mutator, left| {
            mutator.skipped(left);
            Ok(())
        })
    }
}

/// Reports that memory is about to be reallocated, and returns a number for `heaptap_realloc_end`;
/// 0 if nothing at this address is followed by its address, and there is nothing to end.
///
/// Memory outside the heap, and with `HEAPTAP_FOLLOW_ADDRESSES` blocks too. Between the two calls
/// another thread may allocate, and have reported, memory at the old address. Call it only if
/// `heaptap_sampled` says so, to spare the call.
///
/// Any mutator. Costs a table lookup.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_realloc_begin(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
) -> u64 {
    let mut moving = 0;
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    let status = unsafe {
        on_mutator(mutator, |mutator, _| {
            moving = mutator.realloc_begin(from as usize) as u64;
            Ok(())
        })
    };
    let _refused = status;
    moving
}

/// Reports that the memory is now at `to`: at its old address if the reallocation has failed or has
/// not moved it. A number of 0 does nothing. What it has grown by are new words, and reported as
/// such, at `to`: `heaptap_external_grow`. Memory that shrinks keeps its size in the trace.
///
/// Any mutator, the one of `heaptap_realloc_begin` or another. Once for each number.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_realloc_end(
    mutator: *mut heaptap_mutator,
    moving: u64,
    to: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe {
        on_mutator(mutator, |mutator, _| Ok(mutator.realloc_end(moving as usize, to as usize)?))
    }
}
