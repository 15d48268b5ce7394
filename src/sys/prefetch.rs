//! Prefetching. Measured by `benches/writer.rs`.
#![allow(unsafe_code, reason = "uses an instruction of the processor")]

use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};

/// Asks the processor to load the cache line at `address`, which need not be valid.
#[inline]
pub(crate) fn prefetch(address: usize) {
    // SAFETY: the instruction is a hint. It does not fault, whatever the address (Intel SDM
    // volume 2, PREFETCHh).
    unsafe { _mm_prefetch::<_MM_HINT_T0>(core::ptr::without_provenance(address)) };
}
