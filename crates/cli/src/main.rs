//! The program `heaptap`: takes, inspects, checks and rewrites allocation traces.
//!
//! # The floors
//!
//! | floor | job | may use |
//! |---|---|---|
//! | [`verbs`] | one file or folder for each verb; a verb does not import another one | `analysis`, `io`, `text`, `exit_status` |
//! | [`analysis`] | what the analysing verbs share: the one reading of a trace, the options that select blocks and rows | `io`, `text`, `exit_status` |
//! | [`io`] | opening traces, files that appear only when complete, progress, messages about damage, rewriting traces | `text`, `exit_status` |
//! | [`text`] | the layout on a terminal, CSV, the web page | |
//! | [`exit_status`] | the result of a verb | |
//!
//! `tests/layers` at the top of the repository compares this table with the code.
//!
//! Traces are read leniently, and in bounded memory unless a module states what
//! it keeps. Every name printed from a trace goes through [`text::escape`] or
//! [`text::json`].

mod analysis;
mod exit_status;
mod io;
mod text;
mod verbs;

use std::process::ExitCode;

use clap::Parser;

use crate::exit_status::{exit_code, help_end};
use crate::io::notices::say;
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
    let result = Program::parse().verb.run();
    if let Err(failure) = &result
        && let Some(message) = failure.message()
    {
        say(message);
    }
    exit_code(&result)
}
