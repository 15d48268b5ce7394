//! `heaptap flush`: has a running program write its trace.

use std::ffi::OsString;

use clap::Args;
use heaptap_control::{Command, Flushed};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::running;

/// Have a running program write everything recorded so far to its trace
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap flush 4711

Exit status:
  0  everything is in the file
  2  a wrong call, or a process that cannot be asked or is not traced")]
pub(crate) struct Flush {
    /// The process: its number, or the name of its program if no other process that can be asked
    /// runs the same
    #[arg(value_name = "PID")]
    pid: OsString,
}

impl Flush {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let Flushed {} = running::ask(process, &Command::Flush, "the trace was not written")?;
        Ok(Verdict::Sound)
    }
}
