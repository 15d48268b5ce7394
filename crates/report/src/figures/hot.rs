//! The figures of `heaptap hot`.

use crate::hot::HotFragment;
use crate::rows::Site;
use crate::stacks::Omitted;
use serde::Serialize;

use crate::figures::size::{Size, share};
use crate::figures::trace::{TableView, TraceFigures};

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Hot"))]
pub struct Fragments {
    pub trace: String,
    pub metric: String,
    pub threshold: f64,
    pub total: Size,
    pub fragments: Vec<FragmentRow>,
    pub limits: HotLimits,
}

/// What was lost to the bounds on memory and time.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HotLimits {
    /// False if the search was cut short: fragments may be longer.
    pub complete: bool,
    /// The most samples that can be missing from a fragment.
    pub samples_missing: u64,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "HotFragment"))]
pub struct FragmentRow {
    #[serde(flatten)]
    pub size: Size,
    pub share: f64,
    /// The share that is under no longer fragment.
    pub own_share: f64,
    /// The innermost function first.
    pub frames: Vec<FragmentFrame>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "HotFrame"))]
pub struct FragmentFrame {
    #[serde(flatten)]
    pub site: Site,
    /// The most iterations of the recursion that begins here and is folded.
    #[serde(skip_serializing_if = "is_once")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<u32>"))]
    pub repeats: u32,
}

fn is_once(repeats: &u32) -> bool {
    *repeats == 1
}

/// The fragments that have this share of the metric, and what was folded to find them.
pub fn fragments(
    trace: &TraceFigures<'_>,
    view: &TableView,
    threshold: f64,
    fold: bool,
) -> (Fragments, Omitted) {
    let (aggregate, metric) = (trace.aggregate, view.metric);
    let total = aggregate.total_counts();
    let all = metric.of(&total);
    let hot = aggregate.hot(trace.locations, view.by, metric, threshold, fold);
    let frame = |(site, &repeats): (&Site, &u32)| FragmentFrame { site: site.clone(), repeats };
    let row = |HotFragment { sites, repeats, samples, own }: &HotFragment| FragmentRow {
        size: aggregate.size_of_samples(metric, *samples).into(),
        share: share(samples.count, all.count),
        own_share: share(own.count, all.count),
        frames: sites.iter().zip(repeats).map(frame).collect(),
    };
    let fragments = Fragments {
        trace: trace.name.to_owned(),
        metric: view.title(aggregate.peak_time()),
        threshold,
        total: aggregate.size(metric, &total).into(),
        fragments: hot.found.iter().map(row).collect(),
        limits: HotLimits {
            complete: hot.complete,
            samples_missing: aggregate.samples_missing_from_paths(),
        },
    };
    (fragments, hot.omitted)
}
