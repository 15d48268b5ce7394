//! `heaptap rotate` and `heaptap rate`: a program that is traced goes on in another file.

use std::ffi::{OsStr, OsString};

use clap::Args;
use heaptap_client::Process;
use heaptap_control::{Command, Rotated};
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
/// The trace must be a series of files (`heaptap rotate`), of which the next one begins, with the new
/// rate. Each sample counts by the rate at which it was taken.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap rate 4711 1e-4
  heaptap rate server 1e-6

Exit status:
  0  the program writes another file, which is named
  2  a wrong call, or a process that cannot be asked, or whose trace is one file")]
pub(crate) struct Rate {
    /// The process: its number, or the name of its program if no other process that can be asked runs
    /// the same
    #[arg(value_name = "PID")]
    pid: OsString,

    /// The probability with which each allocated word is sampled from now on
    #[arg(value_name = "RATE", value_parser = rate)]
    rate: f64,
}

fn rate(text: &str) -> Result<f64, String> {
    settings::RATE.number(text).map_err(|invalid| format!("not {}", invalid.expected))
}

impl Rotate {
    pub(crate) fn run(&self) -> VerbResult {
        ask(&self.pid, &Command::Rotate)
    }
}

impl Rate {
    pub(crate) fn run(&self) -> VerbResult {
        ask(&self.pid, &Command::Rate(self.rate))
    }
}

fn ask(process: &OsStr, command: &Command) -> VerbResult {
    let found = Process::find(process).map_err(|none| {
        let name = escape::path(process.as_ref());
        Failure::Trouble(format!("{name}: {none}; `heaptap snapshot` lists them"))
    })?;
    let rotated: Rotated = found.ask(command, || ()).map_err(|error| {
        let name = escape::path(found.name().as_ref()).to_string();
        Failure::Trouble(format!("process {} ({name}): {error}", found.pid()))
    })?;
    print(format!("{}\n", escape::path(&rotated.file)).as_bytes())?;
    Ok(Verdict::Sound)
}
