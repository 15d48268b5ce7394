//! A program that is started for the diagnosis: by `heaptap run`, so that it is traced from its first allocation, with
//! its own input, output and signals.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use heaptap_report::diagnosis::Evidence;
use heaptap_settings::file_name;
use rustix::process::{Pid, Signal, kill_process};

use super::folder::Folder;
use super::options::WatchOptions;
use super::session::Session;
use super::watch::{Schedule, Watch, Watched, writer_of};
use crate::exit_status::Failure;
use crate::io::attaching::interruption::Interruption;
use crate::text::escape;

const RATE: f64 = 1e-3;
const PACE: Duration = Duration::from_millis(50);

/// How long a program may take to end after it was asked to.
const ENDING: Duration = Duration::from_secs(10);

/// Runs the program, and watches it. Also returns what became of it.
pub(super) fn watch(
    program: &[OsString],
    options: &WatchOptions,
    folder: &Folder,
    interruption: &Interruption,
) -> Result<(Evidence, Vec<String>), Failure> {
    let trace = folder.free_name("trace", "ctf");
    let last = folder.free_name("snapshot-at-exit", "heap");
    let mut child = start(program, options, &trace, &last)?;
    let begin = Instant::now();
    let found = loop {
        if let Some(process) = writer_of(&trace) {
            break Some(process);
        }
        if has_ended(&mut child) || interruption.has_come() {
            break None;
        }
        thread::sleep(PACE);
    };
    let schedule = match options.span {
        Some(span) => Schedule::Until(span.saturating_sub(begin.elapsed())),
        None => Schedule::ToTheEnd,
    };
    let (mut watched, closing) = match found {
        Some(process) => {
            let session = Session::of_launched(options, process, trace.clone());
            let watch = Watch::new(&session, folder, options, schedule);
            watch.run(interruption, || {
                session.end();
                end(&mut child, process.is_running())
            })
        }
        None => {
            let is_running = !has_ended(&mut child);
            (Watched::ended(!is_running), end(&mut child, is_running))
        }
    };
    if last.is_file() {
        watched.add(&last, &options.types);
    }
    if !trace.is_file() {
        return Err(Failure::Trouble(format!("{closing}; it was not traced")));
    }
    let mut evidence = watched.evidence(Some(&trace));
    evidence.is_running = false;
    Ok((evidence, vec![closing]))
}

/// Starts `heaptap run` with the program.
fn start(
    program: &[OsString],
    options: &WatchOptions,
    trace: &Path,
    last: &Path,
) -> Result<Child, Failure> {
    let own = std::env::current_exe().map_err(|error| {
        Failure::Trouble(format!("this program is not found, to run another: {error}"))
    })?;
    let mut command = Command::new(own);
    command.args(["run", "--quiet", "--keep-status", "--snapshot", "exit", "--snapshot-file"]);
    command.arg(file_name::literal(last.as_os_str()));
    command.arg("-o").arg(file_name::literal(trace.as_os_str()));
    command.arg("-r").arg(options.rate.unwrap_or(RATE).to_string());
    command.arg("--").args(program);
    command
        .spawn()
        .map_err(|error| Failure::Trouble(format!("the program is not started: {error}")))
}

fn has_ended(child: &mut Child) -> bool {
    !matches!(child.try_wait(), Ok(None))
}

/// Ends the program if it runs, and says what became of it. `was_running`: if not, `heaptap run` only has its closing
/// words to say.
fn end(child: &mut Child, was_running: bool) -> String {
    if was_running {
        ask_to_end(child);
    }
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return became(status, was_running),
            Ok(None) if begin.elapsed() < ENDING => thread::sleep(PACE),
            Ok(None) => return "The program still runs: it does not end by SIGTERM".to_owned(),
            Err(error) => {
                let why = error.to_string();
                return format!("The program was lost sight of: {}", escape::path(why.as_ref()));
            }
        }
    }
}

/// `heaptap run` passes the signal on.
fn ask_to_end(child: &Child) {
    if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // It may have ended meanwhile.
        let _ = kill_process(pid, Signal::TERM);
    }
}

fn became(status: ExitStatus, was_asked: bool) -> String {
    let when = if was_asked { ", asked to by SIGTERM when the time was up" } else { "" };
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("The program ended with status {code}{when}"),
        (None, Some(signal)) => format!("The program was ended by signal {signal}{when}"),
        (None, None) => format!("The program ended{when}"),
    }
}
