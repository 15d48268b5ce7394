//! `heaptap recorder`: has a flight recorder write what it has in memory.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_control::{Command, Recorded, RecorderRequest};
use heaptap_report::figures::units::bytes;

use crate::exit_status::{VerbResult, Verdict};
use crate::io::notices::say;
use crate::io::output::print;
use crate::io::running;
use crate::text::escape;

/// Write what a flight recorder has in memory
///
/// The program was started by `heaptap run --recorder`, or traced by `heaptap start --recorder`. It goes on
/// recording. The directory that is made has the last moments of the trace as a series of files, which
/// all verbs read as one trace.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap recorder 4711
  heaptap recorder server -o slow-request
  heaptap report slow-request

Exit status:
  0  the directory is written, and named on standard output
  1  only a part of what was in memory could be written
  2  a wrong call, a process that cannot be asked or does not record, or nothing could be written")]
pub(crate) struct Recorder {
    /// The process: its number, or the name of its program if no other process that can be asked runs
    /// the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The directory to make, which must not be there yet. By default it is called after the trace:
    /// `NAME.recording-1`, then `NAME.recording-2`, and so on
    #[arg(short, long, value_name = "DIRECTORY", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
}

impl Recorder {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let directory = self.output.as_deref().map(running::absolute).transpose()?;
        let command = Command::Recorder(RecorderRequest { directory });
        let recorded: Recorded = running::ask(process, &command, "nothing was written")?;
        let Recorded { directory, bytes: size, covered, cut_short } = recorded;
        let name = escape::path(&directory);
        print(format!("{name}: the last {covered:.1} s, {}\n", bytes(size as f64)).as_bytes())?;
        if cut_short.is_empty() {
            return Ok(Verdict::Sound);
        }
        let why = escape::path(cut_short.as_ref());
        say(&format!("{name}: what was before could not be written: {why}"));
        Ok(Verdict::Defective)
    }
}
