//! The options `--by`, `--metric` and `--at`.

use clap::{Args, ValueEnum};
use heaptap_report::figures::TableView;
use heaptap_report::figures::units::duration;
use heaptap_report::rows::By;
use heaptap_report::{Depth, Metric};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::filters::parse_time;
use crate::exit_status::Failure;

/// The options of a table: what a row is and what is measured.
#[derive(Args)]
pub(crate) struct View {
    /// What a row is
    #[arg(long, value_enum, default_value_t = RowKind::Function)]
    pub(crate) by: RowKind,

    /// What is measured
    #[arg(long, value_enum, default_value_t = Measure::Allocated)]
    metric: Measure,

    /// Measure what is alive at this time, counted from the start: 90s, 1.5min
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "metric")]
    pub(crate) at: Option<u64>,
}

impl View {
    pub(crate) fn metric(&self) -> Metric {
        if self.at.is_some() { Metric::At } else { self.metric.metric() }
    }

    /// What a table shows.
    pub(crate) fn table(&self) -> TableView {
        TableView { by: self.by.by(), metric: self.metric(), at: self.at }
    }

    /// Fails if `--at` is after the end of the trace.
    pub(crate) fn check(&self, trace: &AggregatedTrace) -> Result<(), Failure> {
        let end = trace.aggregate.duration();
        match self.at {
            Some(at) if at > end => Err(Failure::Trouble(format!(
                "--at {}: {} ends after {}; ask for an earlier time, \
                 or for the end with --metric live",
                duration(at),
                trace.name(),
                duration(end)
            ))),
            _ => Ok(()),
        }
    }
}

/// What a row is.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum RowKind {
    /// The function that allocates
    Function,
    /// The location in its source
    Location,
    /// The source file
    File,
    /// The module
    Module,
    /// The label that the program gave to its current work
    Label,
    /// The domain: a thread of the runtime with its own heap
    Domain,
    /// Where the block is: minor heap, major heap, or outside the heap
    Source,
}

impl RowKind {
    pub(crate) fn by(self) -> By {
        match self {
            RowKind::Function => By::Function,
            RowKind::Location => By::Location,
            RowKind::File => By::File,
            RowKind::Module => By::Module,
            RowKind::Label => By::Label,
            RowKind::Domain => By::Domain,
            RowKind::Source => By::Source,
        }
    }

    /// How much of each stack a table of these rows needs.
    pub(crate) fn depth(self) -> Depth {
        match self {
            RowKind::Function | RowKind::Location | RowKind::File | RowKind::Module => {
                Depth::Innermost
            }
            RowKind::Label => Depth::Label,
            RowKind::Domain => Depth::Domain,
            RowKind::Source => Depth::Source,
        }
    }

    /// Fails unless rows are frames, for the option or verb `wanted`, which needs whole
    /// stacks.
    pub(crate) fn check_frames(self, wanted: &str) -> Result<(), Failure> {
        match self.depth() {
            Depth::Innermost | Depth::Whole => Ok(()),
            Depth::Label | Depth::Domain | Depth::Source => Err(Failure::Trouble(format!(
                "{wanted} needs --by function, location, file or module; \
                 choose one label, domain or source with --label, --domain or --source"
            ))),
        }
    }
}

/// What is measured.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Measure {
    /// All that was allocated
    Allocated,
    /// What survived a minor collection
    Promoted,
    /// What was alive when the most was
    Peak,
    /// What was alive at the end
    Live,
    /// What was alive at the end, without the young blocks that no collection has seen
    Survived,
}

impl Measure {
    pub(crate) fn metric(self) -> Metric {
        match self {
            Measure::Allocated => Metric::Allocated,
            Measure::Promoted => Metric::Promoted,
            Measure::Peak => Metric::Peak,
            Measure::Live => Metric::Live,
            Measure::Survived => Metric::Survived,
        }
    }
}
