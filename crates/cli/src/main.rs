//! The program `heaptap`: takes, inspects, checks and rewrites allocation traces.
//!
//! The map:
//!
//! - [`verbs`]: one file or folder for each verb.
//! - [`io`]: opening traces, writing files that appear only when complete, the
//!   progress bar, messages about damage, and rewriting traces.
//! - [`text`]: escaping, JSON, units, the layout on a terminal.
//! - [`exit_status`]: how a run ends. [`aggregate`]: the one reading of a trace
//!   behind every analysing verb. [`filters`]: the options that select blocks.
//!
//! Traces are read leniently, and in bounded memory unless a module states what
//! it keeps. Every name printed from a trace goes through [`text::escape`] or
//! [`text::json`].

mod aggregate;
mod exit_status;
mod filters;
mod io;
mod text;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::exit_status::{conclude, help_end};
use crate::verbs::Verb;

/// Take, look at, check and rewrite allocation traces in the memtrace format
#[derive(Parser)]
#[command(name = "heaptap", version, subcommand_required = true, arg_required_else_help = true)]
#[command(after_help = help_end!(
    "  heaptap run -o trace.ctf -- ocamlopt.opt -c large.ml
  heaptap report trace.ctf
  heaptap info trace.ctf
  heaptap dump trace.ctf | less -S
  heaptap check trace.ctf
  heaptap help dump"
))]
struct Program {
    #[command(subcommand)]
    verb: Verb,
}

fn main() -> ExitCode {
    conclude(Program::parse().verb.run())
}
