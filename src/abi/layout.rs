//! The memory layout of the public structs, pinned.
//!
//! Numbers are literals: a change that would break a compiled host does not
//! compile here. `c-tests/tests/layout.c` has the same numbers for C. A struct
//! without a size cannot grow at all; one with a size may grow behind its first
//! version, or in its reserved bytes (`versioned`).

use std::mem::offset_of;

use crate::abi::frames::{
    HEAPTAP_FRAME_BOUNDARY, HEAPTAP_NO_PLACE, heaptap_frame, heaptap_frame_link,
    heaptap_frame_table, heaptap_place,
};
use crate::abi::handle::heaptap_mutator;
use crate::abi::mutator::{heaptap_mutator_options, heaptap_stack};
use crate::abi::names::heaptap_function;
use crate::abi::options::heaptap_options;
use crate::abi::snapshot::heaptap_snapshot_options;
use crate::abi::snapshot_source::heaptap_snapshot_source;
use crate::abi::snapshot_walk::heaptap_pointer;
use crate::abi::stats::heaptap_stats;
use crate::abi::versioned::VersionedStruct;
use crate::stack::formats::neutral;

/// Asserts the size, if it is fixed, and the offsets of fields.
macro_rules! pin {
    ($type:ident is $size:literal bytes: $($field:ident at $offset:literal),* $(,)?) => {
        const _: () = assert!(size_of::<$type>() == $size);
        $(const _: () = assert!(offset_of!($type, $field) == $offset);)*
    };
    ($type:ident starts with $size:literal bytes: $($field:ident at $offset:literal),* $(,)?) => {
        const _: () = assert!(<$type as VersionedStruct>::FIRST_SIZE == $size);
        const _: () = assert!(size_of::<$type>() >= $size);
        $(const _: () = assert!(offset_of!($type, $field) == $offset);)*
    };
}

/// Asserts that a pointer to the public struct may be used as one to the internal.
macro_rules! same_layout {
    ($public:ident as $internal:ty: $($field:ident),*) => {
        const _: () = assert!(size_of::<$public>() == size_of::<$internal>());
        const _: () = assert!(align_of::<$public>() == align_of::<$internal>());
        $(const _: () = assert!(offset_of!($public, $field) == offset_of!($internal, $field));)*
    };
}

pin!(heaptap_options starts with 160 bytes:
    size at 0, file at 8, rate at 16, seed at 24, header_words at 32, max_mutators at 36,
    max_frames at 40, when_full at 44, wait_ms at 48, follow at 52, native_frames at 56,
    buffer_kib at 60, context at 64, runtime_params at 72, locate at 80, locate_host at 88,
    rotate_bytes at 96, rotate_seconds at 104, keep at 108, budget at 112,
    recorder_seconds at 120, recorder_mib at 124);

pin!(heaptap_mutator_options starts with 64 bytes:
    size at 0, host at 8, r#where at 16, walk at 24);

pin!(heaptap_frame_table starts with 72 bytes:
    size at 0, format at 8, place_count at 12, frames at 16, count at 24, places at 32);

pin!(heaptap_function starts with 72 bytes:
    size at 0, file at 8, name at 16, lines at 24, count at 32);

pin!(heaptap_stats starts with 128 bytes:
    size at 0, state at 8, mutators at 12, samples at 16, sampled_blocks at 24,
    allocations at 32, promotions at 40, collections at 48, dropped at 56, waits at 64,
    bytes at 72, hook_ns at 80, live_blocks at 88, threads_ns at 96, program_ns at 104);

pin!(heaptap_snapshot_options starts with 64 bytes:
    size at 0, method at 8, moment at 12, string_bytes at 16, wait_ms at 20);

pin!(heaptap_snapshot_source starts with 104 bytes:
    size at 0, runtime at 8, walk at 16, request at 24, host at 32, header_words at 40);

pin!(heaptap_pointer is 16 bytes: field at 0, target at 8);

pin!(heaptap_frame is 16 bytes: return_address at 0, size at 8, place at 12);

pin!(heaptap_frame_link is 16 bytes: sp at 0, return_address at 8);

pin!(heaptap_place is 32 bytes:
    file at 0, function at 8, line at 16, start_char at 20, end_char at 24, inlined_into at 28);

pin!(heaptap_stack is 24 bytes: return_address at 0, sp at 8, native_limit at 16);

// The inline functions of the header count this field down, and read what the other points to.
const _: () = assert!(heaptap_mutator::UNTIL_SAMPLE_OFFSET == 0);
const _: () = assert!(heaptap_mutator::SAMPLED_OFFSET == 8);

// `heaptap_frames_add` passes pointers to the host's arrays on as they are.
same_layout!(heaptap_frame as neutral::NeutralFrame: return_address, size, place);
same_layout!(heaptap_place as neutral::NeutralPlace:
    file, function, line, start_char, end_char, inlined_into);
const _: () = assert!(HEAPTAP_FRAME_BOUNDARY == neutral::BOUNDARY);
const _: () = assert!(HEAPTAP_NO_PLACE == neutral::NO_PLACE);
