//! `heaptap report`: where the memory goes.

mod csv;
mod figures;
mod place;
mod text;

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use heaptap_report::rows::By;
use heaptap_report::{Depth, Metric, Options};

use crate::aggregate::Gathered;
use crate::exit_status::{Ending, Failure, help_end};
use crate::filters::{Selecting, parse_time};
use crate::io::output::print;
use crate::text::json;
use crate::text::terminal::Page;
use crate::text::units::{duration, short_duration};

pub(crate) use figures::Size;
pub(crate) use place::Place;
pub(crate) use text::{sized, sparkline};

/// Show where the memory goes: totals, then a table by function, line, file, module,
/// label or domain
///
/// Sizes are estimates from the samples, headers of blocks included, each with
/// its standard error. The live size is followed block by block, so the peak and
/// what was alive at any time are those of the traced program, not of a poll.
///
/// Takes less than 500 MB of memory, whatever the trace.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap report trace.ctf
  heaptap report trace.ctf --metric peak --by location --callers 3
  heaptap report trace.ctf --at 90s --filter '^Cache\\.'
  heaptap report trace.ctf --json | jq .totals.peak.bytes"
))]
pub(crate) struct Report {
    /// The trace, or `-` for standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    file: PathBuf,

    #[command(flatten)]
    shown: Shown,

    #[command(flatten)]
    selecting: Selecting,

    /// Show who calls, so many levels up
    #[arg(long, value_name = "LEVELS")]
    callers: Option<usize>,

    /// How many rows; 0 for all
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    top: usize,

    /// Print one JSON object
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Print the table as comma-separated values
    #[arg(long)]
    csv: bool,
}

/// What the rows are, and what their size is.
#[derive(Args)]
pub(crate) struct Shown {
    /// What a row is
    #[arg(long, value_enum, default_value_t = Rows::Function)]
    pub(crate) by: Rows,

    /// What is measured
    #[arg(long, value_enum, default_value_t = Measure::Allocated)]
    metric: Measure,

    /// Measure what is alive at this time, counted from the start: 90s, 1.5min
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "metric")]
    pub(crate) at: Option<u64>,
}

impl Shown {
    pub(crate) fn metric(&self) -> Metric {
        match (self.at, self.metric) {
            (Some(_), _) => Metric::At,
            (None, Measure::Allocated) => Metric::Allocated,
            (None, Measure::Promoted) => Metric::Promoted,
            (None, Measure::Peak) => Metric::Peak,
            (None, Measure::Live) => Metric::Live,
        }
    }

    /// What the metric is called in a heading.
    pub(crate) fn title(&self, peak_time: u64) -> String {
        match self.metric() {
            Metric::Allocated => "allocated".into(),
            Metric::Promoted => "promoted".into(),
            Metric::Peak => format!("live at the peak ({})", short_duration(peak_time as f64)),
            Metric::At => format!("live at {}", duration(self.at.unwrap_or(0))),
            Metric::Live => "live at the end".into(),
        }
    }

    /// Fails if the time that was asked for is not in the trace.
    pub(crate) fn check(&self, gathered: &Gathered) -> Result<(), Failure> {
        let end = gathered.aggregate.duration();
        match self.at {
            Some(at) if at > end => Err(Failure::Trouble(format!(
                "--at {}: {} ends after {}; ask for an earlier time, \
                 or for the end with --metric live",
                duration(at),
                gathered.input.name(),
                duration(end)
            ))),
            _ => Ok(()),
        }
    }
}

/// What a row is.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Rows {
    /// The function that allocates
    Function,
    /// The place in its source
    Location,
    /// The source file
    File,
    /// The module
    Module,
    /// The label that the program gave to what it was doing
    Label,
    /// The domain: a thread of the runtime with a heap of its own
    Domain,
}

impl Rows {
    pub(crate) fn by(self) -> By {
        match self {
            Rows::Function => By::Function,
            Rows::Location => By::Location,
            Rows::File => By::File,
            Rows::Module => By::Module,
            Rows::Label => By::Label,
            Rows::Domain => By::Domain,
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Rows::Function => "function",
            Rows::Location => "location",
            Rows::File => "file",
            Rows::Module => "module",
            Rows::Label => "label",
            Rows::Domain => "domain",
        }
    }

    /// What must be kept of stacks for a table of these.
    pub(crate) fn depth(self) -> Depth {
        match self {
            Rows::Function | Rows::Location | Rows::File | Rows::Module => Depth::Innermost,
            Rows::Label => Depth::Label,
            Rows::Domain => Depth::Domain,
        }
    }

    /// Fails if whole stacks are needed and these are no frames of them.
    pub(crate) fn check_frames(self, wanted: &str) -> Result<(), Failure> {
        match self.depth() {
            Depth::Innermost | Depth::Whole => Ok(()),
            Depth::Label | Depth::Domain => Err(Failure::Trouble(format!(
                "{wanted} needs --by function, location, file or module; \
                 choose one label or domain with --label or --domain"
            ))),
        }
    }
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

impl Report {
    pub(crate) fn run(&self) -> Ending {
        let by = self.shown.by;
        if self.callers.is_some() {
            by.check_frames("--callers")?;
        }
        let options = Options {
            selection: self.selecting.selection()?,
            depth: if self.callers.is_some() { Depth::Whole } else { by.depth() },
            at: self.shown.at,
            ..Options::default()
        };
        let gathered = Gathered::read(&self.file, options)?;
        self.shown.check(&gathered)?;
        let figures = figures::Figures::of(&gathered, self);
        if self.json {
            let mut line = Vec::new();
            json::put(&mut line, &figures);
            line.push(b'\n');
            print(&line)?;
        } else if self.csv {
            print(csv::table(&figures).as_bytes())?;
        } else {
            print(text::report(&figures, Page::of_stdout()).as_bytes())?;
        }
        Ok(gathered.verdict())
    }
}
