//! `heaptap stop`: ends the trace of a running program.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use heaptap_control::{Command, StopRequest};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::output::print;
use crate::io::running;

/// End the trace of a running program
///
/// The program runs on, as if it had never been traced. A later `heaptap start` begins another
/// trace.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap stop 4711
  heaptap stop server --timeout 60

Exit status:
  0  the trace is complete
  2  a wrong call, a process that cannot be asked or is not traced, or the trace goes on")]
pub(crate) struct Stop {
    /// The process: its number, or the name of its program if no other process that can be asked
    /// runs the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The longest wait, in seconds, until the program can be interrupted: such as 60 or 0.5, at most
    /// 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = running::timeout)]
    timeout: Duration,
}

impl Stop {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let command = Command::Stop(StopRequest { wait: Some(self.timeout) });
        let recorded = running::is_recording(process);
        let stopped = running::ask(process, &command, "the trace was not ended")?;
        print(running::summary(&stopped, recorded).as_bytes())?;
        Ok(Verdict::Sound)
    }
}
