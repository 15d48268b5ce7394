//! heaptap: a sampling allocation tracer that plugs into a language runtime.
//!
//! This package is what a runtime loads: `libheaptap.so` and `libheaptap.a` behind the C ABI
//! of `include/heaptap.h`. `docs/embedding.md` explains how a runtime uses it,
//! `docs/design.md` why it is built this way.
//!
//! # From an allocation to the file
//!
//! The runtime allocates by lowering a pointer and comparing it with a limit. [`sampling`] has
//! placed that limit where the next sample falls. When an allocation crosses it, the runtime
//! calls a hook in [`abi`] (or one of [`runtimes`], which replace functions of a runtime that
//! does not know us). [`tracer`] finds out which blocks were sampled, [`stack`] walks the
//! stack, [`blocks`] starts to track the block, and a record goes into the mutator's event
//! buffer. [`queue`] hands buffers to the writer thread, where [`writer`] finds source
//! locations and encodes the packets of a trace (`crates/trace`). When the runtime collects,
//! [`abi`] or [`runtimes`] report what was promoted, moved or collected.
//!
//! # The rooms
//!
//! | room | job | runs on | may use |
//! |---|---|---|---|
//! | [`abi`] | every `extern "C"` function: check arguments, guard against panics, call in | both | `runtimes`, `control`, `snapshot`, `safe_point`, `tracer`, `probes`, `stack` |
//! | [`runtimes`] | runtimes that are traced as they are: `attach` for all of them, a folder for each | both | `control`, `snapshot`, `safe_point`, `tracer`, `probes`, `stack`, `sys` |
//! | [`control`] | commands on a socket; snapshots that are taken by themselves | threads of its own, exit | `snapshot`, `safe_point`, `tracer`, `sys` |
//! | [`snapshot`] | a heap snapshot: copy of the process, walk, file | both, and a copy of the process | `safe_point`, `tracer`, `sys` |
//! | [`safe_point`] | what is done where the runtime can bear it: snapshots, start and stop of a session | both | `sys` |
//! | [`tracer`] | the session: options, mutators, start, stop, fork, exit | both | `writer`, `probes`, `sampling`, `blocks`, `stack`, `queue`, `sys` |
//! | [`writer`] | drain the queue, find locations, encode, write | writer thread | `queue`, `sys` |
//! | [`probes`] | the program's own quantities, the collector's time line, and the file for both | both | `sys` |
//! | [`sampling`] | geometric gaps; which parts of a combined allocation are sampled | mutators | |
//! | [`blocks`] | the sampled blocks that are alive: young, major, external | mutators | `queue`, `sys` |
//! | [`stack`] | frame tables, the stack walk, native frames | both | `sys` |
//! | [`queue`] | records, and their hand-over to the writer | both | `sys` |
//! | [`sys`] | clock, memory, threads, files | both | |
//!
//! Imports between rooms are those of the last column: `tests/layers` reads this table and
//! compares it with the code. Only `abi` names types of the public header, and only a folder
//! of `runtimes` knows how a particular runtime lays out its memory. `tracer` re-exports what
//! its callers need of the rooms below it.
//!
//! # Inside a hook
//!
//! Code that runs on a mutator inside a hook does not call malloc, takes no lock, does not
//! unwind into the host, needs less than 2 KiB of stack, and makes no system call except to
//! wait for the writer when that has fallen behind. The exception is the handover of blocks
//! when a mutator ends: it takes the registry's lock, in a collection of OCaml 5 too, while
//! all domains are stopped.
//!
//! # Where a change goes
//!
//! | change | place |
//! |---|---|
//! | another runtime that is traced as it is | a folder in `runtimes`, its entry in `runtimes/mod.rs` |
//! | a new release of OCaml | one row in `runtimes/ocaml/four/layout.rs` or `five/layout.rs` |
//! | an option of the C ABI | `abi/options.rs` and its layout in `abi/layout.rs`, `tracer/options.rs` |
//! | an environment variable | the table in `crates/settings`, `tracer/environment.rs` |
//! | a command of the control socket | `crates/control/src/command.rs` and `answer.rs`, `control/answer.rs`, a verb, `docs/control.md` |
//! | what the next file of a series begins with | `writer/series`, `crates/trace/src/series`, `docs/series-format.md` |
//! | another destination for the trace | a file in `sys`, a line in `writer/output.rs` |
//! | another kind of probe, or figure of the time line | an event in `crates/probes`, `probes/cell.rs` or `probes/time_line.rs`, a line in `probes/changes.rs` or `counters.rs` |
//! | another trace format | a folder beside `crates/trace/src/memtrace`; in `crates/trace/src` a line in `lib.rs`, `recognise.rs`, `model/format.rs`, and in each function of `formats.rs`; a name in `crates/cli/src/verbs/recode.rs` |
//! | another export | a file in `crates/export`, a line in its list |
//! | another verb of the tool | a file in `crates/cli/src/verbs`, a line in its list |

#![allow(rustdoc::private_intra_doc_links, reason = "this is the map of the private rooms")]
#![cfg_attr(loom, allow(dead_code, unused_imports, reason = "most of what uses them is not built"))]

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_arch = "x86_64")))]
compile_error!("heaptap runs on Linux with glibc, on amd64");

// With `--cfg loom` the queue is built of loom's types, for tests of its own;
// nothing else can be built upon it then.
#[cfg(not(loom))]
pub mod abi;
#[cfg(not(loom))]
mod blocks;
#[cfg(not(loom))]
mod control;
#[cfg(not(loom))]
mod probes;
mod queue;
#[cfg(not(loom))]
mod runtimes;
#[cfg(not(loom))]
mod safe_point;
#[cfg(not(loom))]
mod sampling;
#[cfg(not(loom))]
mod snapshot;
#[cfg(not(loom))]
mod stack;
mod sys;
#[cfg(not(loom))]
mod tracer;
#[cfg(not(loom))]
mod writer;

#[cfg(not(loom))]
pub use runtimes::attach::linked;

/// Whether tables and thresholds are small, so that unit tests reach their limits.
/// Benches, which compile modules of this crate with `cfg(test)`, define it as false.
const SMALL_LIMITS: bool = cfg!(test);

/// This package's version, as `Cargo.toml` has it.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
