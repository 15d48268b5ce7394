//! Two snapshots compared.

use std::collections::BTreeMap;

use heaptap_graph::{HeapAnalysis, Level};
use serde::Serialize;

use super::sets::{SetNames, SetSize, SetTree, change, pairs};
use super::tables::HeapRows;
use super::titles::Titles;

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrowthRows {
    /// Holders, by what only they hold; or blocks that are alike.
    Rows(HeapRows),
    /// Sets: blocks that are alike and held alike, by what they retain.
    Sets,
}

impl GrowthRows {
    pub fn name(self) -> &'static str {
        match self {
            GrowthRows::Rows(rows) => rows.name(),
            GrowthRows::Sets => "set",
        }
    }
}

/// Whether a row is in both snapshots.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "GrowthChange"))]
pub enum Change {
    New,
    Gone,
    Grown,
    Shrunk,
    Same,
}

/// A size in the heap and outside of it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GrowthSize {
    pub blocks: u64,
    /// In the heap, with headers.
    pub bytes: u64,
    pub outside_bytes: u64,
}

impl GrowthSize {
    pub fn reachable(analysis: &HeapAnalysis) -> GrowthSize {
        let (reach, outside_bytes) = (analysis.reachable(), analysis.outside().allocated);
        GrowthSize { blocks: reach.blocks, bytes: reach.bytes, outside_bytes }
    }

    /// In the heap and outside.
    pub fn all_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.outside_bytes)
    }

    fn add(&mut self, other: GrowthSize) {
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.outside_bytes = self.outside_bytes.saturating_add(other.outside_bytes);
    }
}

impl From<SetSize> for GrowthSize {
    fn from(set: SetSize) -> GrowthSize {
        let SetSize { blocks, retained_bytes, outside_bytes } = set;
        GrowthSize { blocks, bytes: retained_bytes, outside_bytes }
    }
}

/// A row before and after.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct GrowthRow {
    pub name: String,
    pub change: Change,
    pub before: GrowthSize,
    pub after: GrowthSize,
    /// Bytes in the heap, negative if it has shrunk.
    pub growth_bytes: i64,
    /// The same outside the heap.
    pub growth_outside_bytes: i64,
}

/// A table of rows, the greatest changes first.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Growth"))]
pub struct GrowthTable {
    pub by: &'static str,
    pub rows: Vec<GrowthRow>,
    pub other_rows: u64,
    pub other_growth_bytes: i64,
    pub other_growth_outside_bytes: i64,
}

/// Compares two snapshots. `limit`: the most rows, 0 for all.
pub fn growth(
    before: &HeapAnalysis,
    after: &HeapAnalysis,
    by: GrowthRows,
    limit: usize,
) -> GrowthTable {
    let mut names = SetNames::default();
    let [before, after] = [before, after].map(|analysis| GrowthSide::of(analysis, by, &mut names));
    before.until(&after, &names, limit)
}

/// What a comparison needs of a snapshot, without its heap.
pub struct GrowthSide {
    by: GrowthRows,
    rows: SideRows,
}

enum SideRows {
    Sizes(Sizes),
    Sets(SetTree),
}

impl GrowthSide {
    /// `names`: those of all snapshots that are compared.
    pub fn of(analysis: &HeapAnalysis, by: GrowthRows, names: &mut SetNames) -> GrowthSide {
        let rows = match by {
            GrowthRows::Rows(rows) => SideRows::Sizes(sizes(analysis, rows)),
            GrowthRows::Sets => SideRows::Sets(SetTree::new(analysis, names)),
        };
        GrowthSide { by, rows }
    }

    /// What changed up to a later snapshot, of the same kind of rows. `limit`: the most rows, 0 for all.
    pub fn until(&self, after: &GrowthSide, names: &SetNames, limit: usize) -> GrowthTable {
        let rows = match (&self.rows, &after.rows) {
            (SideRows::Sizes(before), SideRows::Sizes(after)) => by_name(before, after),
            (SideRows::Sets(before), SideRows::Sets(after)) => sets(before, after, names),
            _ => Vec::new(),
        };
        table(self.by, rows, limit)
    }
}

