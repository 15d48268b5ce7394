//! From the library's constructor to a running session, and to a process that takes
//! commands, one of which may start a session later.

use std::sync::OnceLock;

use super::attached::{Attached, attached};
use super::refusal::Refusal;
use super::runtime::{Attachment, Detected, Runtime, detect};
use super::selection::{self, Choice, ProcessNames};
use super::{endings, environment, journal, late, limits, symbols};
use crate::control::{self, RuntimeSupport, Sessions, Settings};
use crate::sys::program;
use crate::tracer::{self, Failure, Options, say};

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
    if detected.as_ref().is_some_and(|detected| detected.runtime.is_running()) {
        // Loaded too late for what its environment asks for: `heaptap attach` says what it wants.
        return;
    }
    let names = ProcessNames::of_this_process();
    match (selection::choose(&names, detected.is_some()), detected) {
        (Choice::Taken, Some(detected)) => attach_or_wait(detected),
        (Choice::Taken, None) if environment::is_preloaded() => late::wait(known, attach),
        (Choice::Passed, Some(_)) => journal::passed(environment::journal(), names.shown()),
        (Choice::Wrapped(_), _) => journal::wrapped(environment::journal(), names.shown()),
        (Choice::Taken | Choice::Passed, None) => {}
    }
}

/// The runtime that is attached to once it has a heap.
static WAITED_FOR: OnceLock<&'static dyn Runtime> = OnceLock::new();

/// [`attach`], now or when the runtime has a heap.
fn attach_or_wait(mut detected: Detected) {
    if detected.supported.is_ok() {
        let _ = WAITED_FOR.set(detected.runtime);
        match detected.runtime.wait_for_heap(attach_to_heap) {
            Ok(true) => return,
            Ok(false) => {}
            Err(refusal) => detected.supported = Err(refusal),
        }
    }
    attach(detected);
}

