//! The facts on a heap snapshot, laid out for people.

use std::fmt::Write as _;

use heaptap_report::figures::units::{bytes, count, utc};

use super::snapshot::SnapshotFacts;
use crate::text::escape::Escaped;
use crate::text::terminal::{Layout, wrap_whole};

/// How many kinds of custom blocks are shown.
const SHOWN_CUSTOMS: usize = 10;

/// Two columns.
pub(super) fn report(facts: &SnapshotFacts, layout: Layout) -> String {
    let mut text = String::new();
    for (label, value) in about(facts).into_iter().chain(counts(facts)) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{label:<15} {}", wrap_whole(&value, 16, layout.width));
    }
    text
}

fn shown(text: Option<&String>) -> String {
    match text {
        None => "-".to_owned(),
        Some(text) => Escaped(text.as_bytes()).to_string(),
    }
}

/// Of which program, when and why.
fn about(facts: &SnapshotFacts) -> Vec<(&'static str, String)> {
    let number = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
    let mut rows = vec![
        ("heap snapshot", facts.name.clone()),
        ("program", shown(facts.program.as_ref())),
        ("runtime", shown(facts.runtime.as_ref())),
        ("host", shown(facts.host.as_ref())),
        ("process id", number(facts.pid)),
        ("taken", facts.time_unix_ns.map_or("-".to_owned(), |time| utc(time / 1000))),
        ("reason", shown(facts.reason.as_ref())),
        ("method", shown(facts.method.as_ref())),
        ("collector", shown(facts.gc_phase.as_ref())),
    ];
    if facts.trace_file.is_some() {
        rows.push(("trace", shown(facts.trace_file.as_ref())));
    }
    let state = match (facts.complete, &facts.error) {
        (true, _) => "complete",
        (false, Some(_)) => "damaged",
        (false, None) => "cut short",
    };
    rows.push(("state", state.to_owned()));
    rows
}

fn counts(facts: &SnapshotFacts) -> Vec<(&'static str, String)> {
    let words =
        |words: u64| format!("{} ({})", count(words, "word", "words"), bytes(words as f64 * 8.0));
    let mut rows = vec![
        ("blocks", facts.blocks.to_string()),
        ("size", format!("{} without headers", words(facts.words))),
        ("pointers", facts.pointers.to_string()),
    ];
    let labels = |first: &'static str| std::iter::once(first).chain(std::iter::repeat(""));
    for (label, segment) in labels("segments").zip(&facts.segments) {
        rows.push((label, format!("{} {}, {}", segment.count, segment.kind, words(segment.words))));
    }
    for (label, root) in labels("roots").zip(&facts.roots) {
        rows.push((label, format!("{} of {}", root.count, root.kind)));
    }
    let finalisers = &facts.finalisers;
    rows.push((
        "finalisers",
        format!(
            "{} first, {} last, {} pending",
            finalisers.first, finalisers.last, finalisers.pending
        ),
    ));
    rows.push((
        "ephemerons",
        format!("{} with {}", facts.ephemerons, count(facts.ephemeron_keys, "key", "keys")),
    ));
    rows.push((
        "outside",
        format!("{} held by blocks of the heap", bytes(facts.outside_bytes as f64)),
    ));
    if facts.mapped_bytes > 0 {
        let mapped = bytes(facts.mapped_bytes as f64);
        rows.push(("mapped", format!("{mapped} of files, held by custom blocks")));
    }
    for (label, custom) in labels("custom blocks").zip(facts.customs.iter().take(SHOWN_CUSTOMS)) {
        let identifier = Escaped(custom.identifier.as_bytes());
        let outside = bytes(custom.outside_bytes as f64);
        let mapped = match custom.mapped_bytes {
            0 => String::new(),
            mapped => format!(", {} mapped", bytes(mapped as f64)),
        };
        rows.push((label, format!("{} of {identifier}, {outside} outside{mapped}", custom.blocks)));
    }
    if let Some(more) = facts.customs.len().checked_sub(SHOWN_CUSTOMS + 1) {
        rows.push(("", format!("… {} more", count(more as u64 + 1, "kind", "kinds"))));
    }
    if let Some(limit) = facts.string_bytes {
        rows.push(("strings", format!("{}, up to {limit} bytes each", facts.strings)));
    }
    rows.push((
        "names",
        format!(
            "{} of code, {}, {}",
            facts.named_codes,
            count(facts.modules, "module", "modules"),
            count(facts.threads, "thread", "threads")
        ),
    ));
    rows.push(("followed", format!("{} of the trace", count(facts.followed, "block", "blocks"))));
    rows
}
