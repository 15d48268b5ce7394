//! The program `heaptap`: looks at, checks and rewrites allocation traces.
//!
//! The map:
//!
//! - One file for each verb: [`run`], [`report`], [`leaks`], [`hot`], [`diff`],
//!   [`export`], [`info`], [`dump`], [`check`], [`recode`], [`thin`],
//!   [`anonymise`], [`man`], [`completions`]. A verb is a `clap` struct with its
//!   help, and a `run` that ends in an [`Ending`]. A further
//!   verb is one more file and one more line in [`Verb`].
//! - What they share: [`input`] opens traces, [`output`] writes files that appear
//!   when they are whole, [`notices`] says what damage cost, [`ending`] is the
//!   exit status, [`progress`] the bar on a terminal.
//! - What a trace says: [`gathering`] reads it for `heaptap-report`, [`selecting`]
//!   has the options that say which blocks count, [`page`] lays text out.
//! - From trace to trace: [`copy`] in the order of the file with its ids,
//!   [`renumber`] in the order of time with new ones, both through [`rewrite`],
//!   which knows what an encoder takes. [`life`] follows objects for `check`.
//! - Text: [`escape`] and [`json`] keep hostile names harmless, [`units`] are for
//!   people.
//!
//! Traces are read leniently, and in bounded memory unless a module says what it
//! keeps. What is printed of a trace goes through [`escape`] or [`json`].

mod anonymise;
mod check;
mod completions;
mod copy;
mod diff;
mod dump;
mod ending;
mod escape;
mod export;
mod gathering;
mod hot;
mod info;
mod input;
mod json;
mod leaks;
mod life;
mod man;
mod notices;
mod output;
mod page;
mod progress;
mod recode;
mod renumber;
mod report;
mod rewrite;
mod run;
mod selecting;
mod thin;
mod units;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::ending::{Ending, conclude, help_end};

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

/// What the program can do.
#[derive(Subcommand)]
enum Verb {
    Run(run::Run),
    Report(report::Report),
    Leaks(leaks::Leaks),
    Hot(hot::Hot),
    Diff(diff::Diff),
    Export(export::Export),
    Info(info::Info),
    Dump(dump::Dump),
    Check(check::Check),
    Recode(recode::Recode),
    Thin(thin::Thin),
    #[command(alias = "anonymize")]
    Anonymise(anonymise::Anonymise),
    Man(man::Man),
    Completions(completions::Completions),
}

impl Verb {
    fn run(&self) -> Ending {
        match self {
            Verb::Run(verb) => verb.run(),
            Verb::Report(verb) => verb.run(),
            Verb::Leaks(verb) => verb.run(),
            Verb::Hot(verb) => verb.run(),
            Verb::Diff(verb) => verb.run(),
            Verb::Export(verb) => verb.run(),
            Verb::Info(verb) => verb.run(),
            Verb::Dump(verb) => verb.run(),
            Verb::Check(verb) => verb.run(),
            Verb::Recode(verb) => verb.run(),
            Verb::Thin(verb) => verb.run(),
            Verb::Anonymise(verb) => verb.run(),
            Verb::Man(verb) => verb.run(),
            Verb::Completions(verb) => verb.run(),
        }
    }
}

fn main() -> ExitCode {
    conclude(Program::parse().verb.run())
}
