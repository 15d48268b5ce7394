//! Memory that no holder explains: outside the heap, free but kept by the allocator, dead but not collected.

use super::evidence::{Evidence, SnapshotEvidence, TimelinePoint};
use super::finding::{Certainty, Finding, FindingKind};
use super::pace::{Point, pace};
use crate::figures::units::{bytes, percent};

/// Less of either is not worth a word.
const LEAST: f64 = 32.0 * 1024.0 * 1024.0;

/// Memory outside the heap, unless leaks explain it.
pub(super) fn outside(evidence: &Evidence) -> Option<Finding> {
    let rate = unexplained_outside(evidence)?;
    let last = evidence.timeline.points.iter().rev().find_map(outside_bytes)?;
    let held = evidence.snapshots.last().map_or(0, |snapshot| snapshot.outside_bytes);
    let sentence = format!(
        "The process grows by {}/s outside OCaml's heap, and no value of the program holds it: {} are outside, of \
         which values hold {}",
        bytes(rate),
        bytes(last),
        bytes(held as f64),
    );
    let mut finding = Finding::new(FindingKind::OutsideHeap, Certainty::Likely, sentence);
    finding.bytes = Some(last);
    finding.bytes_per_second = Some(rate);
    finding.since_us = evidence.timeline.points.first().map(|point| point.at_us);
    finding.full_in_us = full_in(evidence, rate);
    finding.advice = Some(
        "look for C code that allocates: `heap FILE --by custom` shows what values keep".to_owned(),
    );
    Some(finding)
}

/// Resident memory that is no heap.
fn outside_bytes(point: &TimelinePoint) -> Option<f64> {
    Some(point.rss_bytes?.saturating_sub(point.heap_bytes?) as f64)
}

/// How fast the process grows outside its heap, less what values hold there, in bytes a second; `None` if it does not.
pub(super) fn unexplained_outside(evidence: &Evidence) -> Option<f64> {
    const LEAST_GROWTH: f64 = 16.0 * 1024.0 * 1024.0;
    let points = &evidence.timeline.points;
    // At first there is what tracing itself takes.
    let points = points.get(points.len() / 8..)?;
    let sizes: Vec<Point> = points
        .iter()
        .filter_map(|point| {
            let bytes = outside_bytes(point)?;
            Some(Point { seconds: point.at_us as f64 / 1e6, allocated: None, bytes })
        })
        .collect();
    let ([first, .., last], true) = (&sizes[..], sizes.len() >= 8) else { return None };
    // In eight stretches: a single one varies.
    let few: Vec<Point> =
        (0..=8).filter_map(|part| sizes.get(part * (sizes.len() - 1) / 8)).copied().collect();
    if !pace(&few, false).keeps_growing() {
        return None;
    }
    let held = evidence.snapshots.last()?.outside_bytes as f64
        - evidence.snapshots.first()?.outside_bytes as f64;
    let growth = last.bytes - first.bytes - held.max(0.0);
    let seconds = last.seconds - first.seconds;
    (growth >= LEAST_GROWTH && growth >= 0.1 * first.bytes && seconds > 0.0)
        .then(|| growth / seconds)
}

/// Free memory that the allocator keeps.
pub(super) fn free(evidence: &Evidence) -> Option<Finding> {
    let points = &evidence.timeline.points;
    let last = points.iter().rev().find(|point| point.used_bytes.is_some())?;
    let (heap, used) = (last.heap_bytes? as f64, last.used_bytes? as f64);
    let free = heap - used;
    if free < LEAST || free < 0.6 * heap {
        return None;
    }
    let sentence = format!(
        "{} of the heap's {} are free, and stay with the process: the heap was larger once, or is fragmented",
        bytes(free),
        bytes(heap),
    );
    let mut finding = Finding::new(FindingKind::FreeMemory, Certainty::Likely, sentence);
    finding.bytes = Some(free);
    finding.is_problem = free > 0.8 * heap;
    finding.advice = Some(
        "Gc.compact () returns it after a peak; in OCaml 4 the best-fit policy (OCAMLRUNPARAM=a=2) fragments least"
            .to_owned(),
    );
    Some(finding)
}

/// Dead blocks that wait for the collector.
pub(super) fn garbage(evidence: &Evidence) -> Option<Finding> {
    let last = evidence.snapshots.last()?;
    let (garbage, live) = (last.garbage_bytes as f64, last.reachable_bytes as f64);
    if garbage < LEAST || garbage < 1.5 * live {
        return None;
    }
    let sentence = format!(
        "{} of the heap are garbage that waits for the collector ({} of what is there): it is no leak",
        bytes(garbage),
        percent(garbage / (garbage + live)),
    );
    let mut finding = Finding::new(FindingKind::Garbage, Certainty::Sure, sentence);
    finding.bytes = Some(garbage);
    finding.advice = Some(
        "a lower space_overhead (OCAMLRUNPARAM=o=40) collects sooner, and takes more time"
            .to_owned(),
    );
    Some(finding)
}

/// How long the memory lasts at this pace, in microseconds; `None` if no limit is known, or if it is years.
pub(super) fn full_in(evidence: &Evidence, bytes_per_second: f64) -> Option<f64> {
    const YEAR: f64 = 365.0 * 86_400e6;
    let limit = evidence.limit.as_ref()?.bytes as f64;
    let rss = evidence.timeline.points.iter().rev().find_map(|point| point.rss_bytes);
    let used = rss.or_else(|| evidence.snapshots.last().map(SnapshotEvidence::all_bytes))?;
    let left = (limit - used as f64).max(0.0);
    let full = left / bytes_per_second * 1e6;
    (full.is_finite() && full < YEAR).then_some(full)
}
