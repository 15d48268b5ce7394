//! What holders keep in a heap snapshot, and how much more in a later one.
//!
//! A block counts for the lowest holder that alone keeps it: so each block counts once, and sizes are exact. What
//! several variables keep counts for these together.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::figures::heap::sets::change;

/// The most holders that are listed.
const MOST_LISTED: usize = 20;

/// What one holder keeps. The field names are those of the JSON.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HolderSize {
    /// A variable, stack frame or what else holds roots: the name that the rows of a report have for it.
    pub holder: String,
    /// The OCaml type of a variable, if that is known.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_name: Option<String>,
    /// What it belongs to, from the kind of root down to itself.
    pub path: Vec<String>,
    pub blocks: u64,
    /// In the heap, with headers.
    pub bytes: u64,
    pub outside_bytes: u64,
}

impl HolderSize {
    /// In the heap and outside.
    pub fn all_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.outside_bytes)
    }
}

/// What is reachable in a snapshot, by holder.
#[derive(Clone, Debug, Default, Serialize)]
pub struct HolderSizes {
    pub file: String,
    /// When it was taken, in microseconds since the start of the trace.
    pub taken_us: u64,
    pub reachable_bytes: u64,
    pub outside_bytes: u64,
    /// What nothing holds, and no collection has freed yet.
    pub garbage_bytes: u64,
    /// Those that keep most.
    pub holders: Vec<HolderSize>,
    pub other_holders: usize,
    pub other_bytes: u64,
    #[serde(skip)]
    all: BTreeMap<String, HolderSize>,
}

impl HolderSizes {
    /// The sizes of a snapshot. Holders of the same name are added up.
    pub fn new(
        (file, taken_us): (String, u64),
        garbage_bytes: u64,
        holders: impl IntoIterator<Item = HolderSize>,
    ) -> HolderSizes {
        let mut all: BTreeMap<String, HolderSize> = BTreeMap::new();
        let (mut reachable_bytes, mut outside_bytes) = (0_u64, 0_u64);
        for size in holders {
            reachable_bytes = reachable_bytes.saturating_add(size.bytes);
            outside_bytes = outside_bytes.saturating_add(size.outside_bytes);
            match all.get_mut(&size.holder) {
                Some(known) => {
                    known.blocks = known.blocks.saturating_add(size.blocks);
                    known.bytes = known.bytes.saturating_add(size.bytes);
                    known.outside_bytes = known.outside_bytes.saturating_add(size.outside_bytes);
                }
                None => {
                    all.insert(size.holder.clone(), size);
                }
            }
        }
        let mut holders: Vec<HolderSize> = all.values().cloned().collect();
        holders.sort_by_key(|size| std::cmp::Reverse(size.all_bytes()));
        let others = holders.split_off(holders.len().min(MOST_LISTED));
        HolderSizes {
            file,
            taken_us,
            reachable_bytes,
            outside_bytes,
            garbage_bytes,
            holders,
            other_holders: others.len(),
            other_bytes: others.iter().map(HolderSize::all_bytes).sum(),
            all,
        }
    }

    /// What a holder keeps, if it is in the snapshot.
    pub fn of(&self, holder: &str) -> Option<&HolderSize> {
        self.all.get(holder)
    }

    /// The same in bytes, in the heap and outside: 0 if there is no such holder.
    pub fn bytes_of(&self, holder: &str) -> u64 {
        self.of(holder).map_or(0, HolderSize::all_bytes)
    }
}

/// A holder in two snapshots.
#[derive(Clone, Debug, Serialize)]
pub struct HolderGrowthRow {
    /// As it is in the later snapshot, or in the earlier one if it is gone.
    #[serde(flatten)]
    pub size: HolderSize,
    pub before_bytes: u64,
    pub after_bytes: u64,
    /// In the heap and outside, negative if it has shrunk.
    pub growth_bytes: i64,
}

/// What holders keep in a later snapshot more than in an earlier one.
#[derive(Clone, Debug, Serialize)]
pub struct HolderGrowth {
    pub from: String,
    pub from_us: u64,
    pub to: String,
    pub to_us: u64,
    /// The growth of everything.
    pub growth_bytes: i64,
    /// Those that have changed, the greatest growth first.
    pub rows: Vec<HolderGrowthRow>,
    pub other_rows: usize,
}

impl HolderGrowth {
    /// The growth from one snapshot to a later one.
    pub fn new(before: &HolderSizes, after: &HolderSizes) -> HolderGrowth {
        let gone = before.all.values().filter(|size| after.of(&size.holder).is_none());
        let mut rows: Vec<HolderGrowthRow> = after
            .all
            .values()
            .chain(gone)
            .map(|size| {
                let (old, new) = (before.bytes_of(&size.holder), after.bytes_of(&size.holder));
                let growth_bytes = change(old, new);
                HolderGrowthRow {
                    size: size.clone(),
                    before_bytes: old,
                    after_bytes: new,
                    growth_bytes,
                }
            })
            .collect();
        rows.retain(|row| row.growth_bytes != 0);
        rows.sort_by_key(|row| std::cmp::Reverse(row.growth_bytes));
        let others = rows.split_off(rows.len().min(MOST_LISTED));
        let all = |sizes: &HolderSizes| sizes.reachable_bytes.saturating_add(sizes.outside_bytes);
        HolderGrowth {
            from: before.file.clone(),
            from_us: before.taken_us,
            to: after.file.clone(),
            to_us: after.taken_us,
            growth_bytes: change(all(before), all(after)),
            rows,
            other_rows: others.len(),
        }
    }
}

/// What the snapshots that were joined say of the whole heap.
#[derive(Clone, Debug, Default, Serialize)]
pub struct SnapshotFigures {
    /// Each of them, in the order of time.
    pub snapshots: Vec<HolderSizes>,
    /// From the first to the last, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holder_growth: Option<HolderGrowth>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn size(holder: &str, bytes: u64, outside_bytes: u64) -> HolderSize {
        HolderSize {
            holder: holder.to_owned(),
            blocks: 1,
            bytes,
            outside_bytes,
            ..HolderSize::default()
        }
    }

    #[test]
    fn holders_of_one_name_are_one() {
        let sizes = HolderSizes::new(
            ("a.heap".to_owned(), 7),
            5,
            [size("A.table", 10, 1), size("B.f, thread 0", 3, 0), size("B.f, thread 0", 4, 0)],
        );
        assert_eq!((sizes.reachable_bytes, sizes.outside_bytes), (17, 1));
        assert_eq!((sizes.bytes_of("A.table"), sizes.bytes_of("B.f, thread 0")), (11, 7));
        assert_eq!(sizes.bytes_of("C"), 0);
        assert_eq!(sizes.holders.len(), 2);
    }

    #[test]
    fn what_grew_most_comes_first() {
        let taken = |at: u64, holders: Vec<HolderSize>| {
            HolderSizes::new((format!("{at}.heap"), at), 0, holders)
        };
        let before = taken(1, vec![size("A.a", 10, 0), size("A.b", 50, 0), size("A.same", 1, 0)]);
        let after = taken(2, vec![size("A.a", 10, 90), size("A.new", 20, 0), size("A.same", 1, 0)]);
        let growth = HolderGrowth::new(&before, &after);
        let rows: Vec<_> =
            growth.rows.iter().map(|row| (row.size.holder.as_str(), row.growth_bytes)).collect();
        assert_eq!(rows, [("A.a", 90), ("A.new", 20), ("A.b", -50)]);
        assert_eq!(growth.growth_bytes, 60);
    }
}
