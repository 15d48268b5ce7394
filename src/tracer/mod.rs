//! The session: one trace of this process, from start to stop.
//!
//! Imports point one way, from a later line to earlier ones:
//!
//! - `failure`, `message`, `start_error`, `options`, `environment`: the basis; what the user
//!   chose.
//! - `host_names`: functions, places and kinds of blocks that the host has named.
//! - `state`, `counters`, `cost`, `labels`, `stopwatch`, `info`: facts of a session that
//!   its parts share.
//! - `hook`, `backtraces`, `lane_writer`, `recorder`: what hooks do, from a
//!   sampled block to records in the mutator's event buffer.
//! - `registry`: the mutators. `budget`: a bound for what tracing costs, kept on the writer thread.
//! - `part_code_cache`, `frame_locator`, `session_clock`, `writer_context`: what the writer thread needs
//!   of the session.
//! - `counting_output`, `writer_thread`, `session`: the session, with
//!   its writer thread and the list of its mutators. `series`: parts of a trace, in files or memory.
//!   `changes`: another part, rate or budget while it runs.
//! - `mutator`: the hooks of one thread or domain; knows its session.
//! - `process`, `guard`: one session at a time; exit, fork and panics.
//!
//! Hooks run in `mutator`, `recorder`, `lane_writer` and `backtraces`; the writer
//! thread in `writer_context` and those before it; everything else on the host's threads
//! outside of hooks.
//!
//! What hooks call here is `inline(always)` where it is small: with plain `inline` a hook
//! takes 1.4 % more instructions at 15 frames, 3.1 % at 190 (`benches/overhead --only hooks`).

#![allow(unsafe_code, reason = "walks the host's stack, registers handlers for exit and fork")]

mod backtraces;
mod budget;
mod changes;
mod cost;
mod counters;
mod counting_output;
mod environment;
mod failure;
mod flight_recorder;
mod fork;
mod frame_locator;
mod guard;
mod hook;
mod host_names;
mod info;
mod labels;
mod lane_writer;
mod message;
mod mutator;
mod options;
mod part_code_cache;
mod process;
mod recorder;
mod registry;
mod series;
mod session;
mod session_clock;
mod start_error;
mod state;
mod stopwatch;
mod writer_context;
mod writer_thread;

pub(crate) use crate::writer::{DumpOrder, DumpReason, Dumped, ReadParams, RotationLimits};
pub(crate) use backtraces::{StackLocator, StackSource, StackTop};
pub(crate) use environment::{options_from_environment, settings_from_environment};
pub(crate) use failure::Failure;
pub(crate) use flight_recorder::{leave_end_to_others, note_uncaught_exception};
pub(crate) use guard::guard;
pub(crate) use host_names::HostFunction;
pub(crate) use labels::Labels;
pub(crate) use message::say;
pub(crate) use mutator::{AllocatedBlock, DetachedBlock, Mutator};
pub(crate) use options::{Locator, Namer, Options, RecorderLimits, Tracking, WhenFull};
pub(crate) use process::{
    flush_signal_safe, forget, last_session, live_session, on_start_in_child, prepare,
    session_in_this_process, start, start_sharing,
};
pub(crate) use recorder::Tracked;
pub(crate) use session::Session;
pub(crate) use start_error::StartError;

// What hosts and runtimes need of the rooms below.
pub(crate) use crate::blocks::{Fate, Generation};
pub(crate) use crate::sampling::{Countdown, PartSizes, Rate, WORD};
pub(crate) use crate::stack::native::Registers;
