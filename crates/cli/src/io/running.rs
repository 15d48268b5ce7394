//! A running program that takes commands: it is found, and asked.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use heaptap_client::{AskError, NotFound, Process};
use heaptap_control::words::Words;
use heaptap_control::{Command, MAX_WAIT_SECONDS, Status, Stopped, seconds};
use heaptap_report::figures::units::{bytes, count};
use heaptap_settings::RATE;

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
            // It removes the name of its socket when it exits.
            AskError::NotListening | AskError::Unanswered(_) if !process.is_running() => {
                return Failure::Trouble(NotFound::Number(pid).to_string());
            }
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

/// Whether it keeps its trace in memory, as far as it says so.
pub(crate) fn is_recording(process: Process) -> bool {
    let status: Result<Status, _> = process.ask(&Command::Status, || {});
    status.is_ok_and(|status| status.state == "recording")
}

/// An absolute name: the program may be in another directory.
pub(crate) fn absolute(file: &Path) -> Result<PathBuf, Failure> {
    if matches!(file.as_os_str().as_encoded_bytes(), b"" | b"-") {
        let message = "-o: give the name of a file: the program writes it";
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

/// The value of `--for`.
pub(crate) fn span(text: &str) -> Result<Duration, String> {
    let expected = || "expected a time from 100ms to a year, such as 30s, 5m or 1h".to_owned();
    heaptap_settings::period(text).ok_or_else(expected)
}

/// The value of `--rate`.
pub(crate) fn rate(text: &str) -> Result<f64, String> {
    RATE.number(text).map_err(|invalid| format!("not {}", invalid.expected))
}

/// The line of a trace that has ended. `recorded`: it was kept in memory, and has the bytes that were
/// written when somebody asked.
pub(crate) fn summary(stopped: &Stopped, recorded: bool) -> String {
    let Stopped { file, bytes: size, samples, lost, words } = stopped;
    let size = match (recorded, *size) {
        (false, size) => format!("{} of file", bytes(size as f64)),
        (true, 0) => "kept in memory, nothing of it was written".to_owned(),
        (true, size) => format!("kept in memory, {} of recordings written", bytes(size as f64)),
    };
    let samples = count(*samples, "sampled word", "sampled words");
    let mut text = format!("{}: {samples}, {size}", escape::path(file));
    if *words > 0 {
        let allocated = bytes(*words as f64 * 8.0);
        text += &format!("; the program has allocated {allocated} meanwhile");
    }
    if *lost > 0 {
        text +=
            &format!("; {} lost, since the writer fell behind", count(*lost, "block", "blocks"));
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_what_was_lost() {
        let all = Stopped { file: "/t/a".into(), bytes: 2048, samples: 12, lost: 1, words: 1280 };
        let text = summary(&all, false);
        let expected = "/t/a: 12 sampled words, 2.0 KiB of file; the program has allocated 10.0 KiB \
                        meanwhile; 1 block lost, since the writer fell behind\n";
        assert_eq!(text, expected);
        let plain = summary(&Stopped { lost: 0, words: 0, ..all.clone() }, false);
        assert!(plain.ends_with("2.0 KiB of file\n"), "{plain}");
        let kept = summary(&Stopped { lost: 0, words: 0, ..all }, true);
        assert!(kept.ends_with("kept in memory, 2.0 KiB of recordings written\n"), "{kept}");
    }
}
