//! A running program that takes commands: it is found, and asked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_client::{AskError, NotFound, Process};
use heaptap_control::words::Words;
use heaptap_control::{Command, MAX_WAIT_SECONDS, seconds};

use crate::exit_status::Failure;
use crate::text::escape;

/// The process with this number, or the one that takes commands and runs a program of this name.
pub(crate) fn find(process: &OsStr) -> Result<Process, Failure> {
    Process::find(process).map_err(|none| {
        Failure::Trouble(match none {
            NotFound::Number(_) => none.to_string(),
            NotFound::Name | NotFound::Several(_) => {
                format!("{}: {none}; `heaptap ps` lists them", escape::path(process.as_ref()))
            }
        })
    })
}

/// Asks it. `lacks` says what has not happened then, such as "no trace was started".
pub(crate) fn ask<A: for<'a> From<Words<'a>>>(
    process: Process,
    command: &Command,
    lacks: &str,
) -> Result<A, Failure> {
    let pid = process.pid();
    process.ask(command, || {}).map_err(|error| {
        let why = match &error {
            AskError::Ended => return Failure::Trouble(NotFound::Number(pid).to_string()),
            AskError::Refused(why) => format!("{lacks}: {}", escape::path(why.as_ref())),
            AskError::Unanswered(_) => {
                format!("{error}; it is not known whether {lacks}: is it stopped, or does it end?")
            }
            _ => error.to_string(),
        };
        let name = process.name();
        Failure::Trouble(format!("process {pid} ({}): {why}", escape::path(name.as_ref())))
    })
}

/// An absolute name: the program may be in another directory.
pub(crate) fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    if matches!(file.as_os_str().as_encoded_bytes(), b"" | b"-") {
        let message = "-o: the program writes the file: give it a name";
        return Err(Failure::Trouble(message.into()));
    }
    std::path::absolute(file).map_err(|error| {
        Failure::Trouble(format!(
            "the current directory is unknown: {error}; give an absolute name with -o"
        ))
    })
}

/// The value of `--timeout`.
pub(crate) fn timeout(text: &str) -> Result<Duration, String> {
    seconds(text).filter(|wait| !wait.is_zero()).ok_or_else(|| {
        format!("expected seconds above 0 and up to {MAX_WAIT_SECONDS}, such as 60 or 0.5")
    })
}
