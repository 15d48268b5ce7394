//! `heaptap export`: the call paths of a trace, for other tools.
//!
//! The formats are those of [`heaptap_export::FORMATS`]; here are only the options
//! and the output.

use std::io::{self, BufWriter, IsTerminal as _, Write, stdout};
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueHint};
use heaptap_export::{ExportInput, FORMATS, Format};
use heaptap_report::{Omitted, Options, StackShape};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::filters::Filters;
use crate::analysis::recursion::{Recursion, say_omitted};
use crate::analysis::view::Measure;
use crate::exit_status::{Failure, VerbResult, help_end};
use crate::io::notices::say;
use crate::io::output::{Output, raw_stdout};

/// Write the call paths of a trace in the format of another tool
///
/// Sizes are estimates in bytes, headers of blocks included.
///
/// Recursion is folded: a cycle of up to 32 functions that repeats is written once,
/// its innermost iteration, below a frame "(repeated up to ×N)" or "(2 frames
/// repeated up to ×N)". N is the most iterations among all stacks that have this
/// frame, so that stacks of different depths are one. With --frames, "(frames left
/// out)" is in place of the middle of a stack. No bytes are left out, and messages
/// on standard error give the number of folded and cut call paths.
///
/// Takes less than 500 MB of memory, whatever the trace. At most 250,000 call
/// paths are written. If there are more, the lightest are joined by their
/// innermost function under "(light call paths)", and a message gives the most
/// samples that can be missing from a caller.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap export trace.ctf --to folded | flamegraph.pl > flames.svg
  heaptap export trace.ctf --to pprof -o trace.pb && go tool pprof -http : trace.pb
  heaptap export trace.ctf --to speedscope -o trace.speedscope.json"
))]
pub(crate) struct Export {
    /// Traces, which are merged by time; a directory stands for the traces in it, `-` for
    /// standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// The format
    #[arg(long, value_parser = formats())]
    to: &'static Format,

    /// Where to write it; standard output if not given
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// What `folded`, which has one number for each stack, measures
    #[arg(long, value_enum, default_value_t = Measure::Allocated)]
    metric: Measure,

    #[command(flatten)]
    recursion: Recursion,

    /// The most frames of a stack; of longer ones the middle is left out
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(2..))]
    frames: Option<u32>,

    #[command(flatten)]
    filters: Filters,
}

/// The values of `--to`.
fn formats() -> impl TypedValueParser<Value = &'static Format> {
    let values = FORMATS.map(|format| PossibleValue::new(format.name).help(format.help));
    // Only names of formats get past the list of values.
    PossibleValuesParser::new(values).try_map(|name| Format::named(&name).ok_or("no such format"))
}

impl Export {
    pub(crate) fn run(&self) -> VerbResult {
        let options = Options { selection: self.filters.selection()?, ..heaptap_export::options() };
        if self.to.is_binary && self.output.is_none() && stdout().is_terminal() {
            return Err(Failure::Trouble(format!(
                "standard output is a terminal, and {} is binary; name a file with -o",
                self.to.name
            )));
        }
        let out = self.output.as_deref().map(Output::create).transpose()?;
        let trace = AggregatedTrace::read(&self.files, options)?;
        let export = ExportInput {
            aggregate: &trace.aggregate,
            info: trace.info(),
            locations: trace.locations(),
            metric: self.metric.metric(),
            shape: StackShape {
                fold: self.recursion.fold(),
                frames: self.frames.map(|frames| frames as usize),
            },
        };
        let omitted = match out {
            Some(mut out) => {
                let written = self.write(&export, &mut out);
                let omitted = written.map_err(|error| Failure::writing(out.name(), &error))?;
                out.complete()?;
                omitted
            }
            None => raw_stdout()
                .and_then(|mut out| self.write(&export, &mut out))
                .map_err(|error| Failure::writing("standard output", &error))?,
        };
        say_omitted(trace.name(), &omitted);
        if let missing @ 1.. = trace.aggregate.missing_from_paths() {
            say(&format!(
                "{}: too many call paths to keep all: light ones are under (light call paths), \
                 and up to {missing} samples are missing from a caller",
                trace.name()
            ));
        }
        Ok(trace.verdict())
    }

    fn write(&self, input: &ExportInput<'_>, out: &mut dyn Write) -> io::Result<Omitted> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        let omitted = self.to.write(input, &mut out)?;
        out.flush()?;
        Ok(omitted)
    }
}
