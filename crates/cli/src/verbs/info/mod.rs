//! `heaptap info`: what a trace is about, and where its bytes go.

mod facts;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_trace::Mode;

use crate::exit_status::{VerbResult, help_end};
use crate::io::input::Input;
use crate::io::lifecycle::Lives;
use crate::io::output::{print, print_json};

use facts::Facts;

/// Show what a trace is about: program, times, counts, and where its bytes go
///
/// Reads the trace once from begin to end, in bounded memory, so any size will do.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap info trace.ctf
  heaptap info --json trace.ctf | jq .words.bytes
  zcat trace.ctf.gz | heaptap info -"
))]
pub(crate) struct Info {
    /// The trace, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(&self) -> VerbResult {
        let input = Input::open(&self.file)?;
        let mut reader = input.memtrace_reader(Mode::Lenient)?;
        let mut lives = Lives::new(Lives::MEMORY);
        let facts = Facts::gather(&input, &mut reader, &mut lives)?;
        input.end_progress();
        if self.json {
            print_json(&facts)?;
        } else {
            print(text::report(&facts).as_bytes())?;
        }
        Ok(input.report(&reader, &mut lives))
    }
}
