//! Memory that a program could do without.

use super::evidence::Evidence;
use super::finding::{Certainty, Finding, FindingKind};
use crate::figures::units::{bytes, count, percent};

/// Tables that are mostly empty, if others would save a tenth of the heap.
pub(super) fn finding(evidence: &Evidence) -> Option<Finding> {
    const LEAST: u64 = 1 << 20;
    let last = evidence.snapshots.last()?;
    let empty = last.empty_slots.as_ref()?;
    let share = empty.saved_bytes as f64 / last.reachable_bytes.max(1) as f64;
    if empty.saved_bytes < LEAST || share < 0.1 {
        return None;
    }
    let sentence = format!(
        "Tables are mostly empty: {} would be saved, {} of what is reachable; {} has most, with {} of {} filled",
        bytes(empty.saved_bytes as f64),
        percent(share),
        empty.holder,
        empty.filled,
        count(empty.slots, "slot", "slots"),
    );
    let mut finding = Finding::new(FindingKind::EmptyTables, Certainty::Sure, sentence);
    finding.bytes = Some(empty.saved_bytes as f64);
    finding.advice = Some(
        "Hashtbl.reset shrinks a table, and Hashtbl.clear and Hashtbl.remove do not: build it anew after a peak"
            .to_owned(),
    );
    Some(finding)
}
