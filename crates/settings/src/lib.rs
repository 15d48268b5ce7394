//! The settings of a trace: one table of every environment variable that heaptap
//! reads, with its value syntax, default, meaning and `heaptap run` option. Also the
//! language runtimes that can be traced.
//!
//! The plugin reads these variables inside the traced process, `heaptap run` sets
//! them in another, and the tools never depend on the plugin. What both must agree
//! on is therefore a crate. The manual pages and the tables in `docs/` are generated
//! from it too.
//!
//! - [`table`]: the variables, the only place where their names are spelled.
//! - `variable`: what is known of each; `value`: how values are checked.
//! - [`file_name`]: the placeholders in the name of a trace file.
//! - `budget`: what a trace may cost.
//! - `rotation`: when a trace goes on in another file.
//! - `trigger`: when heap snapshots are taken.
//! - `runtimes`: which languages and releases are traced unmodified.
//!
//! Nothing here reads or changes the environment: callers pass in a lookup. Code
//! outside of this crate refers to a variable by its constant; `tests/literals.rs`
//! finds names that are spelled elsewhere.

#![forbid(unsafe_code)]

mod budget;
pub mod file_name;
mod recorder;
mod rotation;
mod runtimes;
pub mod table;
mod trigger;
mod value;
mod variable;

pub use budget::{BUDGETS, budget};
pub use recorder::Recorder;
pub use rotation::{MIN_PART, Rotation};
pub use runtimes::{LUA, OCAML, RUBY, RUNTIMES, SupportedRuntime, supported_runtimes};
pub use table::{
    BUDGET, DEFAULT_KEEP, DEFAULT_PROBES_LIMIT, FILE, FOLLOW, FRAMES, JOURNAL, KEEP, LIBRARY,
    LISTEN, LISTEN_FORKS, MAX_FRAMES, MAX_RATE, MIN_RATE, ONLY, PROBES_LIMIT, RATE, RECORDER,
    ROTATE, SEED, SNAPSHOT, SNAPSHOT_FILE, TARGET, TEST_VERIFY, TIMELINE, UNWINDER, VARIABLES,
};
pub use trigger::{Trigger, TriggerSignal, period};
pub use value::{Invalid, Syntax};
pub use variable::{Inheritance, Lookup, Reader, RunOption, Variable};
