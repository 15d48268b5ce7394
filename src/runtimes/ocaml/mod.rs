//! OCaml on amd64: programs are traced as they are.
//!
//! OCaml links its executables so that the runtime's functions can be found in
//! them by name, stripped or not. The runtime has a statistical profiler of its
//! own (`runtime/memprof.c`), which is called wherever something is allocated,
//! moved or freed. Before `main` we replace the first bytes of each of its
//! functions by a jump to ours. All of them or none: they share state that ours
//! do not keep.
//!
//! - `four`: OCaml 4.12 to 4.14, whose threads share one heap; `five`: OCaml 5.3
//!   and later, whose domains each have a young heap.
//! - `symbols`, `sizes`: which runtime it is, where its functions and variables
//!   are, and how large; `linked`, `unwinding`: the same in static programs.
//! - `late`: runtimes that are loaded when the program runs already.
//! - `patch`: the jumps; `own_stack`: a stack for hooks to run on, where OCaml's
//!   may be nearly used up.
//! - `values`: headers and lengths; `bytecode`: what addresses in bytecode mean,
//!   also of code that is loaded later.
//! - `frames`: the frame tables, also those of plugins loaded later;
//!   `descriptors`: the runtime's own index of them; `names`: of code that they
//!   say nothing of.
//! - `endings`: nothing is lost where a program ends without saying so.
//! - `environment`: what the program's children are to inherit; `report`: what
//!   the program that started us wants to know at the end.

mod bytecode;
mod descriptors;
mod five;
mod four;
mod frames;
mod names;
mod values;
mod version;

use std::sync::{Arc, OnceLock};

use crate::runtimes::attach::patch::{self, Replacement};
use crate::runtimes::attach::refusal::Refusal;
use crate::runtimes::attach::{endings, environment, late, report, symbols};
use crate::stack::OcamlVersion;
use crate::tracer::{self, Failure, Options, Session, say};
use version::Line;

/// Attaches to the program if it is OCaml, or when it becomes it. Before `main`,
/// and only if the environment asks for a trace. A program that has linked this
/// library for a runtime of its own is left alone.
pub(super) fn at_load() {
    if attach() == Found::Nothing && environment::is_preloaded() {
        late::wait();
    }
}

#[derive(PartialEq, Eq)]
pub(super) enum Found {
    Runtime,
    Nothing,
}

/// Attaches to the runtime if there is one.
pub(super) fn attach() -> Found {
    if symbols::lookup(c"caml_memprof_start").is_some_and(patch::is_replaced) {
        return Found::Runtime;
    }
    let attached = match version::line() {
        Ok(None) => return Found::Nothing,
        Ok(Some(Line::Four)) => four::attach(),
        Ok(Some(Line::Five)) => five::attach(),
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = attached {
        refuse(&refusal);
    }
    Found::Runtime
}

/// Starts a trace of a runtime that is known: `start` makes everything ready for
/// the first hook, then the jumps are written.
fn begin(
    options: Options,
    replacements: &[Replacement],
    version: OcamlVersion,
    start: impl FnOnce(&Arc<Session>) -> Result<(), Failure>,
) -> Result<(), Refusal> {
    let params = environment::runtime_params();
    let name = names::namer();
    let options = Options { header_words: 1, runtime_params: params, name, ..options };
    let Ok(options) = tracer::options_from_environment(options) else {
        // What is wrong was said.
        return Ok(());
    };
    let mut jumps = patch::Jumps::prepare(replacements)?;
    let alone = environment::is_only_thread();
    let report = environment::adjust(alone);
    let Ok(session) = tracer::start(options) else {
        // What is wrong was said.
        report::refused(report);
        return Ok(());
    };
    report::begin(&session, report.clone());
    frames::add_all(&session, version);
    let started = start(&session).and_then(|()| {
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
    frames::follow_plugins();
    bytecode::follow_loading();
    if alone {
        endings::follow(report.as_deref());
    }
    let _ = ATTACHED.set((version, session));
    Ok(())
}

/// The runtime we are attached to, and the trace.
static ATTACHED: OnceLock<(OcamlVersion, Arc<Session>)> = OnceLock::new();

/// The label of this name; 0 if nothing is traced.
pub(super) fn label(name: &[u8]) -> u32 {
    ATTACHED.get().map_or(0, |(_, session)| session.labels.intern(name))
}

/// What the calling thread is doing from now on; returns what it was doing.
pub(super) fn set_label(label: u32) -> u32 {
    match ATTACHED.get() {
        Some((OcamlVersion::Four, _)) => four::set_label(label),
        Some((OcamlVersion::Five, _)) => five::set_label(label),
        None => 0,
    }
}

fn refuse(refusal: &Refusal) {
    say(format_args!("this OCaml program is not traced: {refusal}; it runs untouched"));
}
