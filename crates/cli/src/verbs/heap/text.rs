//! The figures, laid out for people.

use std::fmt::Write as _;

use heaptap_report::figures::heap::findings::Finding;
use heaptap_report::figures::heap::tables::{FiberStacks, HeapFigures, HeapRow, HeapTable};
use heaptap_report::figures::heap::types::{TypeFigures, TypedShare};
use heaptap_report::figures::units::{bytes, count, percent, utc};

use crate::text::names::escaped;
use crate::text::terminal::{Layout, fit, wrap, wrap_indented};

/// Totals, by kind of root, the table, and what deserves a look.
pub(super) fn report(figures: &HeapFigures, layout: Layout) -> String {
    let mut text = String::new();
    for (label, value) in totals(figures) {
        let value = wrap_indented(&value, 13, layout.width);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {value}", layout.strong(&format!("{label:<12}")));
    }
    let all = figures.summary.reachable.bytes;
    append_table(&mut text, &figures.kinds, all, layout);
    if figures.table.by != figures.kinds.by {
        append_table(&mut text, &figures.table, all, layout);
    }
    append_findings(&mut text, &figures.findings, layout);
    text
}

fn totals(figures: &HeapFigures) -> Vec<(&'static str, String)> {
    let taken =
        figures.summary.taken_us.map(|time| format!(", taken {}", utc(time))).unwrap_or_default();
    let garbage = figures.summary.all.bytes.saturating_sub(figures.summary.reachable.bytes);
    let mut totals = vec![
        (
            "program",
            format!(
                "{}, {}{taken}",
                escaped(&figures.summary.program),
                escaped(&figures.summary.runtime)
            ),
        ),
        (
            "reachable",
            format!(
                "{} in {}",
                bytes(figures.summary.reachable.bytes as f64),
                count(figures.summary.reachable.blocks, "block", "blocks")
            ),
        ),
        ("garbage", format!("{} that no collection has freed yet", bytes(garbage as f64))),
    ];
    if figures.summary.outside_bytes > 0 {
        let held = bytes(figures.summary.outside_bytes as f64);
        totals.push(("outside", format!("{held} outside the heap, held by blocks in it")));
    }
    if figures.summary.mapped_bytes > 0 {
        let mapped = bytes(figures.summary.mapped_bytes as f64);
        totals.push(("mapped", format!("{mapped} of files, held by custom blocks")));
    }
    if let Some(stacks) = &figures.summary.stacks {
        totals.push(("stacks", of_stacks(stacks)));
    }
    if figures.summary.dangling > 0 {
        let lost = count(figures.summary.dangling, "pointer leads", "pointers lead");
        totals
            .push(("dangling", format!("{lost} to no block; `heaptap snapshot --check` has more")));
    }
    totals.extend(figures.type_files.iter().map(|files| ("types", escaped(&files.text))));
    if let Some(types) = &figures.types {
        totals.push((if figures.type_files.is_some() { "" } else { "types" }, typed(types)));
        totals.extend(types.notes.iter().map(|note| ("", escaped(note))));
    }
    totals
}

/// What stacks take beside the heap.
fn of_stacks(stacks: &FiberStacks) -> String {
    let size = |size: u64| bytes(size as f64);
    let mut parts = vec![format!("{} of what runs", size(stacks.running_bytes))];
    if stacks.suspended_fibers > 0 {
        let fibers = count(stacks.suspended_fibers, "suspended fiber", "suspended fibers");
        parts.insert(0, format!("{} of {fibers}", size(stacks.suspended_bytes)));
    }
    if stacks.free_bytes > 0 {
        parts.push(format!("{} free", size(stacks.free_bytes)));
    }
    format!("{}; not in the heap", parts.join(", "))
}

/// How much of the heap has types.
fn typed(types: &TypeFigures) -> String {
    let shares = types.shares();
    let (blocks, words) = shares
        .iter()
        .fold((0, 0), |(blocks, words), (_, share)| (blocks + share.blocks, words + share.words));
    let part = |(name, share): &(&str, TypedShare)| {
        let of_blocks = percent(share.blocks as f64 / blocks.max(1) as f64);
        let of_words = percent(share.words as f64 / words.max(1) as f64);
        format!("{name} {of_blocks} of blocks and {of_words} of words")
    };
    shares.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Columns before the name: three sizes and a share.
const NUMBERS: usize = 3 * 11 + 9;

fn append_table(text: &mut String, table: &HeapTable, all: u64, layout: Layout) {
    let head =
        format!("{:>10} {:>10} {:>10} {:>8}  {}", "reachable", "exclusive", "first", "", table.by);
    let _ = writeln!(text, "\n{}", layout.strong(&fit(&head, layout.width)));
    let room = layout.width.saturating_sub(NUMBERS + 2).max(10);
    for row in &table.rows {
        let _ = writeln!(text, "{}", line(row, all, room));
    }
    if table.other_rows > 0 {
        let others = &table.other_first_reached;
        let _ = writeln!(
            text,
            "{:>10} {:>10} {:>10} {:>8}  ({} others){}",
            "",
            "",
            bytes(others.bytes as f64),
            share(others.bytes, all),
            table.other_rows,
            beside(&[(table.other_first_outside_bytes, "outside")])
        );
    }
}

fn share(part: u64, all: u64) -> String {
    percent(part as f64 / all.max(1) as f64)
}

/// What there is beside what the columns count: sizes and what they are.
fn beside(sizes: &[(u64, &str)]) -> String {
    let sizes = sizes.iter().filter(|(size, _)| *size > 0);
    let sizes: Vec<_> =
        sizes.map(|(size, what)| format!("{} {what}", bytes(*size as f64))).collect();
    if sizes.is_empty() { String::new() } else { format!(" (+ {})", sizes.join(", ")) }
}

/// A long name is cut, what is outside the heap never: it has a line of its own if too little is left for the name.
fn line(row: &HeapRow, all: u64, room: usize) -> String {
    const LEAST_NAME: usize = 16;
    let outside = match (row.outside_bytes, row.first_outside_bytes) {
        (0, first) => (first, "outside, shared"),
        (alone, _) => (alone, "outside"),
    };
    let further = beside(&[outside, (row.mapped_bytes, "mapped")]);
    let left = room.saturating_sub(further.chars().count());
    let fits = left >= row.name.chars().count().min(LEAST_NAME);
    let name = fit(&row.name, if fits { left } else { room });
    let further = if fits { further } else { format!("\n{:NUMBERS$} {further}", "") };
    format!(
        "{:>10} {:>10} {:>10} {:>8}  {name}{further}",
        bytes(row.reachable_bytes as f64),
        bytes(row.exclusive_bytes as f64),
        bytes(row.first_reached.bytes as f64),
        share(row.first_reached.bytes, all),
    )
}

fn append_findings(text: &mut String, findings: &[Finding], layout: Layout) {
    if findings.is_empty() {
        let none = "Nothing piles up: no table, list or cache holds a tenth of the heap in like blocks, no \
                    finaliser holds its own value.";
        let _ = writeln!(text, "\n{}", layout.good(&wrap(none, layout.width).join("\n")));
        return;
    }
    let _ = writeln!(text, "\n{}", layout.strong("What deserves a look"));
    for (number, finding) in (1..).zip(findings) {
        let _ = writeln!(text, "{number:>3}. {}", wrap_indented(&finding.text, 5, layout.width));
        let path = finding.path.join(" > ");
        let _ = writeln!(text, "     {}", layout.faint(&wrap_indented(&path, 5, layout.width)));
    }
}
