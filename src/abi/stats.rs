//! Statistics of a trace.

use crate::abi::guard::guard;
use crate::abi::handle::{heaptap_tracer, session};
use crate::abi::status::{HEAPTAP_STATUS_OK, Refused, heaptap_status};
use crate::abi::versioned::{VersionedStruct, write_versioned};

/// Statistics of a trace.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct heaptap_stats {
    /// `sizeof(heaptap_stats)`, set by the caller. Afterwards the number of bytes
    /// that were written: fewer if the library is older than this header.
    pub size: usize,
    /// `HEAPTAP_STATUS_OK` while tracing, otherwise why tracing ended.
    pub state: heaptap_status,
    /// Mutators that exist now.
    pub mutators: u32,
    /// Samples taken.
    pub samples: u64,
    /// Blocks with at least one sample.
    pub sampled_blocks: u64,
    /// Allocations recorded.
    pub allocations: u64,
    /// Promotions recorded.
    pub promotions: u64,
    /// Collections recorded.
    pub collections: u64,
    /// Sampled blocks that were not recorded.
    pub dropped: u64,
    /// How often a hook waited for the writer.
    pub waits: u64,
    /// Bytes written to the trace's files.
    pub bytes: u64,
    /// Time that all mutators spent in hooks, in nanoseconds. An estimate: only
    /// one in 32 hooks of allocations is timed.
    pub hook_ns: u64,
    /// Sampled blocks not known to be dead.
    pub live_blocks: u64,
    /// Processor time of the threads of this library, in nanoseconds. Exact.
    pub threads_ns: u64,
    /// Processor time of the program: of the process without `threads_ns` and `hook_ns`.
    pub program_ns: u64,
    /// Zero.
    pub reserved: [u64; 2],
}

// SAFETY: `repr(C)`, starts with its size; numbers only, no padding.
unsafe impl VersionedStruct for heaptap_stats {
    const FIRST_SIZE: usize = 128;

    fn reserved_is_zero(&self) -> bool {
        self.reserved == [0; 2]
    }
}

/// Writes the statistics so far to `*stats`. Also works after the tracer has
/// stopped.
///
/// Any thread. Hooks that are running may not be counted yet.
///
/// # Safety
/// The pointers are NULL or as described.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn heaptap_tracer_stats(
    tracer: *const heaptap_tracer,
    stats: *mut heaptap_stats,
) -> heaptap_status {
    guard(|| {
        // SAFETY: this function requires `tracer` to be NULL or a handle.
        let session = unsafe { session(tracer) }?;
        let numbers = session.stats();
        let totals = numbers.totals;
        let result = heaptap_stats {
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
            threads_ns: numbers.cost.threads_ns,
            program_ns: numbers.cost.program_ns,
            ..VersionedStruct::ZERO
        };
        // SAFETY: this function requires `stats` to be NULL or a struct of the size that
        // it starts with.
        unsafe { write_versioned(stats, &result) }
    })
}
