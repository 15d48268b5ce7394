//! Memory that a program could do without.

use super::duplicates::DuplicateStrings;
use super::empty_slots::EmptySlots;
use super::evidence::Evidence;
use super::finding::{Certainty, Finding, FindingKind};
use crate::figures::units::{bytes, count, percent};

/// Less is not worth a word.
const LEAST: u64 = 1 << 20;

/// What would save a tenth of the heap each.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let Some(last) = evidence.snapshots.last() else { return Vec::new() };
    let tables = last.empty_slots.as_ref();
    let tables = tables.and_then(|empty| empty_tables(empty, last.reachable_bytes));
    // That at the end of a program has no contents.
    let mut strings =
        evidence.snapshots.iter().rev().filter_map(|one| Some((one, one.duplicates.as_ref()?)));
    let strings = strings.next();
    let strings = strings.and_then(|(one, copies)| duplicate_strings(copies, one.reachable_bytes));
    tables.into_iter().chain(strings).collect()
}

/// The part of the heap, if that is a tenth.
fn share(saved: u64, reachable: u64) -> Option<f64> {
    let share = saved as f64 / reachable.max(1) as f64;
    (saved >= LEAST && share >= 0.1).then_some(share)
}

fn empty_tables(empty: &EmptySlots, reachable: u64) -> Option<Finding> {
    let share = share(empty.saved_bytes, reachable)?;
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

fn duplicate_strings(copies: &DuplicateStrings, reachable: u64) -> Option<Finding> {
    let share = share(copies.saved_bytes, reachable)?;
    let sentence = format!(
        "Strings are there more than once: {} would be saved, {} of what is reachable; {} of {}, and {} has most",
        bytes(copies.saved_bytes as f64),
        percent(share),
        count(copies.copies, "copy", "copies"),
        count(copies.strings, "string", "strings"),
        copies.holder,
    );
    let mut finding = Finding::new(FindingKind::DuplicateStrings, Certainty::Sure, sentence);
    finding.bytes = Some(copies.saved_bytes as f64);
    finding.advice = Some(
        "keep each string once in a table, and take it from there where it is read".to_owned(),
    );
    Some(finding)
}
