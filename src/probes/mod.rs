//! The program's own quantities, and the time line of its collector and process.
//!
//! A probe is a [`Cell`]: the program changes it with a few instructions, however often, and
//! the writer thread records what changed, ten times a second, in the sidecar of the trace
//! (`crates/probes`). Nothing is recorded for a single pass of a point.
//!
//! - `cell`: a probe's memory, and what each kind of probe does to it; `timer` and
//!   `text_cell`: that of a timer and of a text; `observer`: a function that is asked for a value.
//! - `registry`: all probes of a session by name, the log, and where the program asks a view
//!   to stop.
//! - `time_line`: what a runtime reports of its collector: slices and their totals.
//! - `changes`: what a probe was when it was last recorded, and the event that says what it is.
//! - `counters`: the same for the collector, the process, and what was lost.
//! - `size_limit`: how large a file becomes; `pace`: how often something is recorded.
//! - `sidecar`: when there is one, and what it says; `sidecar_file`: its packets;
//!   `sidecar_trace`: the trace that it belongs to. On the writer thread, as the two above.
//!
//! Cells and the time line are written by any thread, inside hooks too: atomic numbers, no
//! locks. Opening a probe and the log take a lock.

#![allow(unsafe_code, reason = "a probe's address is the program's handle of it")]

mod cell;
mod changes;
mod counters;
mod observer;
mod pace;
mod registry;
mod sidecar;
mod sidecar_file;
mod sidecar_output;
mod sidecar_trace;
mod size_limit;
mod text_cell;
mod time_line;
mod timer;

pub(crate) use cell::{Cell, SizeShare};
pub(crate) use counters::ReadHeap;
pub(crate) use heaptap_probes::{Heap, ProbeKind, SliceKind};
pub(crate) use observer::ObserveFn;
pub(crate) use registry::{Note, ProbeRegistry, RegistryLock, text};
pub(crate) use sidecar::Sidecar;
pub(crate) use sidecar_trace::{SidecarClock, SidecarOwner, TraceAt};
pub(crate) use time_line::TimeLine;
