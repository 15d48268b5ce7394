//! `heaptap report`: where the memory goes.

mod csv;
mod text;
mod timeline;
mod timeline_text;

use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::figures::{Figures, TableOptions};
use heaptap_report::{Depth, Options, SiteFrame};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::filters::Filters;
use crate::analysis::heap::before_attach::before_attach;
use crate::analysis::heap::snapshot_holders::HolderOptions;
use crate::analysis::view::{SiteOption, View, check_frames};
use crate::exit_status::{VerbResult, help_end};
use crate::io::newest::named_or_newest;
use crate::io::notices::say;
use crate::io::output::print_figures;
use timeline::TimelineFigures;

/// Show where the memory goes: totals, then a table by function, line, file, module,
/// label, domain or source
///
/// Sizes are estimates from the samples, headers of blocks included, each with
/// its standard error. The live size is followed block by block, so the peak and
/// what was alive at any time are those of the traced program, not of a poll.
///
/// Several traces are merged by time, which counts from the start of the earliest: sums
/// are over all processes, and the peak is the most that was alive at one time. In a
/// directory, a file is a trace by its first bytes or if its name ends in .ctf;
/// directories below are not searched. A trace that cannot be read is named and left out.
///
/// With --timeline, what the collector did is shown over time, beside the live size by the
/// samples: it is in FILE.probes, the sidecar of the trace FILE.
///
/// Rows are named after your own code: the innermost function of each stack that is not of a standard library, a
/// runtime or a vendored package. `--sites innermost` names the functions that allocate themselves.
///
/// With --heap, each row also has what held its blocks when the snapshot was taken.
///
/// Takes less than 500 MB of memory, whatever the trace; with --heap or a snapshot that was taken before it, some 45 bytes more for each block of
/// the snapshot.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap report
  heaptap report trace.ctf
  heaptap report trace.ctf --metric peak --by location --callers 3
  heaptap report trace.ctf --sites innermost
  heaptap report trace.ctf --at 90s --filter '^Cache\\.'
  heaptap report trace.ctf --metric live --heap exit.heap
  heaptap report trace.ctf --timeline
  heaptap report trace.ctf --json | jq .totals.peak.bytes
  heaptap report traces/ more.ctf"
))]
pub(crate) struct Report {
    /// Traces, which are merged by time; a directory stands for the traces in it, `-` for
    /// standard input [default: the newest trace in this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    view: View,

    #[command(flatten)]
    sites: SiteOption,

    #[command(flatten)]
    filters: Filters,

    #[command(flatten)]
    holders: HolderOptions,

    /// Show callers, this many levels up
    #[arg(long, value_name = "LEVELS")]
    callers: Option<usize>,

    /// Show the time line instead: collections, pauses, heap, memory of the process
    #[arg(long, conflicts_with_all = ["by", "metric", "at", "sites", "callers", "heap"])]
    timeline: bool,

    /// Leave out what was there before the trace began. Otherwise that is shown if a snapshot was taken
    /// first, by `heaptap attach --snapshot`, and is beside the trace as FILE.heap
    #[arg(long)]
    no_before: bool,

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

impl Report {
    pub(crate) fn run(&self) -> VerbResult {
        if self.timeline {
            return self.run_timeline();
        }
        let files = named_or_newest(&self.files)?;
        let view = self.view.table(self.sites.choice(self.json || self.csv));
        let (by, grouping) = (view.by, view.grouping());
        if self.callers.is_some() {
            check_frames(by, "--callers")?;
        }
        let options = Options {
            selection: self.filters.selection()?,
            depth: if self.callers.is_some() { Depth::Whole } else { grouping.depth() },
            at: self.view.at,
            ..Options::default()
        };
        let rows = Options {
            selection: options.selection.clone(),
            depth: grouping.depth(),
            ..Options::default()
        };
        let holders = self.holders.join(&files, grouping, rows)?;
        let trace = AggregatedTrace::read(&files, options)?;
        self.view.check(&trace)?;
        let table = TableOptions { view, top: self.top, callers: self.callers };
        let mut figures = Figures::of(&trace.figures(!self.filters.is_all()), &table);
        if let Some(holders) = &holders {
            figures.join(holders);
        }
        if !self.no_before {
            figures.before_attach = before_attach(&files, trace.info());
        }
        print_figures(&figures, self.json, |layout| match self.csv {
            true => csv::table(&figures),
            false => text::report(&figures, layout),
        })?;
        Ok(trace.verdict())
    }

    fn run_timeline(&self) -> VerbResult {
        let files = named_or_newest(&self.files)?;
        // Without a sidecar, a long trace need not be read.
        let (name, mut sidecar) = timeline::sidecar_of(&files)?;
        let (finding, verdict) = sidecar.finding();
        let options = Options {
            selection: self.filters.selection()?,
            depth: Depth::Innermost,
            ..Options::default()
        };
        let trace = AggregatedTrace::read(&files, options)?;
        let view = self.view.table(SiteFrame::Innermost);
        let table = TableOptions { view, top: 1, callers: None };
        let report = Figures::of(&trace.figures(!self.filters.is_all()), &table);
        let start = trace.info().start_time;
        let figures = TimelineFigures::of(&report, start, (&name, &sidecar.history), self.top)?;
        print_figures(&figures, self.json, |layout| match self.csv {
            true => timeline_text::csv(&figures),
            false => timeline_text::report(&figures, layout),
        })?;
        finding.iter().for_each(|finding| say(&format!("{name}: {finding}")));
        Ok(trace.verdict().max(verdict))
    }
}
