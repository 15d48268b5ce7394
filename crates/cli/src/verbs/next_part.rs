//! `heaptap rotate`, `heaptap rate` and `heaptap budget`: a trace goes on in another file, or at another rate.

use std::ffi::{OsStr, OsString};

use clap::Args;
use heaptap_client::Process;
use heaptap_control::words::Words;
use heaptap_control::{Budgeted, Command, Rotated};
use heaptap_settings as settings;

use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::output::print;
use crate::text::escape;

/// Have a traced program go on in another file
///
/// The trace must be a series of files: the program was started by `heaptap run --rotate`, or with
/// `HEAPTAP_ROTATE` in its environment. All of its files are read as one trace.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap rotate 4711
  heaptap rotate server

Exit status:
  0  the program writes another file, which is named
  2  a wrong call, or a process that cannot be asked, or whose trace is one file")]
pub(crate) struct Rotate {
    /// The process: its number, or the name of its program if no other process that can be asked runs
    /// the same
    #[arg(value_name = "PID")]
    pid: OsString,
}

/// Change the rate at which a traced program is sampled
///
/// If the trace is a series of files (`heaptap rotate`), the next one begins, with the new rate. If it is
/// one file, samples at another rate than its own go into a file beside it, `FILE.series`, with which it is
/// read. Each sample counts by the rate at which it was taken. A budget ends (`heaptap budget`).
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap rate 4711 1e-4
  heaptap rate server 1e-6

Exit status:
  0  the file is named that the program writes from now on
  2  a wrong call, or a process that cannot be asked or is not traced")]
pub(crate) struct Rate {
    /// The process: its number, or the name of its program if no other process that can be asked runs
    /// the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The probability with which each allocated word is sampled from now on
    #[arg(value_name = "RATE", value_parser = rate)]
    rate: f64,
}

/// Have tracing cost no more than a share of the program's processor time
///
/// The program changes the rate by itself as it gets busy or quiet, up to the highest one that it was
/// started with (`heaptap run -r`), by default 1e-2. Each sample counts by the rate at which it was
/// taken: they are in the trace, or in a file beside it, `FILE.series`. A budget of `off` stays at the rate
/// of this moment.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap budget 4711 1%
  heaptap budget server 0.1%
  heaptap budget server off

Exit status:
  0  the program keeps the budget from now on
  2  a wrong call, or a process that cannot be asked or is not traced")]
pub(crate) struct Budget {
    /// The process: its number, or the name of its program if no other process that can be asked runs
    /// the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// What tracing may cost, from 0.01% to 50%, with the percent sign; or `off`
    #[arg(value_name = "PERCENT", value_parser = share)]
    budget: Share,
}

/// `None`: off.
#[derive(Clone, Copy, Debug)]
struct Share(Option<f64>);

fn share(text: &str) -> Result<Share, String> {
    if text == "off" {
        return Ok(Share(None));
    }
    let refused = || format!("not {}, nor `off`", settings::BUDGET.syntax);
    settings::budget(text).map(|share| Share(Some(share))).ok_or_else(refused)
}

fn rate(text: &str) -> Result<f64, String> {
    settings::RATE.number(text).map_err(|invalid| format!("not {}", invalid.expected))
}

impl Rotate {
    pub(crate) fn run(&self) -> VerbResult {
        go_on(&self.pid, &Command::Rotate)
    }
}

impl Rate {
    pub(crate) fn run(&self) -> VerbResult {
        go_on(&self.pid, &Command::Rate(self.rate))
    }
}

impl Budget {
    pub(crate) fn run(&self) -> VerbResult {
        // A share of 0.07 is not 7.000000000000001 per cent.
        let percent = |share: f64| (share * 1e6).round() / 1e4;
        let command = Command::Budget(self.budget.0.map(percent));
        let Budgeted { file, rate, budget } = ask(&self.pid, &command)?;
        let kept = match budget {
            0.0 => "no budget".to_owned(),
            budget => format!("budget {}%", percent(budget)),
        };
        let line = format!("{}: {kept}, now at rate {rate}\n", escape::path(&file));
        print(line.as_bytes())?;
        Ok(Verdict::Sound)
    }
}

/// Prints the file that the program goes on in.
fn go_on(process: &OsStr, command: &Command) -> VerbResult {
    let Rotated { file } = ask(process, command)?;
    print(format!("{}\n", escape::path(&file)).as_bytes())?;
    Ok(Verdict::Sound)
}

fn ask<A: for<'a> From<Words<'a>>>(process: &OsStr, command: &Command) -> Result<A, Failure> {
    let found = Process::find(process).map_err(|none| {
        let name = escape::path(process.as_ref());
        Failure::Trouble(format!("{name}: {none}; `heaptap snapshot` lists them"))
    })?;
    found.ask(command, || ()).map_err(|error| {
        let name = escape::path(found.name().as_ref()).to_string();
        Failure::Trouble(format!("process {} ({name}): {error}", found.pid()))
    })
}
