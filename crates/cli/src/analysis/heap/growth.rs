//! Two snapshots compared.

use std::collections::BTreeMap;

use heaptap_heap::{HeapAnalysis, Level};
use serde::Serialize;

use super::figures::{HeapRows, HeapSize};
use super::sets::sets_by_path;
use super::titles::Titles;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrowthRows {
    /// Holders, by what only they hold; or blocks that are alike.
    Rows(HeapRows),
    /// Sets: blocks that are alike and held alike, by what they retain.
    Sets,
}

impl GrowthRows {
    pub(crate) fn name(self) -> &'static str {
        match self {
            GrowthRows::Rows(rows) => rows.name(),
            GrowthRows::Sets => "set",
        }
    }
}

/// Whether a row is in both snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Change {
    New,
    Gone,
    Grown,
    Shrunk,
    Same,
}

/// A row before and after.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GrowthRow {
    pub(crate) name: String,
    pub(crate) change: Change,
    pub(crate) before: HeapSize,
    pub(crate) after: HeapSize,
    /// Bytes, negative if it has shrunk.
    pub(crate) growth_bytes: i64,
}

/// A table of rows, the greatest changes first.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct GrowthTable {
    pub(crate) by: &'static str,
    pub(crate) rows: Vec<GrowthRow>,
    pub(crate) other_rows: u64,
    pub(crate) other_growth_bytes: i64,
}

/// Compares two snapshots. `limit`: the most rows, 0 for all.
pub(crate) fn growth(
    before: &HeapAnalysis,
    after: &HeapAnalysis,
    by: GrowthRows,
    limit: usize,
) -> GrowthTable {
    let mut pairs: BTreeMap<String, (Option<HeapSize>, Option<HeapSize>)> = BTreeMap::new();
    for (name, size) in sizes(before, by) {
        pairs.entry(name).or_default().0 = Some(size);
    }
    for (name, size) in sizes(after, by) {
        pairs.entry(name).or_default().1 = Some(size);
    }
    let mut rows: Vec<GrowthRow> =
        pairs.into_iter().map(|(name, (before, after))| row(name, before, after)).collect();
    rows.retain(|row| row.change != Change::Same);
    rows.sort_by_key(|row| std::cmp::Reverse(row.growth_bytes.unsigned_abs()));
    let shown = if limit == 0 { rows.len() } else { limit.min(rows.len()) };
    let others = rows.split_off(shown);
    let other_growth_bytes =
        others.iter().fold(0i64, |sum, row| sum.saturating_add(row.growth_bytes));
    GrowthTable { by: by.name(), rows, other_rows: others.len() as u64, other_growth_bytes }
}

fn row(name: String, before: Option<HeapSize>, after: Option<HeapSize>) -> GrowthRow {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    let growth_bytes = signed(new.bytes).saturating_sub(signed(old.bytes));
    let change = match (before.is_some(), after.is_some(), growth_bytes) {
        (false, true, _) => Change::New,
        (true, false, _) => Change::Gone,
        (_, _, 1..) => Change::Grown,
        (_, _, ..0) => Change::Shrunk,
        (_, _, 0) => Change::Same,
    };
    GrowthRow { name, change, before: old, after: new, growth_bytes }
}

/// The rows of one snapshot by name. Rows of one name are added up.
fn sizes(analysis: &HeapAnalysis, by: GrowthRows) -> BTreeMap<String, HeapSize> {
    let titles = Titles::new(analysis);
    let mut sizes: BTreeMap<String, HeapSize> = BTreeMap::new();
    let mut add = |name: String, blocks: u64, bytes: u64| {
        let size = sizes.entry(name).or_default();
        size.blocks = size.blocks.saturating_add(blocks);
        size.bytes = size.bytes.saturating_add(bytes);
    };
    match by {
        GrowthRows::Rows(HeapRows::Holders(level)) => {
            for row in analysis.holder_rows(level) {
                let name = match level {
                    // What a frame is called must not depend on how deep it is.
                    Level::Frame | Level::Variable => titles.without_depth(row.holder),
                    _ => titles.holder(row.holder),
                };
                add(name, row.first_reached.blocks, row.exclusive);
            }
        }
        GrowthRows::Rows(rows) => {
            for row in analysis.label_rows() {
                if rows != HeapRows::Customs || row.is_custom(&analysis.labels) {
                    add(titles.label(row.label), row.own.blocks, row.own.bytes);
                }
            }
        }
        GrowthRows::Sets => {
            for (path, set) in sets_by_path(analysis) {
                add(path.join(" > "), set.blocks, set.retained_bytes);
            }
        }
    }
    sizes
}
