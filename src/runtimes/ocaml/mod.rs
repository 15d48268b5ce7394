//! OCaml: everything that is known about its runtimes. Programs for amd64 are traced
//! unmodified.
//!
//! OCaml links its executables so that the runtime's functions can be found in
//! them by name, stripped or not. The runtime contains a statistical profiler
//! (`runtime/memprof.c`), whose functions are called wherever something is allocated,
//! moved or freed. Before `main` the first bytes of each of them are replaced by a jump
//! to a hook. All of them or none: they share state that hooks do not keep.
//!
//! - `version`: major versions; `releases`: those that share a layout; `detect`: which one a
//!   program holds.
//! - `four`: OCaml 4.12 to 4.14, whose threads share one heap; `five`: OCaml 5.3
//!   and later, whose domains each have a young heap. Both have a
//!   table of hooks (`symbols`) and of what is known about each release (`layout`).
//! - `runtime`: both as an implementation of the trait `Runtime`; `attachment`: what
//!   their attachments have in common.
//! - `frame_table`: the format of frame tables; `frame_descriptor`: what they consist of;
//!   `crossings`: how a walk gets past callbacks and fibers; `descriptors`: the runtime's
//!   own index of frames; `borrowed_tables`: tables that are found through it; `frames`:
//!   adds the tables of the program, and of plugins that it loads; `backtrace`: where walks leave frames; `names`: of code
//!   without debug information.
//! - `heap`: writes the heap into a snapshot; `tag_sizes`: what tagged values reach;
//!   `timing`: when the collector works; `thread_state`: labels of threads.
//! - `values`: headers and lengths; `unit_name`: names of compilation units; `variable`:
//!   variables of the runtime; `lent`: memory with which layouts are proved; `hook_variable`: those that hold hooks; `parameters`: what the trace info says about it; `polls`:
//!   how samples keep out of their way;
//!   `bytecode`: what addresses in bytecode mean, also in code that is loaded later.

mod attachment;
mod backtrace;
mod borrowed_tables;
mod bytecode;
mod crossings;
mod descriptors;
mod detect;
mod five;
mod four;
mod frame_descriptor;
pub(crate) mod frame_table;
mod frames;
mod heap;
mod hook_variable;
mod lent;
mod names;
mod parameters;
mod polls;
mod releases;
mod runtime;
mod tag_sizes;
mod thread_state;
mod timing;
mod unit_name;
mod values;
mod variable;
pub(crate) mod version;

use descriptors::Descriptors;
pub(super) use five::OCAML5;
pub(super) use four::OCAML4;
use releases::Releases;
use version::MajorVersion;