/// The rows that changed, the greatest changes first.
fn table(by: GrowthRows, mut rows: Vec<GrowthRow>, limit: usize) -> GrowthTable {
    rows.retain(|row| row.change != Change::Same);
    rows.sort_by(|one, other| {
        let size = |row: &GrowthRow| {
            row.growth_bytes.saturating_add(row.growth_outside_bytes).unsigned_abs()
        };
        size(other).cmp(&size(one)).then_with(|| one.name.cmp(&other.name))
    });
    let shown = if limit == 0 { rows.len() } else { limit.min(rows.len()) };
    let others = rows.split_off(shown);
    let sum = |part: fn(&GrowthRow) -> i64| {
        others.iter().fold(0i64, |sum, row| sum.saturating_add(part(row)))
    };
    GrowthTable {
        by: by.name(),
        rows,
        other_rows: others.len() as u64,
        other_growth_bytes: sum(|row| row.growth_bytes),
        other_growth_outside_bytes: sum(|row| row.growth_outside_bytes),
    }
}

type Sizes = BTreeMap<String, GrowthSize>;

fn by_name(before: &Sizes, after: &Sizes) -> Vec<GrowthRow> {
    let mut pairs: BTreeMap<&str, (Option<GrowthSize>, Option<GrowthSize>)> = BTreeMap::new();
    for (name, size) in before {
        pairs.entry(name).or_default().0 = Some(*size);
    }
    for (name, size) in after {
        pairs.entry(name).or_default().1 = Some(*size);
    }
    let rows = pairs.into_iter();
    rows.map(|(name, (before, after))| row(name.to_owned(), before, after)).collect()
}

fn sets(before: &SetTree, after: &SetTree, names: &SetNames) -> Vec<GrowthRow> {
    let one = |(old, new)| {
        // What has become bigger is called as it is now.
        let path = match (old, new) {
            (_, Some(new)) => after.path(names, new),
            (Some(old), None) => before.path(names, old),
            (None, None) => Vec::new(),
        };
        let old = old.map(|old| before.size(old).into());
        row(path.join(" > "), old, new.map(|new| after.size(new).into()))
    };
    pairs(before, after).into_iter().map(one).collect()
}

fn row(name: String, before: Option<GrowthSize>, after: Option<GrowthSize>) -> GrowthRow {
    let (old, new) = (before.unwrap_or_default(), after.unwrap_or_default());
    let growth_bytes = change(old.bytes, new.bytes);
    let growth_outside_bytes = change(old.outside_bytes, new.outside_bytes);
    let all = growth_bytes.saturating_add(growth_outside_bytes);
    let change = match (before.is_some(), after.is_some(), all) {
        (false, true, _) => Change::New,
        (true, false, _) => Change::Gone,
        (_, _, 1..) => Change::Grown,
        (_, _, ..0) => Change::Shrunk,
        (_, _, 0) if growth_bytes > 0 => Change::Grown,
        (_, _, 0) if growth_bytes < 0 => Change::Shrunk,
        (_, _, 0) => Change::Same,
    };
    GrowthRow { name, change, before: old, after: new, growth_bytes, growth_outside_bytes }
}

/// The rows of one snapshot by name. Rows of one name are added up.
fn sizes(analysis: &HeapAnalysis, rows: HeapRows) -> Sizes {
    let titles = Titles::new(analysis);
    let mut sizes = Sizes::new();
    let mut add = |name: String, size| sizes.entry(name).or_default().add(size);
    if let HeapRows::Holders(level) = rows {
        for row in analysis.holder_rows(level) {
            let name = match level {
                // What a frame is called must not depend on how deep it is.
                Level::Frame | Level::Variable => titles.lasting(row.holder),
                _ => titles.holder(row.holder),
            };
            let (blocks, bytes) = (row.first_reached.reach.blocks, row.exclusive);
            add(name, GrowthSize { blocks, bytes, outside_bytes: row.outside.allocated });
        }
        return sizes;
    }
    for row in analysis.kind_rows() {
        if rows != HeapRows::Customs || row.is_custom(&analysis.kinds) {
            let (blocks, bytes) = (row.own.blocks, row.own.bytes);
            let size = GrowthSize { blocks, bytes, outside_bytes: row.outside.allocated };
            add(titles.kind_of_any_size(row.kind), size);
        }
    }
    sizes
}
