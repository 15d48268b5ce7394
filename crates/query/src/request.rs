//! The form of a request.

use heaptap_report::figures::{ALL_ROWS, by_name};
use heaptap_report::rows::{By, Grouping, Site};
use heaptap_report::{Metric, SiteFrame};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

/// The blocks that count, in the words of the command line's filters.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct Filter {
    /// Regular expressions, each of which a frame must match.
    pub include: Vec<String>,
    /// Regular expressions that no frame may match.
    pub exclude: Vec<String>,
    /// Regular expressions, one of which the label must match.
    pub labels: Vec<String>,
    /// When blocks were allocated, in microseconds since the start.
    pub time: Option<(f64, Option<f64>)>,
    /// Bytes, without the header.
    pub size: Option<(f64, Option<f64>)>,
    /// Microseconds.
    pub lifetime: Option<(f64, Option<f64>)>,
    /// Domains.
    pub domains: Vec<u16>,
    /// `minor`, `major` or `external`.
    pub sources: Vec<String>,
}

/// What is measured, by its name.
fn metric<'de, D: Deserializer<'de>>(name: D) -> Result<Metric, D::Error> {
    match String::deserialize(name)?.as_str() {
        "allocated" => Ok(Metric::Allocated),
        "promoted" => Ok(Metric::Promoted),
        "peak" => Ok(Metric::Peak),
        "at" => Ok(Metric::At),
        "live" => Ok(Metric::Live),
        "survived" => Ok(Metric::Survived),
        other => Err(D::Error::custom(format!("{other} is not a metric"))),
    }
}

/// What a row is, by its name.
fn rows<'de, D: Deserializer<'de>>(name: D) -> Result<By, D::Error> {
    let name = String::deserialize(name)?;
    let found = ALL_ROWS.into_iter().find(|&by| by_name(by) == name);
    found.ok_or_else(|| D::Error::custom(format!("{name} is not a kind of row")))
}

/// A trace, and which of its blocks are measured how.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(default)]
pub struct TraceRequest {
    pub(crate) trace: usize,
    pub(crate) filter: Filter,
    #[serde(deserialize_with = "metric")]
    pub(crate) metric: Metric,
    pub(crate) at: Option<f64>,
    /// If that is known, only what was old by then has survived: microseconds since the start.
    pub(crate) old_before: Option<f64>,
    #[serde(deserialize_with = "rows")]
    pub(crate) by: By,
    /// Which frame of a stack is its site.
    pub(crate) sites: SiteFrame,
}

impl TraceRequest {
    /// How rows are grouped.
    pub(crate) fn grouping(&self) -> Grouping {
        Grouping { by: self.by, site: self.sites }
    }
}

/// The outer site to which a time line is restricted.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Within {
    #[serde(deserialize_with = "rows")]
    pub(crate) by: By,
    #[serde(flatten)]
    pub(crate) site: Site,
}

/// Which part of a call tree is wanted.
#[derive(Clone, Debug, Deserialize)]
#[serde(default)]
pub(crate) struct TreeShape {
    pub(crate) invert: bool,
    pub(crate) focus: Vec<Site>,
    pub(crate) fold: bool,
    pub(crate) min_share: f64,
    pub(crate) most: usize,
}

impl Default for TreeShape {
    fn default() -> Self {
        let focus = Vec::new();
        TreeShape { invert: false, focus, fold: true, min_share: 0.001, most: 20_000 }
    }
}

/// By what rows are sorted.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SortedBy {
    /// What the row allocates itself.
    #[default]
    #[serde(rename = "self")]
    Own,
    Total,
    Blocks,
    Name,
    /// What is said about the name: its file, or the function of a location.
    More,
}

/// Which rows are wanted, and in which order.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TableShape {
    pub(crate) top: usize,
    pub(crate) sort: SortedBy,
    pub(crate) ascending: bool,
    /// Only rows that contain it. Upper case in it makes case count.
    pub(crate) text: String,
}

/// The two traces of a comparison.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct Pair {
    pub(crate) before: usize,
    pub(crate) after: usize,
}

/// A request.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "q", rename_all = "snake_case")]
pub enum Request {
    /// What the trace says of itself, and its totals.
    #[allow(missing_docs)]
    Info { trace: usize },
    /// The figures of `heaptap report`.
    #[allow(missing_docs, private_interfaces)]
    Report {
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(default)]
        top: usize,
        #[serde(default)]
        callers: Option<usize>,
    },
    /// Rows with what they allocate themselves, and with all that they call.
    #[allow(missing_docs, private_interfaces)]
    Table {
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(flatten)]
        shape: TableShape,
    },
    /// Live and allocated bytes over time, by row.
    #[allow(missing_docs, private_interfaces)]
    Timeline {
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(default)]
        top: usize,
        /// How many larger rows have no line.
        #[serde(default)]
        skip: usize,
        #[serde(default)]
        points: usize,
        #[serde(default)]
        range: Option<(f64, f64)>,
        #[serde(default)]
        within: Option<Within>,
    },
    /// What was allocated over time, by row.
    #[allow(missing_docs, private_interfaces)]
    HeatMap {
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(default)]
        top: usize,
        #[serde(default)]
        points: usize,
        #[serde(default)]
        range: Option<(f64, f64)>,
    },
    /// The call tree.
    #[allow(missing_docs, private_interfaces)]
    Tree {
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(flatten)]
        shape: TreeShape,
    },
    /// All about one site.
    #[allow(missing_docs, private_interfaces)]
    Site {
        #[serde(flatten)]
        of: TraceRequest,
        site: Site,
        #[serde(default)]
        levels: usize,
    },
    /// The figures of `heaptap leaks`.
    #[allow(missing_docs)]
    Leaks {
        #[serde(flatten)]
        of: TraceRequest,
    },
    /// The figures of `heaptap hot`.
    #[allow(missing_docs)]
    Hot {
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(default)]
        threshold: Option<f64>,
    },
    /// The figures of `heaptap diff`.
    #[allow(missing_docs, private_interfaces)]
    Diff {
        #[serde(flatten)]
        pair: Pair,
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(default)]
        top: usize,
    },
    /// The call trees of two traces as one.
    #[allow(missing_docs, private_interfaces)]
    DiffTree {
        #[serde(flatten)]
        pair: Pair,
        #[serde(flatten)]
        of: TraceRequest,
        #[serde(flatten)]
        shape: TreeShape,
    },
    /// The lines of a file.
    #[allow(missing_docs)]
    Source {
        #[serde(flatten)]
        of: TraceRequest,
        file: String,
    },
    /// Names that contain a text.
    #[allow(missing_docs)]
    Names { trace: usize, text: String, most: usize },
}
