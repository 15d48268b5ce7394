//! How holders grow from snapshot to snapshot: the strongest evidence of a leak.

use std::collections::BTreeSet;

use super::evidence::{Evidence, HolderKind, HolderSize, SnapshotEvidence};
use super::pace::{Pace, Point, growth_of_halves, pace};

/// A holder in all snapshots that count.
#[derive(Clone, Debug)]
pub(super) struct HolderSeries {
    pub(super) name: String,
    pub(super) kind: HolderKind,
    pub(super) pace: Pace,
    pub(super) before: HolderSize,
    pub(super) after: HolderSize,
    /// In all snapshots, those before the first that counts too.
    pub(super) sizes: Vec<u64>,
    pub(super) bytes_per_second: f64,
    /// What it gained in the earlier half of the time, and in the later half.
    pub(super) early_growth: f64,
    pub(super) late_growth: f64,
    /// How many snapshots count.
    pub(super) points: usize,
    /// The time of the last snapshot at which it had not begun to grow.
    pub(super) since_us: u64,
    /// Its part of all that holders gained.
    pub(super) share_of_growth: f64,
}

impl HolderSeries {
    pub(super) fn growth(&self) -> u64 {
        self.after.all_bytes().saturating_sub(self.before.all_bytes())
    }

    /// Whether most of the growth is outside the heap.
    pub(super) fn grows_outside(&self) -> bool {
        let outside = self.after.outside_bytes.saturating_sub(self.before.outside_bytes);
        outside > self.growth() / 2
    }
}

/// Less growth says nothing.
const LEAST_GROWTH: u64 = 96 << 10;
/// Of all growth: less is a leak that can wait.
const LEAST_SHARE: f64 = 0.01;
/// A process that is younger still loads what it needs.
const START_US: u64 = 60_000_000;

/// When the process began; at the latest with its trace.
fn began_us(evidence: &Evidence) -> Option<u64> {
    let of_snapshot = || evidence.snapshots.last().and_then(|last| last.began_us);
    let of_trace = || evidence.trace.as_ref().map(|trace| trace.began_us);
    evidence.began_us.or_else(of_snapshot).or_else(of_trace)
}

/// Whether the process had filled what any program needs when the first snapshot that counts was taken.
pub(super) fn is_settled(evidence: &Evidence) -> bool {
    const SETTLED_US: u64 = 15_000_000;
    let first = that_count(evidence).first();
    first
        .zip(began_us(evidence))
        .is_some_and(|(first, began)| first.taken_us.saturating_sub(began) >= SETTLED_US)
}

/// Whether the process was hardly older than its start when it was looked at last.
pub(super) fn is_young(evidence: &Evidence) -> bool {
    const AGE_US: u64 = 55_000_000;
    let last = evidence.snapshots.last().map(|last| last.taken_us);
    last.zip(began_us(evidence)).is_some_and(|(last, began)| last.saturating_sub(began) < AGE_US)
}

/// The snapshots that count: the first of a young process is left out if there are enough without it.
pub(super) fn that_count(evidence: &Evidence) -> &[SnapshotEvidence] {
    let all = &evidence.snapshots[..];
    let is_young = all
        .first()
        .zip(began_us(evidence))
        .is_none_or(|(first, began)| first.taken_us.saturating_sub(began) < START_US);
    match all {
        [_, rest @ ..] if is_young && rest.len() >= 3 => rest,
        all => all,
    }
}

/// The holders that have grown, the fastest first.
pub(super) fn growing(evidence: &Evidence) -> Vec<HolderSeries> {
    let counted = that_count(evidence);
    let ([first, ..], [.., last]) = (counted, counted) else { return Vec::new() };
    let seconds = last.taken_us.saturating_sub(first.taken_us) as f64 / 1e6;
    if counted.len() < 2 || seconds <= 0.0 {
        return Vec::new();
    }
    let names: BTreeSet<&str> = last.holders.iter().map(|holder| holder.name.as_str()).collect();
    let all = names.into_iter().map(|name| series(evidence, counted, name, seconds));
    let mut grown: Vec<HolderSeries> = all.filter(|series| series.growth() > 0).collect();
    let sum: u64 = grown.iter().map(HolderSeries::growth).fold(0, u64::saturating_add);
    for series in &mut grown {
        series.share_of_growth = series.growth() as f64 / sum.max(1) as f64;
    }
    grown.retain(|series| series.growth() >= LEAST_GROWTH && series.share_of_growth >= LEAST_SHARE);
    grown.sort_by(|one, other| other.bytes_per_second.total_cmp(&one.bytes_per_second));
    grown
}

fn series(
    evidence: &Evidence,
    counted: &[SnapshotEvidence],
    name: &str,
    seconds: f64,
) -> HolderSeries {
    let size = |snapshot: &SnapshotEvidence| snapshot.holder(name).map_or(0, HolderSize::all_bytes);
    let points: Vec<Point> =
        counted.iter().map(|snapshot| snapshot.point(size(snapshot))).collect();
    let ends = |snapshot: Option<&SnapshotEvidence>| {
        snapshot.and_then(|snapshot| snapshot.holder(name)).cloned().unwrap_or_default()
    };
    let (before, after) = (ends(counted.first()), ends(counted.last()));
    let growth = after.all_bytes().saturating_sub(before.all_bytes());
    let in_one_block = after.biggest_block >= after.bytes / 3 && after.biggest_block > 4096;
    let kind = after.kind;
    let (early_growth, late_growth) = growth_of_halves(&points);
    HolderSeries {
        name: name.to_owned(),
        kind,
        pace: pace(&points, in_one_block),
        bytes_per_second: growth as f64 / seconds,
        early_growth,
        late_growth,
        points: points.len(),
        since_us: since(&evidence.snapshots, size),
        sizes: evidence.snapshots.iter().map(size).collect(),
        before,
        after,
        share_of_growth: 0.0,
    }
}

/// When growth began, as far as it was seen: at the last snapshot with hardly more than there was at first.
fn since(snapshots: &[SnapshotEvidence], size: impl Fn(&SnapshotEvidence) -> u64) -> u64 {
    let (Some(first), Some(last)) = (snapshots.first(), snapshots.last()) else { return 0 };
    let little = (size(last).saturating_sub(size(first))) / 20;
    let still = |snapshot: &&SnapshotEvidence| size(snapshot) <= size(first) + little;
    let still = snapshots.iter().take_while(still).last();
    still.map_or(first.taken_us, |snapshot| snapshot.taken_us)
}
