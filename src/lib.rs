//! heaptap: a sampling allocation tracer that plugs into a language runtime.
//!
//! This package will be what a runtime loads: `libheaptap.so` and
//! `libheaptap.a` behind a C ABI. **None of it is built yet.** What stands today
//! is the ground it will write on and the tools that read it:
//!
//! - `crates/trace` (`heaptap-trace`): the memtrace format, encoder and decoder.
//! - `crates/cli` (`heaptap-cli`): the program `heaptap`.
//!
//! The rooms to come, each with one job, and the way dependencies point:
//! `abi → runtimes → tracer → {writer, sampling, blocks, stack} → {queue, sys}`.
//!
//! | room | job | runs on |
//! |---|---|---|
//! | `abi` | every `extern "C"` function: check, guard against panics, call in | mutators |
//! | `runtimes/ocaml` | OCaml's layouts and hooks | mutators |
//! | `tracer` | the session: options, per-mutator state, start, stop, fork, exit | both |
//! | `writer` | drain the queue, find locations, encode, write | writer thread |
//! | `sampling` | geometric gaps; the split of a combined allocation | mutators |
//! | `blocks` | tracked blocks: young, major, external | mutators |
//! | `stack` | frame-descriptor tables and the walk | mutators |
//! | `queue`, `sys` | hand-over of event buffers; clock, threads, files | both |

/// This package's version, as `Cargo.toml` has it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

pub mod abi;
mod blocks;
mod queue;
mod runtimes;
mod sampling;
mod stack;
mod sys;
mod tracer;
mod writer;
