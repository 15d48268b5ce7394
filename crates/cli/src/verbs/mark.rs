//! `heaptap mark`: adds a line to the log of a trace.

use std::ffi::OsString;

use clap::Args;
use heaptap_control::{Command, Marked};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::running;

/// Add a line to the log of a running program's trace
///
/// The line has the time at which it was added, and is shown where the log of the program's own is:
/// `heaptap probes`, the time line of the page. So a trace says when something was done from outside, such as a
/// deployment.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap mark 4711 'cache switched off'

Exit status:
  0  the line was added
  2  a wrong call, or a process that cannot be asked or is not traced")]
pub(crate) struct Mark {
    /// The process: its number, or the name of its program if no other process that can be asked
    /// runs the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The line, of at most 1024 bytes
    #[arg(value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    text: String,
}

impl Mark {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let command = Command::Mark(self.text.clone().into());
        let Marked {} = running::ask(process, &command, "nothing was marked")?;
        Ok(Verdict::Sound)
    }
}
