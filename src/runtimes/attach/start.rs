//! From the library's constructor to a running session, and to a process that takes
//! commands.

use super::attached::{self, Attached};
use super::patch::Jumps;
use super::refusal::Refusal;
use super::runtime::{Attachment, Detected, Runtime, detect};
use super::selection::{self, Choice, ProcessNames};
use super::{endings, environment, journal, late, limits, symbols};
use crate::control::{self, Settings, SnapshotSupport};
use crate::sys::program;
use crate::tracer::{self, Failure, say};

/// The runtimes that are looked for.
pub(crate) type Known = &'static [&'static dyn Runtime];

/// Attaches to the runtime in this program, or, if the library was preloaded, to
/// the first that the program loads. Does nothing unless the environment asks for
/// a trace, for commands or for snapshots, and for those of this process. A program that links this library and uses the C ABI is left alone.
///
/// Before `main`.
pub(crate) fn at_load(known: Known) {
    if !environment::asks_for_trace() && !Settings::are_asked_for() {
        return;
    }
    let detected = detect(known.iter().copied(), &symbols::lookup);
    let names = ProcessNames::of_this_process();
    match (selection::choose(&names, detected.is_some()), detected) {
        (Choice::Taken, Some(detected)) => attach(detected),
        (Choice::Taken, None) if environment::is_preloaded() => late::wait(known, attach),
        (Choice::Passed, Some(_)) => journal::passed(environment::journal(), names.shown()),
        (Choice::Wrapped(_), _) => journal::wrapped(environment::journal(), names.shown()),
        (Choice::Taken | Choice::Passed, None) => {}
    }
}

/// Traces a runtime that was detected, takes commands and snapshots, as the environment asks for.
/// A refusal is reported to the user.
fn attach(detected: Detected) {
    let Detected { runtime, supported } = detected;
    // Before anything is named after the program.
    if let Some(program) = runtime.interpreted() {
        program::set_interpreted(program);
    }
    // Before `trace` removes the variables.
    let settings = match Settings::from_environment() {
        Ok(settings) => settings,
        Err(invalid) => return refuse(runtime, &Refusal::Setting(invalid)),
    };
    let checked = supported.and_then(|()| check_process());
    if let Err(refusal @ Refusal::Limit(_)) = &checked {
        // Threads and preparations take some, too.
        return refuse(runtime, refusal);
    }
    let refusal = match &checked {
        Ok(()) => runtime.prepare_snapshots().err().map(|refusal| refusal.to_string()),
        Err(refusal) => Some(refusal.to_string()),
    };
    if environment::asks_for_trace() {
        if let Err(refusal) = checked.and_then(|()| trace(runtime)) {
            refuse(runtime, &refusal);
        }
    } else {
        environment::adjust(environment::is_only_thread());
    }
    if refusal.is_none() && attached::attached().is_none() {
        // Without it fewer moments are safe points.
        let _ = runtime.hook_polls();
    }
    control::start(&settings, SnapshotSupport { runtime: runtime.name(), refusal });
}

fn trace(runtime: &'static dyn Runtime) -> Result<(), Refusal> {
    match runtime.attach()? {
        Some(attachment) => begin(runtime, attachment),
        None => Ok(()),
    }
}

/// Reports that there is no trace, or, if none is asked for, that no commands are taken.
fn refuse(runtime: &dyn Runtime, refusal: &Refusal) {
    let lacks = if environment::asks_for_trace() { "is not traced" } else { "takes no commands" };
    report_refusal(runtime, lacks, refusal);
    journal::refused(environment::journal());
}

/// Refuses a process whose variables are wrong, or that has no memory or descriptors to spare.
fn check_process() -> Result<(), Refusal> {
    environment::check().map_err(Refusal::Setting)?;
    limits::too_tight().map_or(Ok(()), |tight| Err(Refusal::Limit(tight)))
}

/// Starts the session, then patches the runtime. If a step fails after the
/// session has started, the session is stopped and the runtime runs unmodified.
fn begin(runtime: &'static dyn Runtime, attachment: Attachment) -> Result<(), Refusal> {
    let Attachment { options, replacements, prepare, attached } = attachment;
    let Ok(options) = tracer::options_from_environment(options) else {
        // The reason has been reported.
        journal::refused(environment::journal());
        return Ok(());
    };
    let jumps = Jumps::prepare(&replacements)?;
    let alone = environment::is_only_thread();
    let journal = environment::adjust(alone);
    let session = match tracer::start(options) {
        Ok(session) => session,
        Err(failure) => {
            // Any other reason has been reported.
            if failure == Failure::Memory {
                say(format_args!("there is not enough memory for a trace; not tracing"));
            }
            journal::refused(journal);
            return Ok(());
        }
    };
    journal::begin(&session, journal);
    let started = prepare(&session).and_then(|()| {
        jumps.write().map_err(|refusal| {
            report_refusal(runtime, "is not traced", &refusal);
            Failure::Off
        })
    });
    if started.is_err() {
        let _ = session.stop();
        return Ok(());
    }
    attached();
    if alone {
        endings::hook();
    }
    attached::record(Attached { runtime, session });
    Ok(())
}

fn report_refusal(runtime: &dyn Runtime, lacks: &str, refusal: &Refusal) {
    let name = runtime.name();
    say(format_args!("this {name} program {lacks}: {refusal}; it runs untouched"));
}
