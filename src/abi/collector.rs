//! Collections: what becomes of blocks.

use std::ffi::c_void;

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_mutator, heaptap_tracer, on_mutator, session, with_mutator};
use crate::abi::status::{HEAPTAP_STATUS_NULL, Refused, heaptap_status};
use crate::tracer::{Fate, Generation, Mutator};

/// What a collection did to a block.
pub type heaptap_fate = i32;

/// The block is dead.
pub const HEAPTAP_FATE_DEAD: heaptap_fate = 0;
/// The block stays in its generation, at the address in `*block`.
pub const HEAPTAP_FATE_ALIVE: heaptap_fate = 1;
/// The block was young and is now in the major heap, at the address in `*block`.
pub const HEAPTAP_FATE_PROMOTED: heaptap_fate = 2;

/// Returns the fate of the block at `*block`, and writes its new address there if
/// it was moved. It must not call heaptap.
pub type heaptap_fate_fn =
    Option<unsafe extern "C-unwind" fn(host: *mut c_void, block: *mut *mut c_void) -> heaptap_fate>;

/// The host's function for the fates of blocks, and what it is called with.
type HostFate = (heaptap_fate_fn, *mut c_void);

fn sweep(mutator: &mut Mutator, swept: Generation, host: HostFate) -> Result<(), Refused> {
    let (function, host) = host;
    let function = function.ok_or(Refused(HEAPTAP_STATUS_NULL))?;
    let fate = |address: usize| {
        let mut block = address as *mut c_void;
        // SAFETY: the host's function of the documented type; `block` outlives the call.
        match unsafe { function(host, &raw mut block) } {
            HEAPTAP_FATE_DEAD => Fate::Dead,
            HEAPTAP_FATE_PROMOTED => Fate::Promoted(block as usize),
            _ => Fate::Alive(block as usize),
        }
    };
    Ok(mutator.sweep(swept, fate)?)
}

/// Calls `fate` for each sampled young block of the mutator. Call it after a minor
/// collection, while the forwarding pointers of the young blocks can still be read.
///
/// The mutator's thread, or the collector's while the mutator is stopped. Costs
/// about 10 ns for each sampled young block, nothing for the others.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_young_sweep(
    mutator: *mut heaptap_mutator,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, _| sweep(mutator, Generation::Young, (fate, host))) }
}

/// Calls `fate` for each sampled major block of the mutator. Call it after marking,
/// before the memory of dead blocks is used again, and after compaction.
///
/// Threads and cost like `heaptap_young_sweep`.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_major_sweep(
    mutator: *mut heaptap_mutator,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, _| sweep(mutator, Generation::Major, (fate, host))) }
}

/// `heaptap_young_sweep` for all mutators. Call it while the world is stopped.
///
/// # Safety
/// `tracer` is NULL or a handle, and no thread uses any of its mutators.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_young_sweep(
    tracer: *mut heaptap_tracer,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires `tracer` to be NULL or a handle whose mutators no thread uses.
    guard(|| unsafe { sweep_all(tracer, Generation::Young, (fate, host)) })
}

/// `heaptap_major_sweep` for all mutators, and for the blocks of mutators that have
/// ended. Call it while the world is stopped.
///
/// # Safety
/// `tracer` is NULL or a handle, and no thread uses any of its mutators.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_major_sweep(
    tracer: *mut heaptap_tracer,
    fate: heaptap_fate_fn,
    host: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires `tracer` to be NULL or a handle whose mutators no thread uses.
    guard(|| unsafe { sweep_all(tracer, Generation::Major, (fate, host)) })
}

/// # Safety
/// `tracer` is NULL or a handle, and no thread uses any of its mutators.
unsafe fn sweep_all(
    tracer: *mut heaptap_tracer,
    swept: Generation,
    host: HostFate,
) -> Result<(), Refused> {
    // SAFETY: this function requires `tracer` to be NULL or a handle.
    let session = unsafe { session(tracer) }?;
    let mut index = 0;
    while let Some(handle) = session.mutator_handle(index) {
        let handle = handle as *mut heaptap_mutator;
        // SAFETY: the session returns its own handles, and this function requires that no
        // thread uses them.
        unsafe {
            with_mutator(handle, |mutator, _| {
                if index == 0 {
                    mutator.adopt_orphans();
                }
                sweep(mutator, swept, host)
            })
        }?;
        index += 1;
    }
    Ok(())
}

/// With `HEAPTAP_FOLLOW_ADDRESSES`: reports that a block was promoted, perhaps to
/// another address.
///
/// Any mutator. A block that was not sampled costs one table lookup.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_promote(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
    to: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { moved(mutator, from, to, true) }
}

/// With `HEAPTAP_FOLLOW_ADDRESSES`: reports that a block was moved.
///
/// Any mutator. A block that was not sampled costs one table lookup.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_move(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
    to: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { moved(mutator, from, to, false) }
}

/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
unsafe fn moved(
    mutator: *mut heaptap_mutator,
    from: *mut c_void,
    to: *mut c_void,
    promoted: bool,
) -> heaptap_status {
    let (from, to) = (from as usize, to as usize);
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, _| Ok(mutator.block_move(from, to, promoted)?)) }
}

/// With `HEAPTAP_FOLLOW_ADDRESSES`: reports that a block is about to be freed.
///
/// Any mutator. A block that was not sampled costs one table lookup.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_block_collect(
    mutator: *mut heaptap_mutator,
    block: *mut c_void,
) -> heaptap_status {
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe { on_mutator(mutator, |mutator, _| Ok(mutator.block_collect(block as usize)?)) }
}
