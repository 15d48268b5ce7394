//! `heaptap export`: the call paths of a trace, for other tools.
//!
//! One file for each format. They all write what is in [`Exported`], so a further
//! format is one more file and one more line in [`Format`].

mod dhat;
mod firefox;
mod folded;
mod pprof;
mod speedscope;

use std::io::{self, BufWriter, IsTerminal as _, Write, stdout};
use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use heaptap_report::rows::By;
use heaptap_report::{Aggregate, Counts, Depth, Follow, Metric, Options, Stacks};
use heaptap_trace::{LocationTable, TraceInfo};

use crate::aggregate::Gathered;
use crate::exit_status::{Ending, Failure, help_end};
use crate::filters::Selecting;
use crate::io::notices::say;
use crate::io::output::{Output, raw_stdout};

/// Write what a trace says in the format of another tool
///
/// Sizes are estimates in bytes, headers of blocks included.
///
/// Takes less than 500 MB of memory, whatever the trace. At most 250,000 call
/// paths are written: of more, the lightest are joined by what allocates, under
/// "(light call paths)", and it is said how much that can be.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap export trace.ctf --to folded | flamegraph.pl > flames.svg
  heaptap export trace.ctf --to pprof -o trace.pb && go tool pprof -http : trace.pb
  heaptap export trace.ctf --to speedscope -o trace.speedscope.json"
))]
pub(crate) struct Export {
    /// The trace, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    /// The format
    #[arg(long, value_enum)]
    to: Format,

    /// Where to write it; standard output if not given
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,

    /// What `folded`, which has one number for each stack, measures
    #[arg(long, value_enum, default_value_t = Measure::Allocated)]
    metric: Measure,

    #[command(flatten)]
    selecting: Selecting,
}

/// What a further tool reads.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// One line for each stack, for flamegraph.pl, inferno and others
    Folded,
    /// For `go tool pprof`
    Pprof,
    /// For profiler.firefox.com
    Firefox,
    /// For valgrind's `dh_view.html`
    Dhat,
    /// For speedscope.app
    Speedscope,
}

/// What is measured.
#[derive(Clone, Copy, ValueEnum)]
enum Measure {
    /// All that was allocated
    Allocated,
    /// What survived a minor collection
    Promoted,
    /// What was alive when the most was
    Peak,
    /// What was alive at the end
    Live,
}

/// What all formats are made from.
struct Exported<'a> {
    aggregate: &'a Aggregate,
    info: &'a TraceInfo,
    locations: &'a LocationTable,
    metric: Metric,
}

impl Exported<'_> {
    /// Bytes of a metric.
    fn bytes(&self, metric: Metric, counts: &Counts) -> f64 {
        self.aggregate.estimate(metric, metric.samples(counts)).bytes
    }

    /// The stacks of the trace. Formats that know lines take locations.
    fn stacks(&self, by: By) -> Stacks<'_> {
        self.aggregate.stacks(self.locations, by)
    }

    fn program(&self) -> String {
        String::from_utf8_lossy(&self.info.executable).into_owned()
    }
}

impl Export {
    pub(crate) fn run(&self) -> Ending {
        let options = Options {
            selection: self.selecting.selection()?,
            depth: Depth::Whole,
            follow: Follow::Flows,
            ..Options::default()
        };
        if self.to == Format::Pprof && self.output.is_none() && stdout().is_terminal() {
            let message = "standard output is a terminal, and pprof is binary; name a file with -o";
            return Err(Failure::Trouble(message.into()));
        }
        let out = self.output.as_deref().map(Output::create).transpose()?;
        let gathered = Gathered::read(&self.file, options)?;
        let exported = Exported {
            aggregate: &gathered.aggregate,
            info: gathered.info(),
            locations: gathered.locations(),
            metric: match self.metric {
                Measure::Allocated => Metric::Allocated,
                Measure::Promoted => Metric::Promoted,
                Measure::Peak => Metric::Peak,
                Measure::Live => Metric::Live,
            },
        };
        match out {
            Some(mut out) => {
                let written = self.write(&exported, &mut out);
                written.map_err(|error| Failure::writing(out.name(), &error))?;
                out.complete()?;
            }
            None => raw_stdout()
                .and_then(|mut out| self.write(&exported, &mut out))
                .map_err(|error| Failure::writing("standard output", &error))?,
        }
        if let missing @ 1.. = gathered.aggregate.missing_from_paths() {
            say(&format!(
                "{}: too many call paths to keep all: light ones are under (light call paths), \
                 and up to {missing} samples are missing from a caller",
                gathered.input.name()
            ));
        }
        Ok(gathered.verdict())
    }

    fn write(&self, exported: &Exported<'_>, out: &mut dyn Write) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        match self.to {
            Format::Folded => folded::write(exported, &mut out),
            Format::Pprof => pprof::write(exported, &mut out),
            Format::Firefox => firefox::write(exported, &mut out),
            Format::Dhat => dhat::write(exported, &mut out),
            Format::Speedscope => speedscope::write(exported, &mut out),
        }?;
        out.flush()
    }
}
