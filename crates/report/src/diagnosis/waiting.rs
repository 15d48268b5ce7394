//! Threads, fibers and finalisers that pile up.

use super::evidence::Evidence;
use super::finding::{Certainty, Finding, FindingKind};
use super::holders::that_count;
use super::pace::{Point, pace};
use crate::figures::units::{bytes, count};

/// Threads that are begun and do not end.
pub(super) fn threads(evidence: &Evidence) -> Option<Finding> {
    const LEAST: u64 = 8;
    let points = &evidence.timeline.points;
    let known: Vec<Point> = points
        .iter()
        .filter_map(|point| {
            let bytes = point.threads? as f64;
            Some(Point { seconds: point.at_us as f64 / 1e6, allocated: None, bytes })
        })
        .collect();
    let part = |part: usize| known.get(part * known.len().saturating_sub(1) / 6).copied();
    let few: Vec<Point> = (0..=6).filter_map(part).collect();
    let (first, last) = (known.first()?.bytes as u64, known.last()?.bytes as u64);
    if last < first + LEAST || !pace(&few, false).keeps_growing() {
        return None;
    }
    let sentence = format!(
        "Threads are begun and do not end: there were {first} at first and {last} at last, each with its stack"
    );
    let mut finding = Finding::new(FindingKind::Threads, Certainty::Likely, sentence);
    finding.since_us = points.first().map(|point| point.at_us);
    finding.advice =
        Some("`heap SNAPSHOT --by thread` shows what each holds, and where it waits".to_owned());
    Some(finding)
}

/// Fibers that wait for ever.
pub(super) fn fibers(evidence: &Evidence) -> Option<Finding> {
    const LEAST: u64 = 100;
    let counted = that_count(evidence);
    let points: Vec<Point> = counted
        .iter()
        .filter_map(|snapshot| Some(snapshot.point(snapshot.suspended_fibers?)))
        .collect();
    let (first, last) = (counted.first()?, counted.last()?);
    let (before, after) = (first.suspended_fibers?, last.suspended_fibers?);
    if points.len() < 3 || after < before + LEAST || !pace(&points, false).keeps_growing() {
        return None;
    }
    let sentence = format!(
        "Fibers wait and are not continued: {before} at first, {} at last, with {} of stacks",
        count(after, "fiber", "fibers"),
        bytes(last.suspended_stack_bytes as f64),
    );
    let mut finding = Finding::new(FindingKind::Fibers, Certainty::Likely, sentence);
    finding.bytes = Some(last.suspended_stack_bytes as f64);
    finding.since_us = Some(first.taken_us);
    finding.advice =
        Some("continue or discontinue each; `heap SNAPSHOT` shows who holds them".to_owned());
    Some(finding)
}

/// Values that their own finalisers keep, unless a leak has said so.
pub(super) fn cycles(evidence: &Evidence, found: &[Finding]) -> Option<Finding> {
    const LEAST: u64 = 100;
    let last = evidence.snapshots.last()?;
    let all = last.findings.iter().filter(|finding| finding.kind == "finaliser cycle");
    let cycle =
        all.max_by_key(|finding| finding.retained_bytes.saturating_add(finding.outside_bytes))?;
    let is_said = found.iter().any(|finding| finding.advice.as_ref() == Some(&cycle.text));
    if is_said || cycle.elements < LEAST {
        return None;
    }
    let mut finding =
        Finding::new(FindingKind::FinaliserCycle, Certainty::Sure, cycle.text.clone());
    finding.bytes = Some(cycle.retained_bytes.saturating_add(cycle.outside_bytes) as f64);
    Some(finding)
}
