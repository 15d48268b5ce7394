//! Why the program could not be started, and the exit status that shells use for it.
//!
//! 127: there is no such program. 126: it exists, but cannot be executed (POSIX, *Shell
//! Command Language*, 2.8.2). 2 is left for calls of `heaptap` that are wrong and for
//! a system without processes or memory to spare.

use std::ffi::OsStr;
use std::io;

use rustix::io::Errno;

use crate::exit_status::Failure;
use crate::io::executable::locate;

const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

/// The failure for a program that `spawn` did not start.
pub(super) fn not_started(program: &OsStr, error: &io::Error) -> Failure {
    let shown = crate::text::escape::path(program.as_ref());
    let path = locate(program).filter(|path| path.symlink_metadata().is_ok());
    let status = |status, reason: &str| Failure::NotStarted {
        message: format!("{shown} cannot be started: {reason}"),
        status,
    };
    match (Errno::from_io_error(error), path) {
        (Some(Errno::AGAIN | Errno::NOMEM | Errno::MFILE), _) => {
            Failure::Trouble(format!("{shown} cannot be started: {error}"))
        }
        (Some(Errno::NOENT), None) if program.as_encoded_bytes().contains(&b'/') => {
            status(NOT_FOUND, "there is no such file")
        }
        (Some(Errno::NOENT), None) => {
            status(NOT_FOUND, "it is in no directory of PATH; give its path")
        }
        (Some(Errno::NOENT), Some(_)) => status(
            NOT_EXECUTABLE,
            "its interpreter does not exist: see its first line, or the loader that `file` shows",
        ),
        (Some(Errno::NOTDIR), _) => status(NOT_FOUND, &error.to_string()),
        (Some(Errno::ACCESS), Some(path)) if path.is_dir() => {
            status(NOT_EXECUTABLE, "it is a directory")
        }
        (Some(Errno::NOEXEC), _) => status(
            NOT_EXECUTABLE,
            "it is neither a program for this machine nor a script that begins with #!",
        ),
        _ => status(NOT_EXECUTABLE, &error.to_string()),
    }
}
