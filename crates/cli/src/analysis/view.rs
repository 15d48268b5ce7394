//! The options `--by`, `--metric`, `--at` and `--sites`.

use clap::Args;
use clap::builder::TypedValueParser;
use heaptap_report::figures::units::duration;
use heaptap_report::figures::{TableView, by_name};
use heaptap_report::rows::By;
use heaptap_report::{Depth, Metric, SiteFrame};

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::filters::{one_of, parse_time};
use crate::exit_status::Failure;

/// The options of a table: what a row is and what is measured.
#[derive(Args)]
pub(crate) struct View {
    /// What a row is
    #[arg(long, value_parser = row_kind(), default_value = "function")]
    pub(crate) by: By,

    /// What is measured
    #[arg(long, value_parser = metric(), default_value = "allocated")]
    metric: Metric,

    /// Measure what is alive at this time, counted from the start: 90s, 1.5min
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "metric")]
    pub(crate) at: Option<u64>,
}

impl View {
    pub(crate) fn metric(&self) -> Metric {
        if self.at.is_some() { Metric::At } else { self.metric }
    }

    /// What a table shows.
    pub(crate) fn table(&self, site: SiteFrame) -> TableView {
        TableView { by: self.by, site, metric: self.metric(), at: self.at }
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

/// The option `--sites`.
#[derive(Args)]
pub(crate) struct SiteOption {
    /// Which frame of a stack is named and counted [default: own; innermost with --json and --csv, so that scripts
    /// go on to count the same]
    #[arg(long, value_name = "WHICH", value_parser = site_frame())]
    sites: Option<SiteFrame>,
}

impl SiteOption {
    /// The choice, where `for_scripts` is whether JSON or CSV is printed. A script that compares rows with those of
    /// an earlier version must not find other ones.
    pub(crate) fn choice(&self, for_scripts: bool) -> SiteFrame {
        let usual = if for_scripts { SiteFrame::Innermost } else { SiteFrame::Own };
        self.sites.unwrap_or(usual)
    }
}

/// Which frame of a stack is its site.
fn site_frame() -> impl TypedValueParser<Value = SiteFrame> {
    let own = "The innermost of your own code: not of a standard library, a runtime or a vendored package; \
        if there is none, the innermost";
    let all = [(SiteFrame::Own, own), (SiteFrame::Innermost, "The one that allocates")];
    one_of(all.map(|(site, help)| (site, site.name(), help)))
}

/// What a row is.
pub(crate) fn row_kind() -> impl TypedValueParser<Value = By> {
    let all = [
        (By::Function, "The function that allocates"),
        (By::Location, "The location in its source"),
        (By::File, "The source file"),
        (By::Module, "The module"),
        (By::Label, "The label that the program gave to its current work"),
        (By::Domain, "The domain: a thread of the runtime with its own heap"),
        (By::Kind, "The kind of the block: a table, a string, …, as its runtime says"),
        (By::Source, "Where the block is: minor heap, major heap, or outside the heap"),
    ];
    one_of(all.map(|(by, help)| (by, by_name(by), help)))
}

/// Fails unless rows are frames, for the option or verb `wanted`, which needs whole
/// stacks.
pub(crate) fn check_frames(by: By, wanted: &str) -> Result<(), Failure> {
    match by.depth(Depth::Whole) {
        Depth::Whole => Ok(()),
        _ => Err(Failure::Trouble(format!(
            "{wanted} needs --by function, location, file or module; \
             choose one label, domain or source with --label, --domain or --source"
        ))),
    }
}

/// What is measured.
pub(crate) fn metric() -> impl TypedValueParser<Value = Metric> {
    let survived =
        "What was alive at the end, without the young blocks that no collection has seen";
    one_of([
        (Metric::Allocated, "allocated", "All that was allocated"),
        (Metric::Promoted, "promoted", "What survived a minor collection"),
        (Metric::Peak, "peak", "What was alive when the most was"),
        (Metric::Live, "live", "What was alive at the end"),
        (Metric::Survived, "survived", survived),
    ])
}
