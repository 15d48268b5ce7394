//! What collections do to blocks.

use std::ffi::c_void;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, heaptap_tracer, session, with_mutator};
use crate::abi::status::{HEAPTAP_STATUS_NULL, Refused, heaptap_status};
use crate::blocks::Fate;
use crate::tracer::Mutator;

/// What a collection did to a block.
pub type heaptap_fate = i32;

/// It is gone.
pub const HEAPTAP_FATE_DEAD: heaptap_fate = 0;
/// It stays in its generation, at the address that `*block` says.
pub const HEAPTAP_FATE_ALIVE: heaptap_fate = 1;
/// It was young and is now in the major heap, at the address that `*block` says.
pub const HEAPTAP_FATE_PROMOTED: heaptap_fate = 2;

/// Tells the fate of the block at `*block`, and changes that if it was moved.
/// Must not call heaptap.
pub type heaptap_fate_fn =
    Option<unsafe extern "C-unwind" fn(host: *mut c_void, block: *mut *mut c_void) -> heaptap_fate>;

/// Which sweep.
#[derive(Clone, Copy)]
enum Generation {
    Young,
    Major,
}

fn sweep(
    mutator: &mut Mutator,
    generation: Generation,
    (fate, host): (heaptap_fate_fn, *mut c_void),
) -> Result<(), Refused> {
    let fate = fate.ok_or(Refused(HEAPTAP_STATUS_NULL))?;
    let fate = |address: usize| {
        let mut block = address as *mut c_void;
        // SAFETY: the host's function, called as the header says.
        match unsafe { fate(host, &raw mut block) } {
            HEAPTAP_FATE_DEAD => Fate::Dead,
            HEAPTAP_FATE_PROMOTED => Fate::Promoted(block as usize),
            _ => Fate::Alive(block as usize),
        }
    };
    match generation {
        Generation::Young => mutator.sweep_young(fate)?,
        Generation::Major => mutator.sweep_major(fate)?,
    }
    Ok(())
}

/// After a minor collection, while it can still be told which young blocks were
/// forwarded where: asks for the fate of each young block of the mutator.
///
/// The mutator's thread, or the collector's while the mutator stands still.
/// Costs some 10 ns for each sampled young block, nothing for any other.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_sweep(
    mutator: *mut heaptap_mutator,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        unsafe {
            with_mutator(mutator, |mutator, _| sweep(mutator, Generation::Young, (fate, host)))
        }
    })
}

/// After marking, before the memory of dead blocks is used again; and after
/// compaction: asks for the fate of each major block of the mutator.
///
/// As `heaptap_young_sweep`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_major_sweep(
    mutator: *mut heaptap_mutator,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        unsafe {
            with_mutator(mutator, |mutator, _| sweep(mutator, Generation::Major, (fate, host)))
        }
    })
}

/// `heaptap_young_sweep` over all mutators, while the world stands still.
///
/// # Safety
/// `tracer` is NULL or a handle, and no thread uses any of its mutators.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_young_sweep(
    tracer: *mut heaptap_tracer,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    // SAFETY: the host's promise.
    guard(|| unsafe { sweep_all(tracer, Generation::Young, (fate, host)) })
}

/// `heaptap_major_sweep` over all mutators, and over the blocks that ended ones
/// have left, while the world stands still.
///
/// # Safety
/// `tracer` is NULL or a handle, and no thread uses any of its mutators.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_major_sweep(
    tracer: *mut heaptap_tracer,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    // SAFETY: the host's promise.
    guard(|| unsafe { sweep_all(tracer, Generation::Major, (fate, host)) })
}

/// # Safety
/// `tracer` is NULL or a handle, and no thread uses any of its mutators.
unsafe fn sweep_all(
    tracer: *mut heaptap_tracer,
    generation: Generation,
    how: (heaptap_fate_fn, *mut c_void),
) -> Result<(), Refused> {
    // SAFETY: the caller's promise.
    let session = unsafe { session(tracer) }?;
    let mut index = 0;
    while let Some(handle) = session.mutator_handle(index) {
        let handle = handle as *mut heaptap_mutator;
        // SAFETY: a handle of this session, that no thread uses.
        unsafe {
            with_mutator(handle, |mutator, _| {
                if index == 0 {
                    mutator.adopt_orphans();
                }
                sweep(mutator, generation, how)
            })
        }?;
        index += 1;
    }
    Ok(())
}

/// With `HEAPTAP_FOLLOW_ADDRESSES`: a block was promoted, perhaps to another
/// address. Blocks that were not sampled cost a look at one place of a table.
///
/// Any mutator.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_promote(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
    to: *mut c_void,
) -> heaptap_status {
    // SAFETY: the host's promise.
    guard(|| unsafe { moved(mutator, from, to, true) })
}

/// With `HEAPTAP_FOLLOW_ADDRESSES`: a block was moved. As `heaptap_block_promote`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_move(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
    to: *mut c_void,
) -> heaptap_status {
    // SAFETY: the host's promise.
    guard(|| unsafe { moved(mutator, from, to, false) })
}

/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
unsafe fn moved(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
    to: *mut c_void,
    promoted: bool,
) -> Result<(), Refused> {
    let (from, to) = (from as usize, to as usize);
    // SAFETY: the caller's promise.
    unsafe { with_mutator(mutator, |mutator, _| Ok(mutator.block_move(from, to, promoted)?)) }
}

/// With `HEAPTAP_FOLLOW_ADDRESSES`: a block is about to be freed. As
/// `heaptap_block_promote`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_collect(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        unsafe { with_mutator(mutator, |mutator, _| Ok(mutator.block_collect(block as usize)?)) }
    })
}
