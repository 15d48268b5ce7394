//! Has a program take commands: by its socket, or by loading the library into it.

use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use heaptap_client::{AskError, CallFilter, Process};
use heaptap_control::{Command, Status};
use heaptap_inject::{Injection, Refusal, clear, inject};

use super::interruption::Interruption;
use super::words::of_process;
use crate::exit_status::Failure;
use crate::io::library;
use crate::io::notices::say;
use crate::text::escape;

/// The function of the library that opens the control socket.
const ENTRY: &str = "heaptap_attached_listen";

/// This version, which is the library's.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How long a socket may take to answer that has just been opened.
const OPENING: Duration = Duration::from_secs(5);

/// Another attach may be under way, which is over within a moment.
const OTHER_ATTACH: Duration = Duration::from_secs(2);

const PACE: Duration = Duration::from_millis(20);

/// What loading the library has left in the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    /// Code that nobody uses, behind the program's own.
    UnusedCode,
}

impl Left {
    /// Clears it away, when the trace has ended.
    pub(crate) fn clear(self, process: Process) {
        let Ok(pid) = i32::try_from(process.pid()) else { return };
        if self == Left::UnusedCode && process.is_running() && !clear(pid) && process.is_running() {
            say(&of_process(
                process,
                "a few hundred bytes that nobody uses are left behind its code; the next attach clears \
                 them away",
            ));
        }
    }
}

/// The program takes commands, and is not traced.
pub(crate) fn ensure(
    process: Process,
    timeout: Duration,
    despite_filter: bool,
    interruption: &Interruption,
) -> Result<Left, Failure> {
    if let Some(status) = status(process)? {
        return check(process, &status).map(|()| Left::Nothing);
    }
    check_filter(process, despite_filter)?;
    let left = match load(process, timeout, interruption) {
        Ok(left) => left,
        // Another attach may have been faster.
        Err(refusal) => {
            return match status(process) {
                Ok(Some(status)) => check(process, &status).map(|()| Left::Nothing),
                _ => Err(refusal),
            };
        }
    };
    let deadline = Instant::now() + OPENING;
    loop {
        match status(process)? {
            Some(status) => return check(process, &status).map(|()| left),
            None if Instant::now() > deadline => {
                let what = "heaptap's library is loaded into it, but its control socket is not \
                            found: is its runtime directory in a place that cannot be seen from here?";
                return Err(Failure::Trouble(of_process(process, what)));
            }
            None => thread::sleep(PACE),
        }
    }
}

/// What it says of itself; `None` if it takes no commands.
pub(crate) fn status(process: Process) -> Result<Option<Status>, Failure> {
    match process.ask(&Command::Status, || {}) {
        Ok(status) => Ok(Some(status)),
        Err(AskError::Unanswered(_) | AskError::NotListening) if !process.is_running() => {
            Err(Failure::Trouble(of_process(process, "it has ended")))
        }
        // What is in the way of one of another user is said when it is attached to.
        Err(AskError::NotListening | AskError::OtherUser(_)) => Ok(None),
        Err(error) => {
            let why = error.to_string();
            Err(Failure::Trouble(of_process(process, &escape::path(why.as_ref()).to_string())))
        }
    }
}

/// Refuses a program that is traced, or that listens and cannot be.
fn check(process: Process, status: &Status) -> Result<(), Failure> {
    let pid = process.pid();
    let refused = |what: String| Err(Failure::Trouble(of_process(process, &what)));
    if status.version != VERSION {
        let version = escape::path(status.version.as_ref()).to_string();
        return refused(format!(
            "heaptap {version} is loaded into it, and this is {VERSION}: use that one, or start the \
             program again"
        ));
    }
    if status.state == "tracing" {
        return refused(format!(
            "it is traced already, into {}; `heaptap stop {pid}` ends that",
            escape::path(&status.trace)
        ));
    }
    match status.sessions.strip_prefix("no: ") {
        Some(why) => refused(escape::path(why.as_ref()).to_string()),
        None => Ok(()),
    }
}

/// Refuses a program that the system may kill for what the library does.
fn check_filter(process: Process, despite_filter: bool) -> Result<(), Failure> {
    let what = match process.call_filter() {
        CallFilter::None => return Ok(()),
        CallFilter::Some if despite_filter => return Ok(()),
        CallFilter::Some => {
            "it has a filter of system calls (seccomp), which may kill it for what the library does: for that of a \
             container, which only fails calls, give --despite-seccomp; otherwise start it without the filter"
        }
        CallFilter::Strict => {
            "it may make almost no system calls (seccomp), so that no library can be loaded: start it without that"
        }
    };
    Err(Failure::Trouble(of_process(process, what)))
}

/// Loads the library into it, and has it open its socket.
fn load(process: Process, timeout: Duration, interruption: &Interruption) -> Result<Left, Failure> {
    let library = library::find()?;
    let pid = i32::try_from(process.pid());
    let pid = pid.map_err(|_| Failure::Trouble(of_process(process, "there is no such process")))?;
    let injection = Injection {
        library: Path::new(&library),
        entry: ENTRY,
        argument: VERSION,
        timeout,
        cancelled: interruption.flag(),
    };
    let begin = Instant::now();
    let outcome = loop {
        let outcome = said_when_it_takes_long(process, timeout, || inject(pid, &injection));
        let is_busy = matches!(outcome, Err(Refusal::Busy { .. } | Refusal::Unfinished));
        if !is_busy || begin.elapsed() > OTHER_ATTACH || interruption.has_come() {
            break outcome;
        }
        thread::sleep(PACE);
    };
    interruption.check("no trace was started, and nothing in the program has changed")?;
    match outcome {
        Ok(injected) if injected.result == 0 => {
            Ok(if injected.restored { Left::Nothing } else { Left::UnusedCode })
        }
        Ok(injected) => {
            let what = format!("it cannot be attached to: {}", injected.answer);
            Err(Failure::Trouble(of_process(process, &what)))
        }
        Err(Refusal::UnknownLayout { .. }) if process.has_mapped("libheaptap") => {
            let what = "heaptap's library is in it already, and takes no commands: start it by \
                        `heaptap run --listen`";
            Err(Failure::Trouble(of_process(process, what)))
        }
        Err(refusal) => Err(Failure::Trouble(of_process(process, &refusal.to_string()))),
    }
}

/// Says what is waited for, if that takes long.
fn said_when_it_takes_long<T>(process: Process, timeout: Duration, work: impl FnOnce() -> T) -> T {
    const LONG: Duration = Duration::from_secs(1);
    let (done, is_done) = channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            if is_done.recv_timeout(LONG) == Err(RecvTimeoutError::Timeout) {
                say(&of_process(
                    process,
                    &format!(
                        "waiting for it to allocate, up to {} s (Ctrl-C gives up)",
                        timeout.as_secs_f64()
                    ),
                ));
            }
        });
        let outcome = work();
        drop(done);
        outcome
    })
}
