//! `heaptap run`: runs a program and traces it as it is.
//!
//! The library is loaded into the program through the environment, and attaches
//! itself there. What the program does with its input, its output, signals and
//! its exit status is its own affair; we only wait, and say at the end what was
//! traced.

mod closing;
mod executable;
mod library;
mod signals;

use std::ffi::{OsStr, OsString};
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};

use clap::{Args, ValueHint};

use crate::exit_status::{Ending, Failure, Verdict};
use crate::io::notices::say;

/// Run a program and trace its allocations
///
/// The program runs as it is: nothing is to be compiled or linked anew. It can be
/// any dynamically linked program of OCaml 4.12 to 4.14, 5.3 or 5.4, native or
/// bytecode, stripped or not, and a script that starts one. Other programs run
/// untraced, and a line says so.
///
/// At the end a line on standard error tells the file, the samples, the words
/// that the program allocated by estimate, and what was lost.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap run -- ./server --port 80
  heaptap run -o trace.ctf -r 1e-4 -- ocamlopt.opt -c large.ml
  heaptap run --follow -o 'traces/%e-%p.ctf' -- make

Exit status:
  0  as the program's own, whatever it is
  2  also: the program could not be started
  A program that a signal ends has us end by the same signal.")]
pub(crate) struct Run {
    /// The trace; `%p` stands for the process id, `%e` for the program's name,
    /// `%t` for the time
    #[arg(short, long, value_name = "FILE", default_value = "%e-%p.ctf", value_hint = ValueHint::FilePath)]
    output: OsString,

    /// How many of the words are sampled, from 1e-7 to 1
    #[arg(short, long, value_name = "RATE", default_value = "1e-5", value_parser = rate)]
    rate: f64,

    /// The most frames of a backtrace, the innermost ones. With `-r 1 --frames 1` each
    /// place has its exact number of words, and deep stacks cost nothing
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=262_144))]
    frames: Option<u32>,

    /// Trace the program's children too, each into its own file
    #[arg(long)]
    follow: bool,

    /// The same seed gives the same samples in the same program
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    seed: Option<u64>,

    /// The program and its arguments
    #[arg(value_name = "PROGRAM", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

fn rate(text: &str) -> Result<f64, String> {
    let rate = text.parse().ok().filter(|rate| (1e-7..=1.0).contains(rate));
    rate.ok_or_else(|| "a rate is a number from 1e-7 to 1".into())
}

impl Run {
    pub(crate) fn run(&self) -> Ending {
        let Some((program, arguments)) = self.command.split_first() else {
            return Err(Failure::Trouble("no program to run".into()));
        };
        let shown = program.display();
        if self.follow && !self.output.as_encoded_bytes().windows(2).any(|pair| pair == b"%p") {
            let message = "--follow needs a file for each process: put %p into its name".into();
            return Err(Failure::Trouble(message));
        }
        let library = library::find()?;
        let refusal = executable::why_not(program);
        let report = closing::Report::new()?;
        let mut command = Command::new(program);
        command.args(arguments);
        if let Some(why) = &refusal {
            say(&format!("{shown} is not traced: {why}"));
        } else {
            self.ask_for_a_trace(&mut command, &library, report.path().as_os_str());
        }
        let signals = signals::Passing::begin()
            .map_err(|error| Failure::Trouble(format!("signals cannot be passed on: {error}")))?;
        let mut child = command
            .spawn()
            .map_err(|error| Failure::Trouble(format!("{shown} cannot be started: {error}")))?;
        signals.pass_to(child.id());
        let status = child
            .wait()
            .map_err(|error| Failure::Trouble(format!("{shown} was lost sight of: {error}")))?;
        if refusal.is_none() {
            report.tell(&shown.to_string());
        }
        drop(report);
        end_like(status)
    }

    fn ask_for_a_trace(&self, command: &mut Command, library: &OsStr, report: &OsStr) {
        let mut preload = library.to_owned();
        if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
            preload.push(":");
            preload.push(others);
        }
        command.env("LD_PRELOAD", preload);
        command.env("HEAPTAP", &self.output);
        command.env("HEAPTAP_RATE", self.rate.to_string());
        command.env("HEAPTAP_REPORT", report);
        command.env_remove("HEAPTAP_FOLLOW");
        if self.follow {
            command.env("HEAPTAP_FOLLOW", "1");
        }
        if let Some(frames) = self.frames {
            command.env("HEAPTAP_FRAMES", frames.to_string());
        }
        if let Some(seed) = self.seed {
            command.env("HEAPTAP_SEED", seed.to_string());
        }
    }
}

/// Ends as the program did.
fn end_like(status: ExitStatus) -> Ending {
    if let Some(signal) = status.signal() {
        signals::end_by(signal);
    }
    match status.code() {
        Some(0) => Ok(Verdict::Sound),
        // What is left to do was done: nothing is open any more.
        Some(code) => std::process::exit(code),
        None => std::process::exit(2),
    }
}
