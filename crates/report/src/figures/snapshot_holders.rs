//! What holds the blocks of a trace's rows, from a heap snapshot that was taken while the trace was written.
//!
//! The samples are those of blocks that the trace tracks and that the snapshot has in its heap. So sizes and
//! shares are estimates with an error, as everywhere in a report, and exact at rate 1.

use std::collections::BTreeMap;

use crate::estimate::{Sampled, Scale, Share};
use serde::Serialize;

use crate::figures::size::Sum;
use crate::figures::units::{count, percent};
use crate::rows::Site;

/// The holder of blocks that nothing holds: no collection has freed them yet.
pub const GARBAGE: &str = "(garbage)";

/// A holder of blocks of a row. The field names are those of the JSON.
#[derive(Clone, Debug, Serialize)]
pub struct HolderPart {
    /// A variable, stack frame or what else holds roots; [`GARBAGE`] if nothing does; `(3 others)` for those
    /// that are not listed.
    pub holder: String,
    #[serde(flatten)]
    pub sum: Sum,
    /// Of the row's blocks in the snapshot.
    pub share: f64,
    pub share_error: f64,
}

/// What holds the blocks of a row.
#[derive(Clone, Debug, Serialize)]
pub struct BlockHolders {
    /// All blocks of the row in the snapshot's heap, garbage included.
    pub in_snapshot: Sum,
    /// Every block is in one part. The largest part comes first, and those that are not listed come last.
    pub held_by: Vec<HolderPart>,
}

/// The snapshot that a report was joined with.
#[derive(Clone, Debug, Serialize)]
pub struct JoinedSnapshot {
    pub file: String,
    /// When it was taken, in microseconds since the start of the trace.
    pub taken_us: u64,
    /// All selected blocks.
    #[serde(flatten)]
    pub held: BlockHolders,
}

/// Samples by holder.
type HolderSamples = BTreeMap<String, u64>;

/// The samples of the blocks in a snapshot, by row and by holder.
pub struct SnapshotHolders {
    file: String,
    taken_us: u64,
    scale: Scale,
    rows: BTreeMap<Site, HolderSamples>,
    all: HolderSamples,
}

impl SnapshotHolders {
    /// The most holders of a row that are listed.
    const MOST_LISTED: usize = 20;

    /// No blocks yet. `taken_us`: when the snapshot was taken, in microseconds since the start of the trace.
    pub fn new(file: &str, taken_us: u64, scale: Scale) -> SnapshotHolders {
        let (rows, all) = (BTreeMap::new(), BTreeMap::new());
        SnapshotHolders { file: file.to_owned(), taken_us, scale, rows, all }
    }

    /// Adds the samples of blocks of a row; `holder` is `None` if they are garbage.
    pub fn add(&mut self, row: Site, holder: Option<&str>, samples: u64) {
        let holder = holder.unwrap_or(GARBAGE);
        for parts in [self.rows.entry(row).or_default(), &mut self.all] {
            let sum = parts.entry(holder.to_owned()).or_default();
            *sum = sum.saturating_add(samples);
        }
    }

    /// What holds the blocks of a row.
    pub fn of(&self, row: &Site) -> BlockHolders {
        self.rows.get(row).map_or_else(|| self.held(&BTreeMap::new()), |parts| self.held(parts))
    }

    /// The rows that have most samples in the snapshot, no more than so many.
    pub fn largest(&self, most: usize) -> Vec<(Site, BlockHolders)> {
        let samples = |parts: &HolderSamples| {
            parts.values().fold(0, |sum: u64, part| sum.saturating_add(*part))
        };
        let mut rows: Vec<(u64, &Site)> =
            self.rows.iter().map(|(site, parts)| (samples(parts), site)).collect();
        rows.sort_by_key(|&(samples, _)| std::cmp::Reverse(samples));
        rows.into_iter().take(most).map(|(_, site)| (site.clone(), self.of(site))).collect()
    }

    /// The snapshot, and what holds all blocks.
    pub fn snapshot(&self) -> JoinedSnapshot {
        let (file, held) = (self.file.clone(), self.held(&self.all));
        JoinedSnapshot { file, taken_us: self.taken_us, held }
    }

    fn held(&self, parts: &HolderSamples) -> BlockHolders {
        let sampled = |count| Sampled { count, variance: 0 };
        let sum = |samples| Sum::new(&self.scale, sampled(samples), self.scale.bytes(samples));
        let all = parts.values().fold(0, |all: u64, samples| all.saturating_add(*samples));
        let part = |holder: String, samples| {
            let Share { share, error } = Share::scored(sampled(samples), sampled(all), &self.scale);
            HolderPart { holder, sum: sum(samples), share, share_error: error }
        };
        let mut sorted: Vec<(&String, u64)> =
            parts.iter().map(|(holder, samples)| (holder, *samples)).collect();
        sorted.sort_by_key(|&(_, samples)| std::cmp::Reverse(samples));
        let others = sorted.split_off(sorted.len().min(Self::MOST_LISTED));
        let mut held_by: Vec<HolderPart> =
            sorted.into_iter().map(|(holder, samples)| part(holder.clone(), samples)).collect();
        if !others.is_empty() {
            let samples = others.iter().fold(0, |sum: u64, other| sum.saturating_add(other.1));
            let others = count(others.len() as u64, "other", "others");
            held_by.push(part(format!("({others})"), samples));
        }
        BlockHolders { in_snapshot: sum(all), held_by }
    }
}

