//! The collector's slices, for the time line beside the trace.

use crate::abi::handle::{heaptap_mutator, on_mutator};
use crate::abi::status::{HEAPTAP_STATUS_OPTION, heaptap_status};
use crate::probes::SliceKind;
use crate::tracer::Mutator;

/// A collection of the young heap.
pub const HEAPTAP_SLICE_MINOR: u32 = 0;
/// A collection of the major heap, or a part of one.
pub const HEAPTAP_SLICE_MAJOR: u32 = 1;
/// Finalisers.
pub const HEAPTAP_SLICE_FINALISERS: u32 = 2;

const _: () = {
    assert!(HEAPTAP_SLICE_MINOR == SliceKind::Minor as u32);
    assert!(HEAPTAP_SLICE_MAJOR == SliceKind::Major as u32);
    assert!(HEAPTAP_SLICE_FINALISERS == SliceKind::Finalisers as u32);
};

/// Reports that the mutator waits from now on, since the collector works: `HEAPTAP_SLICE_MINOR`, ….
/// The slice is in the time line beside the trace, if there is one (`HEAPTAP_TIMELINE`, or a
/// probe).
///
/// The mutator's thread, or the collector's while the mutator is stopped. Reads the clock.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_slice_begin(
    mutator: *mut heaptap_mutator,
    kind: u32,
) -> heaptap_status {
    // SAFETY: this function has the same requirements.
    unsafe { report(mutator, kind, Mutator::slice_begins) }
}

/// Reports that the mutator goes on. Without a `heaptap_slice_begin` of this kind before it, nothing
/// happens. Threads as there.
///
/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_slice_end(
    mutator: *mut heaptap_mutator,
    kind: u32,
) -> heaptap_status {
    // SAFETY: this function has the same requirements.
    unsafe { report(mutator, kind, Mutator::slice_ends) }
}

/// # Safety
/// `mutator` is NULL or a handle that no other thread uses.
unsafe fn report(
    mutator: *mut heaptap_mutator,
    kind: u32,
    report: fn(&mut Mutator, SliceKind),
) -> heaptap_status {
    let kind = u8::try_from(kind).ok().and_then(SliceKind::from_number);
    let Some(kind) = kind else { return HEAPTAP_STATUS_OPTION };
    // SAFETY: this function requires that `mutator` is NULL or a handle that no other thread uses.
    unsafe {
        on_mutator(mutator, |mutator, _| {
            report(mutator, kind);
            Ok(())
        })
    }
}
