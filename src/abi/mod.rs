//! The C ABI: every exported function, and nothing else.
//!
//! `include/heaptap.h` is generated from this room. Each export checks what it
//! was given, runs inside [`guard`](guard::guard), which turns a panic into a
//! status, and calls into [`tracer`](crate::tracer).
//!
//! Rules that hold for all of them:
//! - A status is returned; results are written through the last parameters, and
//!   only when the status is [`HEAPTAP_STATUS_OK`] (or, for the young limit,
//!   [`HEAPTAP_STATUS_LOST`]: the sample was lost, the limit is right).
//! - Every pointer may be NULL or misaligned: that is a status, not a crash.
//! - Structs begin with their size and end with zeroed reserved bytes, so that
//!   an old host works with a new library.
//! - The functions for programs that were attached to return a label: such a
//!   program does not know whether it is traced, and there is nothing to refuse.
//! - A handle may be used after its tracer was stopped: nothing happens then.

#![allow(unsafe_code, reason = "exports C functions and follows the host's pointers")]
#![allow(non_camel_case_types, reason = "the names of the C header")]

mod attached;
mod collector;
mod frames;
mod guard;
mod handle;
mod hooks;
#[cfg(target_pointer_width = "64")]
mod layout;
mod mutator;
mod options;
mod pointer;
mod stats;
mod status;
mod tracer;
mod versioned;

pub use attached::*;
pub use collector::*;
pub use frames::*;
pub use handle::{heaptap_mutator, heaptap_tracer};
pub use hooks::*;
pub use mutator::*;
pub use options::*;
pub use stats::*;
pub use status::*;
pub use tracer::*;