fn attach_to_heap() {
    if let Some(&runtime) = WAITED_FOR.get() {
        attach(Detected { runtime, supported: Ok(()) });
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
    // Before the variables are removed.
    let settings = match Settings::from_environment() {
        Ok(settings) => settings,
        Err(invalid) => return refuse(runtime, &Refusal::Setting(invalid)),
    };
    let checked = supported.and_then(|()| check_process());
    if let Err(refusal @ Refusal::Limit(_)) = &checked {
        // Threads and preparations take some, too.
        return refuse(runtime, refusal);
    }
    let asks_for_trace = environment::asks_for_trace();
    let snapshots = checked.clone().and_then(|()| runtime.prepare_snapshots());
    if snapshots.is_ok() && settings.takes_snapshots() && !asks_for_trace {
        // Without it fewer moments are safe points. Before the functions are looked at.
        let _ = runtime.hook_polls();
    }
    let attachment = checked.and_then(|()| runtime.attach());
    let sessions = match attachment {
        Err(refusal) => {
            if asks_for_trace {
                refuse(runtime, &refusal);
            }
            Err(refusal)
        }
        Ok(None) => Err(Refusal::OtherCopy),
        Ok(Some(attachment)) if asks_for_trace => trace(runtime, attachment),
        Ok(Some(attachment)) => wait_for_sessions(runtime, attachment),
    };
    if !asks_for_trace {
        environment::adjust(environment::is_only_thread());
    }
    // Sessions begin and end at the safe points of snapshots.
    let sessions = snapshots.clone().and(sessions);
    let sessions = sessions.map(|attached| attached as &dyn Sessions);
    let sessions = sessions.map_err(|refusal| refusal.to_string());
    let refusal = snapshots.err().map(|refusal| refusal.to_string());
    control::start(&settings, RuntimeSupport { runtime: runtime.name(), refusal, sessions });
}

/// Attaches to the runtime of a program that runs, without a trace, and takes commands. An error says
/// why it does not; then nothing of the program has changed.
///
/// On a thread that holds the runtime's lock, where [`Runtime::is_running`] says.
pub(crate) fn while_running(known: Known) -> Result<(), String> {
    if let Some(attached) = attached() {
        let listens = control::listens()?;
        return if listens { Ok(()) } else { Err(attached_before(attached)) };
    }
    let detected = detect(known.iter().copied(), &symbols::lookup);
    let Detected { runtime, supported } =
        detected.ok_or("no runtime that heaptap knows is visible in it")?;
    supported.map_err(|refusal| refusal.to_string())?;
    if !runtime.is_running() {
        return Err("its runtime cannot be attached to while it runs: start the program by \
                    `heaptap run --listen`"
            .into());
    }
    // Before anything is changed.
    let socket = control::OpenSocket::open()?;
    match attach_late(runtime) {
        Ok(support) => socket.serve(support),
        Err(refusal) => {
            socket.abandon();
            Err(refusal.to_string())
        }
    }
}

/// Why a program is not attached to again.
fn attached_before(attached: &Attached) -> String {
    match attached.session() {
        Some(session) => format!(
            "it is traced already, into {}, and takes no commands: start it by `heaptap run`, \
             which has it listen",
            session.file().display()
        ),
        None => "heaptap's library is in it already, and takes no commands: start it by \
                 `heaptap run --listen`"
            .to_owned(),
    }
}

/// Everything that may fail comes first.
fn attach_late(runtime: &'static dyn Runtime) -> Result<RuntimeSupport, Refusal> {
    environment::check_all().map_err(Refusal::Setting)?;
    check_process()?;
    let mut attachment = runtime.attach()?.ok_or(Refusal::OtherCopy)?;
    let options = tracer::settings_from_environment(attachment.options);
    attachment.options = options.map_err(|_| Refusal::Settings)?;
    let ready = Attached::prepare_record(runtime, attachment)?;
    runtime.prepare_snapshots()?;
    if let Some(program) = runtime.interpreted() {
        program::set_interpreted(program);
    }
    tracer::prepare();
    let sessions = Ok(ready.record() as &dyn Sessions);
    Ok(RuntimeSupport { runtime: runtime.name(), refusal: None, sessions })
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

/// Makes the runtime ready for sessions that are asked for while the program runs. Changes nothing.
fn wait_for_sessions(
    runtime: &'static dyn Runtime,
    mut attachment: Attachment,
) -> Result<&'static Attached, Refusal> {
    let Ok(options) = tracer::settings_from_environment(attachment.options) else {
        // The reason has been reported.
        return Err(Refusal::Settings);
    };
    attachment.options = options;
    tracer::prepare();
    Attached::record(runtime, attachment)
}

/// Makes the runtime ready for sessions, and starts the first. If that fails, the runtime runs
/// unmodified; the reason is reported.
fn trace(
    runtime: &'static dyn Runtime,
    mut attachment: Attachment,
) -> Result<&'static Attached, Refusal> {
    let Ok(options) = tracer::options_from_environment(attachment.options) else {
        // The reason has been reported.
        journal::refused(environment::journal());
        return Err(Refusal::Settings);
    };
    attachment.options = options.clone();
    let attached = Attached::record(runtime, attachment);
    match &attached {
        Ok(attached) => begin(attached, options),
        Err(refusal) => refuse(runtime, refusal),
    }
    attached
}

/// Starts the session, then patches the runtime. If a step fails after the
/// session has started, the session is stopped.
fn begin(attached: &'static Attached, options: Options) {
    let alone = environment::is_only_thread();
    let journal = environment::adjust(alone);
    let (labels, probes) = (attached.labels.clone(), attached.probes.clone());
    let session = match tracer::start_sharing(options, labels, probes) {
        Ok(session) => session,
        Err(error) => {
            if error.report() == Failure::Memory {
                say(format_args!("there is not enough memory for a trace; not tracing"));
            }
            return journal::refused(journal);
        }
    };
    journal::begin(&session, journal);
    let started = attached.prepare(&session).and_then(|()| {
        attached.begin().map_err(|refusal| {
            report_refusal(attached.runtime, "is not traced", &refusal);
            Failure::Off
        })
    });
    if started.is_err() {
        attached.hooks.release();
        let _ = session.stop();
    } else if alone {
        endings::hook();
    }
}

fn report_refusal(runtime: &dyn Runtime, lacks: &str, refusal: &Refusal) {
    let name = runtime.name();
    say(format_args!("this {name} program {lacks}: {refusal}; it runs untouched"));
}
