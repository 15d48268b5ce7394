//! The layouts in which hosts hand in frame tables, one file each.
//!
//! A format turns a host's table into [`Entry`]s, all or none, and later finds
//! in the host's record what the debug information of a return address is.
//! Parsing runs on whatever thread adds a table, never inside a hook.

pub(crate) mod neutral;
pub(super) mod ocaml;

/// How to get from a frame to its caller, packed in a word.
///
/// - a multiple of 8, not 0: add that many bytes to `sp`;
/// - otherwise one of the crossings below.
pub(super) type Step = u64;

/// Neutral boundary that is itself a frame: a `heaptap_frame_link` at `sp`.
pub(super) const CROSS_NEUTRAL: Step = 1;
/// The same for a boundary without a place, which is no frame of its own.
pub(super) const CROSS_NEUTRAL_HIDDEN: Step = 2;
/// OCaml 4: a `caml_context` at `sp + 16`.
pub(super) const CROSS_OCAML4: Step = 3;
/// OCaml 5, return from a callback: another chunk of the fiber at `sp + 32`.
pub(super) const CROSS_OCAML5_CALLBACK: Step = 4;
/// OCaml 5, return from a fiber: its handler at `sp + 32`.
pub(super) const CROSS_OCAML5_FIBER: Step = 5;

/// True of a step that is a plain distance.
pub(super) const fn is_distance(step: Step) -> bool {
    step != 0 && step.is_multiple_of(8)
}

/// One return address of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) return_address: u64,
    pub(super) step: Step,
    /// The address of the host's own record of it.
    pub(super) record: u64,
}

/// No code lies below this address (`CAMLassert(d->retaddr >= 4096)`,
/// `runtime/frame_descriptors.c`, OCaml 5.3.0).
pub(super) const LOWEST_CODE: u64 = 4096;

/// Codes from here on are not the host's.
pub(super) const HIGHEST_CODE: u64 = 1 << 60;

/// More return addresses than any table has: a greater count is garbage.
pub(super) const MAX_COUNT: u64 = 1 << 26;
