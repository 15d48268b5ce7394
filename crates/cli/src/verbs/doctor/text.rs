//! The diagnosis on one screen.

use std::path::Path;

use heaptap_report::diagnosis::{Diagnosis, Finding, Outcome};
use heaptap_report::figures::units::{bytes, count};

use crate::text::terminal::{Layout, wrap};
use crate::text::{diagnosis, escape};

/// The most lines: those of a small terminal, with room for the prompt.
pub(super) const MOST_LINES: usize = 24;

/// Columns before the facts of a finding.
const INDENT: usize = 14;

/// The text. `closing`: what became of the program; `folder`: where the files are, if they are kept.
pub(super) fn text(
    diagnosis: &Diagnosis,
    closing: &[String],
    folder: Option<&Path>,
    layout: Layout,
) -> String {
    let end = last_lines(diagnosis, closing, folder, layout);
    let mut lines = verdict(diagnosis, layout);
    // What does not fit is named in a line of its own.
    let room = MOST_LINES.saturating_sub(end.len() + 1);
    let mut shown = 0;
    for (number, finding) in diagnosis.findings.iter().enumerate() {
        let is_verdict = number == 0 && diagnosis::is_said(diagnosis, finding);
        let of_finding = finding_lines(finding, is_verdict, layout);
        if lines.len() + of_finding.len() > room {
            break;
        }
        lines.extend(of_finding);
        shown += 1;
    }
    let more = diagnosis.findings.len() - shown;
    if more > 0 {
        let findings = count(more as u64, "more finding", "more findings");
        lines.push(format!("{findings}: `heaptap doctor --json` and the page of -o have all"));
    }
    lines.extend(end);
    lines.truncate(MOST_LINES);
    lines.join("\n") + "\n"
}

fn verdict(diagnosis: &Diagnosis, layout: Layout) -> Vec<String> {
    let verdict = &diagnosis.verdict;
    let sentence = diagnosis::verdict(diagnosis);
    let mut lines = bounded(wrap(&sentence, layout.width), 4);
    for line in &mut lines {
        *line = match verdict.outcome {
            Outcome::Found => layout.bad(line),
            Outcome::NothingWrong => layout.good(line),
            Outcome::CannotTell => layout.strong(line),
        };
    }
    if let Some(command) = &verdict.command {
        lines.push(format!("{:<INDENT$}{command}", "  try"));
    }
    lines
}

/// No more than so many lines, the last with a sign that more is missing.
fn bounded(mut lines: Vec<String>, most: usize) -> Vec<String> {
    if lines.len() > most {
        lines.truncate(most);
        lines.last_mut().into_iter().for_each(|line| line.push('…'));
    }
    lines
}

/// `is_verdict`: its sentence has been said.
fn finding_lines(finding: &Finding, is_verdict: bool, layout: Layout) -> Vec<String> {
    let mut lines = Vec::new();
    if !is_verdict {
        let sentence = diagnosis::finding(finding);
        lines.extend(bounded(wrap(&sentence, layout.width), 3));
    }
    for (label, fact) in diagnosis::facts(finding) {
        let room = layout.width.saturating_sub(INDENT);
        let wrapped = bounded(wrap(&fact, room), 2);
        for (at, line) in wrapped.into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            lines.push(format!("  {label:<width$}{line}", width = INDENT - 2));
        }
    }
    lines
}

/// What was looked at, and where it is.
fn last_lines(
    diagnosis: &Diagnosis,
    closing: &[String],
    folder: Option<&Path>,
    layout: Layout,
) -> Vec<String> {
    let examined = &diagnosis.examined;
    let mut lines = Vec::new();
    if let Some(last) = examined.snapshots.last() {
        lines.push(format!(
            "{:<INDENT$}{} reachable, {} garbage, {} outside the heap",
            "memory",
            bytes(last.reachable_bytes as f64),
            bytes(last.garbage_bytes as f64),
            bytes(last.outside_bytes as f64)
        ));
    }
    push(&mut lines, "looked at", &diagnosis::looked_at(examined), layout);
    for line in closing.iter().take(2) {
        push(&mut lines, "", line, layout);
    }
    for remark in diagnosis.remarks.iter().take(2) {
        push(&mut lines, "remark", remark, layout);
    }
    if let Some(folder) = folder {
        push(&mut lines, "files", &format!("{}/doctor.html", escape::path(folder)), layout);
    }
    lines.iter().map(|line| layout.faint(line)).collect()
}

fn push(lines: &mut Vec<String>, label: &str, text: &str, layout: Layout) {
    let wrapped = bounded(wrap(text, layout.width.saturating_sub(INDENT)), 2);
    for (at, line) in wrapped.into_iter().enumerate() {
        let label = if at == 0 { label } else { "" };
        lines.push(format!("{label:<INDENT$}{line}"));
    }
}
