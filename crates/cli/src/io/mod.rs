//! Reading and writing: traces come in through [`input`] as [`trace_bytes`], [`decompressed`] if need be; results go out through
//! [`output`], messages and progress to standard error through [`notices`] and
//! [`progress`], or to another thread through [`watch`]. [`lifecycle`] checks the events
//! of each object. [`trace_files`] finds the traces in directories, [`newest`] the one that no argument names. [`live_trace`] tails
//! a trace while it is written, [`sidecar`] reads the file beside it, which is at [`sidecar_path`], and [`live_sidecar`] as it grows; [`live_target`] finds the
//! trace that a process writes.
//!
//! [`running`] sends commands to a program, [`attaching`] has one take commands that was not started for it, [`trace_options`] are those of a trace that it is asked for. From trace to trace: [`rewrite`]. [`library`] finds what is loaded into a program, [`executable`] says whether it can be.

pub(crate) mod attaching;
mod decompressed;
pub(crate) mod executable;
pub(crate) mod input;
pub(crate) mod library;
pub(crate) mod lifecycle;
pub(crate) mod live_sidecar;
pub(crate) mod live_target;
pub(crate) mod live_trace;
pub(crate) mod newest;
pub(crate) mod notices;
mod open_trace;
pub(crate) mod output;
pub(crate) mod progress;
pub(crate) mod rewrite;
pub(crate) mod running;
pub(crate) mod series_files;
pub(crate) mod sidecar;
pub(crate) mod sidecar_path;
pub(crate) mod source_files;
pub(crate) mod trace_bytes;
pub(crate) mod trace_files;
pub(crate) mod trace_options;
pub(crate) mod watch;
