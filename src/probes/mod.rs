//! The program's own quantities, and the time line of its collector and process.
//!
//! A probe is a [`Cell`]: the program changes it with a few instructions, however often, and
//! the writer thread records what changed, ten times a second, in the sidecar of the trace
//! (`crates/probes`). Nothing is recorded for a single pass of a point.
//!
//! - `cell`: a probe's memory, and what each kind of probe does to it; `timer`: that of a timer.
//! - `registry`: all probes of a session by name, the log, and where the program asks a view
//!   to stop.
//! - `time_line`: what a runtime reports of its collector: slices and their totals.
//! - `changes`: what a probe was when it was last recorded, and the event that says what it is.
//! - `sidecar`: the file. On the writer thread.
//!
//! Cells and the time line are written by any thread, inside hooks too: atomic numbers, no
//! locks. Opening a probe and the log take a lock.

#![allow(unsafe_code, reason = "a probe's address is the program's handle of it")]

mod cell;
mod changes;
mod registry;
mod sidecar;
mod time_line;
mod timer;

pub(crate) use cell::{Cell, SizeShare};
pub(crate) use heaptap_probes::{Heap, ProbeKind, SliceKind};
pub(crate) use registry::{Note, ProbeRegistry, RegistryLock, text};
pub(crate) use sidecar::{ReadHeap, Sidecar, SidecarClock, SidecarOwner, TraceAt};
pub(crate) use time_line::TimeLine;
