//! `heaptap start`: begins a trace of a running program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use heaptap_control::{Command, StartRequest, Started};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::output::print;
use crate::io::running;
use crate::io::trace_options::TraceOptions;
use crate::text::escape;

/// Begin a trace of a running program
///
/// The program must take commands: it was started by `heaptap run`, or with the library loaded and
/// `HEAPTAP_LISTEN=1` in its environment. Until it is asked, nothing in it is changed. Blocks that it
/// has allocated before are not in the trace.
///
/// `heaptap stop` ends the trace, and the program runs as it did before.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap start 4711
  heaptap start server -o leak.ctf -r 1e-4 --for 10m
  heaptap start server -o leak.ctf --budget 1%
  heaptap start server -o traces/server.ctf --rotate 100MB,24h --keep 20
  heaptap start 4711 -o '/var/tmp/%e-%p.ctf' --timeout 60
  heaptap start 4711 -o /var/tmp/server.ctf --recorder 30s

Exit status:
  0  the trace has begun
  2  a wrong call, a process that cannot be asked, or no trace could be started")]
pub(crate) struct Start {
    /// The process to trace: its number, or the name of its program if no other process
    /// that can be asked runs the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The trace, which the program writes, with `%p`, `%e` and `%t` as in `heaptap run`. A second
    /// trace of the same process does not replace the first: it gets a number behind its name
    #[arg(short, long, value_name = "FILE", default_value = "%e-%p.ctf")]
    #[arg(value_hint = ValueHint::FilePath)]
    output: PathBuf,

    #[command(flatten)]
    trace: TraceOptions,

    /// End the trace by itself after this time: such as 30s, 5m or 1h
    #[arg(long = "for", value_name = "TIME", value_parser = running::span)]
    span: Option<Duration>,

    /// The longest wait, in seconds, until the program can be interrupted: such as 60 or 0.5, at most
    /// 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = running::timeout)]
    timeout: Duration,
}

impl Start {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let file = running::absolute(&self.output)?;
        let (span, wait) = (self.span, Some(self.timeout));
        let request = StartRequest { file, span, wait, ..self.trace.request() };
        let command = Command::Start(request);
        let Started { file, rate } = running::ask(process, &command, "no trace was started")?;
        print(format!("{}: began, at rate {rate}\n", escape::path(&file)).as_bytes())?;
        Ok(Verdict::Sound)
    }
}
