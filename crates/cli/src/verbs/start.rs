//! `heaptap start`: begins a trace of a running program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use heaptap_control::{Command, StartRequest, Started};
use heaptap_settings::{self as settings, RATE, Recorder, Rotation};

use crate::exit_status::{VerbResult, Verdict};
use crate::io::output::print;
use crate::io::running;
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
  heaptap start server -o leak.ctf -r 1e-4
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

    /// The probability with which each allocated word is sampled (a number from 1e-7 to 1).
    /// Default: that of the program's settings, 1e-5
    #[arg(short, long, value_name = "RATE", value_parser = rate)]
    rate: Option<f64>,

    /// What the trace may cost, from 0.01% to 50% of the program's processor time, such as 1%: the
    /// rate changes as the program does, and `--rate` is the highest one, by default 1e-2
    #[arg(long, value_name = "PERCENT", value_parser = budget)]
    budget: Option<f64>,

    /// Go on in another file before the trace has this size, or after this time, as in `heaptap run`:
    /// such as 100MB,24h
    #[arg(long, value_name = "WHEN", value_parser = rotation)]
    rotate: Option<String>,

    /// The most files of a series that are kept, those of earlier traces in the directory too.
    /// Default: that of the program's settings, 20
    #[arg(long, value_name = "N", value_parser = keep)]
    keep: Option<u64>,
    /// Keep the last of the trace in memory, and write it when `heaptap recorder` asks, or the program
    /// dies: as `heaptap run --recorder`
    #[arg(long, value_name = "TIME", value_parser = recorder)]
    recorder: Option<String>,

    /// The longest wait, in seconds, until the program can be interrupted: such as 60 or 0.5, at most
    /// 3600
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = running::timeout)]
    timeout: Duration,
}

fn rate(text: &str) -> Result<f64, String> {
    RATE.number(text).map_err(|invalid| format!("not {}", invalid.expected))
}

/// In per cent.
fn budget(text: &str) -> Result<f64, String> {
    let share = settings::budget(text);
    let share = share.ok_or_else(|| format!("not {}", settings::BUDGET.syntax))?;
    Ok((share * 1e6).round() / 1e4)
}

fn rotation(text: &str) -> Result<String, String> {
    let parsed = Rotation::parse(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::ROTATE.syntax))
}

fn keep(text: &str) -> Result<u64, String> {
    settings::KEEP.integer(text).map_err(|invalid| format!("not {}", invalid.expected))
}

/// What is kept in memory, as it is typed.
fn recorder(text: &str) -> Result<String, String> {
    let parsed = Recorder::parse(text);
    parsed.map(|_| text.to_owned()).ok_or_else(|| format!("not {}", settings::RECORDER.syntax))
}

impl Start {
    pub(crate) fn run(&self) -> VerbResult {
        let process = running::find(&self.pid)?;
        let file = running::absolute(&self.output)?;
        let request = StartRequest {
            file,
            rate: self.rate,
            budget: self.budget,
            rotate: self.rotate.clone(),
            keep: self.keep,
            recorder: self.recorder.clone(),
            wait: Some(self.timeout),
        };
        let command = Command::Start(request);
        let Started { file, rate } = running::ask(process, &command, "no trace was started")?;
        print(format!("{}: began, at rate {rate}\n", escape::path(&file)).as_bytes())?;
        Ok(Verdict::Sound)
    }
}
