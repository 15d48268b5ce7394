//! Messages to the user: one line each, on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Prints a message, with the program's name in front, in one write. A closed
/// standard error is ignored.
pub(crate) fn say(message: Arguments<'_>) {
    let line = format!("heaptap: {message}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
