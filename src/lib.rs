//! heaptap: a sampling allocation tracer that plugs into a language runtime.
//!
//! This package is what a runtime loads: `libheaptap.so` and `libheaptap.a`
//! behind the C ABI of `include/heaptap.h`. `docs/embedding.md` tells how a
//! runtime uses it, `docs/design.md` why it is built as it is.
//!
//! # The way of a sample
//!
//! The runtime allocates by lowering a pointer and comparing it with a limit,
//! which [`sampling`] has put where the next sample falls. Below it, the runtime
//! calls a hook of [`abi`]; [`tracer`] finds out which blocks are sampled, has
//! [`stack`] walk the stack, puts the block among those that [`blocks`] follows,
//! and appends records to the mutator's event buffer. [`queue`] hands buffers to
//! the writer thread, where [`writer`] turns records into the packets of a trace
//! (`crates/trace`), with locations from the frame tables and `crates/symbols`.
//! Collections report through [`abi`] what became of the blocks.
//!
//! # The rooms
//!
//! | room | job | runs on |
//! |---|---|---|
//! | [`abi`] | every `extern "C"` function: check, guard against panics, call in | mutators |
//! | [`runtimes`] | runtimes traced unmodified: what all need (`attach`), and OCaml's hooks and layouts | mutators |
//! | [`tracer`] | the session: options, mutators, start, stop, fork, exit | both |
//! | [`writer`] | drain the queue, find locations, encode, write | writer thread |
//! | [`sampling`] | geometric gaps; the split of a combined allocation | mutators |
//! | [`blocks`] | tracked blocks: young, major, external | mutators |
//! | [`stack`] | frame-descriptor tables, the walk, native frames | mutators |
//! | [`queue`], [`sys`] | records and their hand-over; clock, memory, threads, files | both |
//!
//! Dependencies point one way:
//! `{abi, runtimes} → tracer → {writer, sampling, blocks, stack} → {queue, sys}`; siblings do
//! not know each other, only `abi` names the types of the public header, and only
//! `runtimes` knows how a certain runtime lays out its memory.
//!
//! What runs on a mutator, inside a hook, does not call malloc, takes no lock,
//! does not unwind into the host, needs less than 2 KiB of stack and makes no
//! system call, except to wait for the writer when that has fallen behind.

#![allow(rustdoc::private_intra_doc_links, reason = "this is the map of the private rooms")]
#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "most of what uses them is not built"))]

// With `--cfg loom` the queue is built of loom's types, for tests of its own;
// nothing else can be built upon it then.
#[cfg(not(loom))]
pub mod abi;
#[cfg(not(loom))]
mod blocks;
mod queue;
#[cfg(not(loom))]
mod runtimes;
#[cfg(not(loom))]
mod sampling;
#[cfg(not(loom))]
mod stack;
mod sys;
#[cfg(not(loom))]
mod tracer;
#[cfg(not(loom))]
mod writer;

#[cfg(all(not(loom), target_os = "linux", target_env = "gnu", target_arch = "x86_64"))]
pub use runtimes::attach::linked;

/// Whether tables and thresholds are small, so that unit tests reach their limits.
/// Benches, which compile modules of this crate with `cfg(test)`, define it as false.
const SMALL_LIMITS: bool = cfg!(test);

/// This package's version, as `Cargo.toml` has it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
