//! The C ABI: every exported function, and nothing else.
//!
//! `include/heaptap.h` is generated from this module. Each export checks its
//! arguments, runs inside [`guard`](guard::guard), which turns a panic into a
//! status, and calls into [`tracer`](crate::tracer).
//!
//! Rules for all exports:
//! - An export returns a status. Results are written through the last parameters,
//!   and only if the status is [`HEAPTAP_STATUS_OK`] (the young limit also with
//!   [`HEAPTAP_STATUS_LOST`]: the sample was lost, but the limit is right; the text of
//!   [`heaptap_snapshot_take`] also with [`HEAPTAP_STATUS_SNAPSHOT`], and that of
//!   [`heaptap_control_command`] with [`HEAPTAP_STATUS_COMMAND`]: it is the reason).
//! - A pointer that is NULL or misaligned is refused with a status.
//! - Structs start with their size and end with reserved bytes that must be zero,
//!   so that old hosts work with new libraries (`versioned`). `layout` pins the
//!   offsets of all fields.
//! - The functions for programs that the library attached itself to return labels:
//!   such a program does not know whether it is traced, and nothing can fail.
//! - A handle may be used after its tracer was stopped. Nothing happens then.

#![allow(unsafe_code, reason = "exports C functions and follows the host's pointers")]
#![allow(non_camel_case_types, reason = "the names of the C header")]

mod attached;
mod collector;
mod control;
mod frames;
mod guard;
mod handle;
mod hooks;
mod interpreters;
mod layout;
mod mutator;
mod names;
mod options;
mod pointer;
mod probe;
mod slices;
mod snapshot;
mod snapshot_source;
mod snapshot_walk;
mod stats;
mod status;
mod tracer;
mod upward;
mod versioned;

pub use attached::*;
pub use collector::*;
pub use control::*;
pub use frames::*;
pub use handle::{heaptap_mutator, heaptap_tracer};
pub use hooks::*;
pub use interpreters::*;
pub use mutator::*;
pub use names::*;
pub use options::*;
pub use probe::*;
pub use slices::*;
pub use snapshot::*;
pub use snapshot_source::*;
pub use snapshot_walk::*;
pub use stats::*;
pub use status::*;
pub use tracer::*;
pub use upward::*;
