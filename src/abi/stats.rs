//! What a trace has cost and brought so far.

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_tracer, session};
use crate::abi::status::{HEAPTAP_STATUS_OK, Refused, heaptap_status};
use crate::abi::versioned::{VersionedStruct, write_versioned};

/// Numbers of a trace.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct heaptap_stats {
    /// `sizeof(heaptap_stats)`, set by the caller.
    pub size: usize,
    /// 0 while tracing, else why not.
    pub state: heaptap_status,
    /// Mutators there are now.
    pub mutators: u32,
    /// Samples that fell.
    pub samples: u64,
    /// Blocks in which they fell.
    pub sampled_blocks: u64,
    /// Events recorded.
    pub allocations: u64,
    /// Events recorded.
    pub promotions: u64,
    /// Events recorded.
    pub collections: u64,
    /// Sampled blocks that were not recorded.
    pub dropped: u64,
    /// Times that a hook waited for the writer.
    pub waits: u64,
    /// Bytes written to files.
    pub bytes: u64,
    /// Time spent in hooks, by all mutators, in nanoseconds: an estimate, since
    /// of allocations only one hook in 32 is timed.
    pub hook_ns: u64,
    /// Sampled blocks that are alive as far as is known.
    pub live_blocks: u64,
    /// Zero.
    pub reserved: [u64; 4],
}

// SAFETY: `repr(C)`, starts with its size; numbers only, no padding.
unsafe impl VersionedStruct for heaptap_stats {
    const FIRST_SIZE: usize = 128;

    const ZERO: Self = heaptap_stats {
        size: 0,
        state: HEAPTAP_STATUS_OK,
        mutators: 0,
        samples: 0,
        sampled_blocks: 0,
        allocations: 0,
        promotions: 0,
        collections: 0,
        dropped: 0,
        waits: 0,
        bytes: 0,
        hook_ns: 0,
        live_blocks: 0,
        reserved: [0; 4],
    };

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 4]
    }
}

/// The numbers so far. Also after the tracer has stopped.
///
/// Any thread. Hooks that are under way may be missing.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_stats(
    tracer: *const heaptap_tracer,
    stats: *mut heaptap_stats,
) -> heaptap_status {
    guard(|| {
        // SAFETY: the host's promise.
        let session = unsafe { session(tracer) }?;
        let numbers = session.stats();
        let totals = numbers.totals;
        let result = heaptap_stats {
            // Replaced by what is written.
            size: 0,
            state: session.failure().map_or(HEAPTAP_STATUS_OK, |failure| Refused::from(failure).0),
            mutators: numbers.mutators as u32,
            samples: totals.samples,
            sampled_blocks: totals.sampled_blocks(),
            allocations: totals.allocations,
            promotions: totals.promotions,
            collections: totals.collections,
            dropped: totals.dropped,
            waits: totals.waits,
            bytes: numbers.bytes,
            hook_ns: numbers.hook_ns,
            live_blocks: numbers.live_blocks,
            reserved: [0; 4],
        };
        // SAFETY: this function requires `stats` to be NULL or a struct of the size that
        // it starts with.
        unsafe { write_versioned(stats, &result) }
    })
}
