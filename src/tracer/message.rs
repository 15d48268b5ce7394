//! What a person is told: one line on standard error.

use std::fmt::Arguments;
use std::io::Write;

/// Says something, in one write, with the program's name before it. If standard
/// error is gone, so be it.
pub(crate) fn say(what: Arguments<'_>) {
    let line = format!("heaptap: {what}\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
