//! Where figures come from.

use crate::aggregate::{Aggregate, Metric};
use crate::own_code::SiteFrame;
use crate::rows::{By, Grouping};
use heaptap_trace::{LocationTable, TraceInfo};

use crate::figures::units::{duration, short_duration};

/// A trace that was read to its end, whole or selected.
#[derive(Clone, Copy)]
pub struct TraceFigures<'a> {
    /// The name of the trace.
    pub name: &'a str,
    /// What the trace says of itself.
    pub info: &'a TraceInfo,
    /// Why the end of the trace is missing, and until when it covers the program.
    pub cut_short: Option<&'a str>,
    /// Why not all that the program did was read, be it the end or a part in the middle.
    pub incomplete: Option<&'a str>,
    /// The aggregate of the selected blocks.
    pub aggregate: &'a Aggregate,
    /// The locations of the trace.
    pub locations: &'a LocationTable,
    /// Whether filters left blocks out.
    pub selected: bool,
}

/// What a table shows: its rows, and what is measured.
#[derive(Clone, Copy, Debug)]
pub struct TableView {
    /// What a row is.
    pub by: By,
    /// Which frame of a stack a row is about.
    pub site: SiteFrame,
    /// What is measured.
    pub metric: Metric,
    /// The time of [`Metric::At`], in microseconds since the start of the trace.
    pub at: Option<u64>,
}

impl TableView {
    /// How rows are grouped.
    pub fn grouping(&self) -> Grouping {
        Grouping { by: self.by, site: self.site }
    }

    /// The name of the metric in a heading.
    pub fn title(&self, peak_time: u64) -> String {
        match self.metric {
            Metric::Allocated => "allocated".into(),
            Metric::Promoted => "promoted".into(),
            Metric::Peak => format!("live at the peak ({})", short_duration(peak_time as f64)),
            Metric::At => format!("live at {}", duration(self.at.unwrap_or(0))),
            Metric::Live => "live at the end".into(),
            Metric::Survived => "live at the end, seen by a collection".into(),
        }
    }
}

/// What the rows of a table are, in a heading: `function`, or `function (own code)`.
/// `by` is one of [`by_name`].
pub(super) fn row_title(by: &str, site: SiteFrame) -> String {
    let are_frames = !matches!(by, "label" | "domain" | "kind" | "source");
    if are_frames && site == SiteFrame::Own { format!("{by} (own code)") } else { by.to_owned() }
}

/// Everything that the rows of a table can be.
pub const ALL_ROWS: [By; 8] =
    [By::Function, By::Location, By::File, By::Module, By::Label, By::Domain, By::Kind, By::Source];

/// What the rows of a table are.
pub fn by_name(by: By) -> &'static str {
    match by {
        By::Function => "function",
        By::Location => "location",
        By::File => "file",
        By::Module => "module",
        By::Label => "label",
        By::Domain => "domain",
        By::Kind => "kind",
        By::Source => "source",
    }
}
