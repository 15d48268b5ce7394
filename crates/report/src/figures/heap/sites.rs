//! Where what is alive in a snapshot was allocated, and how that changed.

use serde::Serialize;

use super::growth::Change;
use crate::figures::size::Size;
use crate::rows::Site;

/// A place that allocated blocks which are alive.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct SiteRow {
    pub site: Site,
    /// How many of its blocks the trace tracks.
    pub sampled_blocks: u64,
    pub samples: u64,
    /// What they stand for.
    pub size: Size,
    pub share: f64,
    /// Ages when the snapshot was taken: half are younger.
    pub median_age_us: u64,
    pub oldest_us: u64,
    /// The holder that retains most of them, and its share of them.
    pub holder: String,
    pub holder_share: f64,
}

/// Where what is alive was allocated.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "SiteTable"))]
pub struct SiteFigures {
    pub trace: String,
    /// The holder whose blocks are counted; absent for all.
    pub within: Option<String>,
    /// What it retains, or all that is reachable: exact.
    pub exact_bytes: u64,
    /// The same outside the heap, without mapped files.
    pub exact_outside_bytes: u64,
    /// The same, estimated from the samples.
    pub estimated: Size,
    pub sampled_blocks: u64,
    pub rows: Vec<SiteRow>,
    pub other_rows: u64,
    pub other_share: f64,
}

/// A site before and after.
#[derive(Serialize)]
pub struct SiteGrowthRow {
    pub site: Site,
    pub change: Change,
    pub before: Size,
    pub after: Size,
    /// Negative if there is less.
    pub growth_bytes: f64,
    /// Its standard error.
    pub growth_error: f64,
}

/// The sites, the greatest changes first.
#[derive(Serialize)]
pub struct SiteGrowthTable {
    pub by: &'static str,
    pub rows: Vec<SiteGrowthRow>,
    pub other_rows: u64,
    pub other_growth_bytes: f64,
}
