//! Asking for memory before it is read.
#![cfg_attr(
    target_arch = "x86_64",
    allow(unsafe_code, reason = "an instruction of the processor's")
)]

/// Lets the processor fetch what is at an address, whatever that is, while other
/// things are done.
#[inline(always)]
pub(crate) fn prefetch(address: usize) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint only, which neither reads nor faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