impl BlockHolders {
    /// The greatest holders, each with its share and the share's error, then what is garbage: `Cache.table
    /// (82.0 % ± 3.1 %), Main.loop, thread 0 (10.2 % ± 2.4 %); garbage 7.8 % ± 2.1 %`. `None` if no sampled block was
    /// in the snapshot.
    pub fn text(&self) -> Option<String> {
        /// Holders that are named, and the least share of one.
        const MOST_NAMED: usize = 4;
        const LEAST: f64 = 0.01;
        if self.held_by.is_empty() {
            return None;
        }
        let (garbage, held): (Vec<_>, Vec<_>) =
            self.held_by.iter().partition(|part| part.holder == GARBAGE);
        let is_named = |part: &&&HolderPart| part.share >= LEAST;
        let named = held.iter().take(MOST_NAMED).take_while(is_named).count();
        let (named, others) = held.split_at(named);
        let mut texts: Vec<String> = named
            .iter()
            .map(|part| format!("{} ({})", part.holder, with_error(part.share, part.share_error)))
            .collect();
        if !others.is_empty() {
            let share: f64 = others.iter().map(|part| part.share).sum();
            // The relative error of a sum is √((1 − λ)/samples).
            let relative = self.in_snapshot.size.relative().unwrap_or(0.0);
            let error = (share * (1.0 - share)).max(0.0).sqrt() * relative;
            texts.push(format!("others ({})", with_error(share, error)));
        }
        let mut text = if held.is_empty() { "nothing".to_owned() } else { texts.join(", ") };
        for part in garbage {
            text += &format!("; garbage {}", with_error(part.share, part.share_error));
        }
        Some(text)
    }
}

/// A share with its error, unless it is exact.
fn with_error(share: f64, error: f64) -> String {
    if error == 0.0 {
        return percent(share);
    }
    format!("{} ± {}", percent(share), percent(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(name: &str) -> Site {
        Site::named(name)
    }

    fn holders(rate: f64) -> SnapshotHolders {
        let mut holders = SnapshotHolders::new("a.heap", 7, Scale::new(rate, 8.0));
        holders.add(site("A.f"), Some("A.table"), 60);
        holders.add(site("A.f"), None, 10);
        holders.add(site("A.f"), Some("A.table"), 20);
        holders.add(site("A.f"), Some("frame B.loop"), 10);
        holders.add(site("C.g"), Some("A.table"), 5);
        holders
    }

    #[test]
    fn at_rate_one_sizes_and_shares_are_exact() {
        let held = holders(1.0).of(&site("A.f"));
        assert_eq!(held.in_snapshot.size.bytes, 800.0);
        let parts: Vec<_> = held
            .held_by
            .iter()
            .map(|part| (part.holder.as_str(), part.sum.size.bytes, part.share))
            .collect();
        let expected = [("A.table", 640.0, 0.8), (GARBAGE, 80.0, 0.1), ("frame B.loop", 80.0, 0.1)];
        assert_eq!(parts, expected);
        let errors = |part: &HolderPart| (part.sum.size.error, part.share_error);
        assert!(held.held_by.iter().all(|part| errors(part) == (Some(0.0), 0.0)));
        let text = held.text().unwrap();
        assert_eq!(text, "A.table (80.0 %), frame B.loop (10.0 %); garbage 10.0 %");
    }

    #[test]
    fn an_estimate_has_its_error() {
        let held = holders(0.01).of(&site("A.f"));
        let table = &held.held_by[0];
        assert_eq!(table.sum.size.bytes, 64_000.0);
        let relative = table.sum.size.relative().unwrap();
        assert!((relative - (0.99_f64 / 80.0).sqrt()).abs() < 1e-9);
        // √(0.8 · 0.2 / 100), nearly.
        assert!((table.share_error - 0.04).abs() < 0.002, "{}", table.share_error);
        let only = holders(0.01).of(&site("C.g"));
        assert_eq!(only.held_by[0].share, 1.0);
        assert!(only.held_by[0].share_error > 0.05, "all of five samples are not all of it");
        assert!(only.text().unwrap().starts_with("A.table (100.0 % ± "));
    }

    #[test]
    fn the_snapshot_has_the_sums_of_the_rows() {
        let snapshot = holders(1.0).snapshot();
        assert_eq!((snapshot.file.as_str(), snapshot.taken_us), ("a.heap", 7));
        assert_eq!(snapshot.held.in_snapshot.samples, 105);
        assert_eq!(snapshot.held.held_by[0].sum.samples, 85);
    }

    #[test]
    fn a_row_without_blocks_in_the_snapshot_is_held_by_nobody() {
        let held = holders(1.0).of(&site("C.other"));
        assert_eq!((held.in_snapshot.samples, held.held_by.len()), (0, 0));
        assert_eq!(held.text(), None);
    }

    #[test]
    fn what_nothing_holds_is_garbage() {
        let mut holders = holders(1.0);
        holders.add(site("D.h"), None, 3);
        assert_eq!(holders.of(&site("D.h")).text().unwrap(), "nothing; garbage 100.0 %");
    }

    #[test]
    fn many_holders_are_summed_up() {
        let mut holders = SnapshotHolders::new("", 0, Scale::new(1.0, 8.0));
        for number in 0..100 {
            holders.add(site("A.f"), Some(&format!("slot {number:02}")), 200 - number);
        }
        let held = holders.of(&site("A.f"));
        assert_eq!(held.held_by.len(), SnapshotHolders::MOST_LISTED + 1);
        assert_eq!(held.held_by[0].holder, "slot 00");
        assert_eq!(held.held_by.last().unwrap().holder, "(80 others)");
        let listed: u64 = held.held_by.iter().map(|part| part.sum.samples).sum();
        assert_eq!(listed, held.in_snapshot.samples);
        let text = held.text().unwrap();
        assert!(text.contains(", slot 03 (") && text.ends_with(", others (94.7 %)"), "{text}");
    }
}
