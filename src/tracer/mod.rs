//! The session: one trace of this process, from start to stop.
//!
//! - `options`, `environment`: what is asked for.
//! - `session`: the trace as a whole; `state`: whether it goes on; `registry`: who
//!   takes part; `counters`: what is counted.
//! - `mutator`, `recorder`, `stacks`: what hooks do, from a sample to records in
//!   the event buffer.
//! - `locate`, `part_codes`, `own_memory`, `labels`, `info`: what the writer
//!   thread needs to know.
//! - `process`: one session at a time; `exit` and `fork`.
//!
//! Hooks run in `mutator`, `recorder` and `stacks`; the writer thread in
//! `locate` and `part_codes`; everything else on the host's threads outside of hooks.

#![allow(unsafe_code, reason = "walks the host's stack, registers handlers of exit and fork")]

mod backtraces;
mod counters;
mod counting_output;
mod environment;
mod failure;
mod guard;
mod info;
mod labels;
mod locate;
mod message;
mod mutator;
mod options;
mod own_memory;
mod part_codes;
mod process;
mod recorder;
mod registry;
mod session;
mod state;

pub(crate) use backtraces::{Place, StackLocator, StackSource};
pub(crate) use environment::options_from_environment;
pub(crate) use failure::Failure;
pub(crate) use guard::guard;
pub(crate) use message::say;
pub(crate) use mutator::Mutator;
pub(crate) use options::{Follow, Locator, Namer, Options, WhenFull};
pub(crate) use process::{flush_signal_safe, start, turn_off_after_panic};
pub(crate) use recorder::Followed;
pub(crate) use session::Session;
