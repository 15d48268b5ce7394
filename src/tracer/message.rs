//! Messages to the user: one line each, on standard error.

use std::fmt::Arguments;
use std::io::Write;

use crate::sys::write_signals::without_write_signals;

/// Prints a message, with the program's name in front, in one write. A closed
/// standard error is ignored.
pub(crate) fn say(message: Arguments<'_>) {
    let line = format!("heaptap: {message}\n");
    // Also if nobody reads standard error any more.
    let _ = without_write_signals(|| std::io::stderr().write_all(line.as_bytes()));
}
