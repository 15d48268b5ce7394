//! OCaml 4.12 to 4.14 on amd64: programs are traced as they are.
//!
//! OCaml links its executables so that the runtime's functions can be found in
//! them by name, stripped or not. The runtime has a statistical profiler of its
//! own (`runtime/memprof.c`), which is called wherever something is allocated,
//! moved or freed. Before `main` we replace the first bytes of each of its
//! functions by a jump to ours. All of them or none: they share state that ours
//! do not keep.
//!
//! - `symbols`, `sizes`: where the runtime's functions and variables are, and how
//!   large.
//! - `layout`: where things are in the runtime's state; `probe`: the proof, live,
//!   before anything is changed.
//! - `patch`: the jumps.
//! - `hooks`: what is jumped to; `host`: the state behind them; `own_stack`: the
//!   stack they run on, since OCaml's may be nearly used up.
//! - `bytecode`: what offsets in bytecode mean.
//! - `walkers`: how the stack is walked.
//! - `frames`: the frame tables, also those of plugins loaded later.
//! - `environment`: what the program's children are to inherit; `report`: what
//!   the program that started us wants to know at the end.
//!
//! Facts about the runtime are from the source of OCaml 4.14.1 and hold in
//! 4.13.1 and 4.12.1 too unless said otherwise.
//!
//! Hooks run under the runtime's master lock, one at a time, whatever thread
//! they are on, so that one mutator is enough.

mod bytecode;
mod environment;
mod frames;
mod hooks;
mod host;
mod layout;
mod own_stack;
mod patch;
mod probe;
mod report;
mod sizes;
mod symbols;
mod walkers;

use std::fmt;

use crate::sampling::Rate;
use crate::tracer::{self, Failure, Options, say};
use symbols::Runtime;

/// Why an OCaml program is not traced.
#[derive(Debug, PartialEq, Eq)]
enum Refusal {
    /// OCaml, but not one of the versions whose profiler is known.
    Version(&'static str),
    /// The runtime has no such symbol, or it is not what it should be.
    Symbol(&'static str),
    /// The runtime does not behave as its version should.
    Layout(&'static str),
    /// The text cannot be written.
    Patch(i32),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Version(which) => write!(f, "its runtime is {which}"),
            Refusal::Symbol(name) => write!(f, "its runtime has no usable {name}"),
            Refusal::Layout(what) => write!(f, "its runtime is not laid out as known: {what}"),
            Refusal::Patch(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "its code cannot be changed: {error}")
            }
        }
    }
}

/// Attaches to the program if it is OCaml. Before `main`, and only if the
/// environment asks for a trace.
pub(super) fn attach() {
    let runtime = match symbols::find() {
        Ok(Some(runtime)) => runtime,
        Ok(None) => return,
        Err(refusal) => return refuse(&refusal),
    };
    let layout = match probe::layout(&runtime) {
        Ok(layout) => layout,
        Err(refusal) => return refuse(&refusal),
    };
    let options = Options {
        header_words: 1,
        one_mutator: true,
        parts_have_places: layout.native,
        locate: if layout.native { None } else { bytecode::locator() },
        runtime_params: environment::runtime_params(),
        ..Options::new(Vec::new(), Rate::DEFAULT)
    };
    let options = match tracer::options_from_environment(options) {
        Ok(options) => options,
        // What is wrong was said.
        Err(_) => return,
    };
    if let Err(refusal) = begin(&runtime, layout, options) {
        refuse(&refusal);
    }
}

fn begin(runtime: &Runtime, layout: layout::Layout, options: Options) -> Result<(), Refusal> {
    let mut jumps = patch::Jumps::prepare(&hooks::replacements(runtime))?;
    // Before there are other threads.
    let report = environment::adjust();
    let Ok(session) = tracer::start(options) else {
        // What is wrong was said.
        report::refused(report);
        return Ok(());
    };
    report::begin(&session, report);
    frames::add_all(runtime, &session);
    let started = host::start(runtime, layout, &session).and_then(|()| {
        jumps.write().map_err(|refusal| {
            refuse(&refusal);
            Failure::Off
        })
    });
    if started.is_err() {
        // Untouched: it runs as if we were not there.
        let _ = session.stop();
        return Ok(());
    }
    frames::follow_plugins(runtime);
    Ok(())
}

fn refuse(refusal: &Refusal) {
    say(format_args!("this OCaml program is not traced: {refusal}; it runs untouched"));
}
