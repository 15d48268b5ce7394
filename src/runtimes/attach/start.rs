//! From the library's constructor to a running session.

use super::attached::{self, Attached};
use super::patch::Jumps;
use super::refusal::Refusal;
use super::runtime::{Attachment, Detected, Runtime, detect};
use super::{endings, environment, late, memory_limit, report, symbols};
use crate::tracer::{self, Failure, say};

/// The runtimes that are looked for.
pub(crate) type Known = &'static [&'static dyn Runtime];

/// Attaches to the runtime in this program, or, if the library was preloaded, to
/// the first that the program loads. Does nothing unless the environment asks for
/// a trace. A program that links this library and uses the C ABI is left alone.
///
/// Before `main`.
pub(crate) fn at_load(known: Known) {
    if !environment::asks_for_trace() {
        return;
    }
    match detect(known.iter().copied(), &symbols::lookup) {
        Some(detected) => attach(detected),
        None if environment::is_preloaded() => late::wait(known, attach),
        None => {}
    }
}

/// Attaches to a runtime that was detected. A refusal is reported to the user.
fn attach(detected: Detected) {
    let Detected { runtime, supported } = detected;
    let attached = supported
        .and_then(|()| check_process())
        .and_then(|()| runtime.attach())
        .and_then(|attachment| match attachment {
            Some(attachment) => begin(runtime, attachment),
            None => Ok(()),
        });
    if let Err(refusal) = attached {
        report_refusal(runtime, &refusal);
        report::refused(environment::report_file());
    }
}

/// Refuses a process whose variables are wrong, or that has no memory to spare.
fn check_process() -> Result<(), Refusal> {
    environment::check().map_err(Refusal::Setting)?;
    memory_limit::too_tight().map_or(Ok(()), |little| Err(Refusal::Memory(little)))
}

/// Starts the session, then patches the runtime. If a step fails after the
/// session has started, the session is stopped and the runtime runs unmodified.
fn begin(runtime: &'static dyn Runtime, attachment: Attachment) -> Result<(), Refusal> {
    let Attachment { options, replacements, prepare, attached } = attachment;
    let Ok(options) = tracer::options_from_environment(options) else {
        // The reason has been reported.
        report::refused(environment::report_file());
        return Ok(());
    };
    let mut jumps = Jumps::prepare(&replacements)?;
    let alone = environment::is_only_thread();
    let report = environment::adjust(alone);
    let session = match tracer::start(options) {
        Ok(session) => session,
        Err(failure) => {
            // Any other reason has been reported.
            if failure == Failure::Memory {
                say(format_args!("there is not enough memory for a trace; not tracing"));
            }
            report::refused(report);
            return Ok(());
        }
    };
    report::begin(&session, report.clone());
    let started = prepare(&session).and_then(|()| {
        jumps.write().map_err(|refusal| {
            report_refusal(runtime, &refusal);
            Failure::Off
        })
    });
    if started.is_err() {
        let _ = session.stop();
        return Ok(());
    }
    attached();
    if alone {
        endings::follow(report.as_deref());
    }
    attached::record(Attached { runtime, session });
    Ok(())
}

fn report_refusal(runtime: &dyn Runtime, refusal: &Refusal) {
    let name = runtime.name();
    say(format_args!("this {name} program is not traced: {refusal}; it runs untouched"));
}
