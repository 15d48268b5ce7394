//! The diagnosis on one screen.

use std::path::Path;

use heaptap_report::diagnosis::{Diagnosis, Finding, GainedSite, HolderGrowth, Outcome, Pace};
use heaptap_report::figures::units::{bytes, count, percent, short_duration, utc};

use crate::text::escape;
use crate::text::names::{escaped, site_name, with_file};
use crate::text::terminal::{Layout, fit, wrap};

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
        let is_verdict = number == 0 && diagnosis.verdict.sentence.contains(&finding.sentence);
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
    let sentence = match diagnosis.findings.first() {
        Some(first) if verdict.outcome == Outcome::Found => {
            format!("{} ({})", verdict.sentence, first.certainty.name())
        }
        _ => verdict.sentence.clone(),
    };
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
        let kind = if finding.is_problem { finding.certainty.name() } else { "note" };
        let sentence = format!("{kind}: {}", finding.sentence);
        lines.extend(bounded(wrap(&sentence, layout.width), 3));
    }
    for (label, fact) in facts(finding) {
        let room = layout.width.saturating_sub(INDENT);
        let wrapped = bounded(wrap(&fact, room), 2);
        for (at, line) in wrapped.into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            lines.push(format!("  {label:<width$}{line}", width = INDENT - 2));
        }
    }
    lines
}

fn facts(finding: &Finding) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    if let Some(holder) = &finding.holder {
        facts.extend(pile(holder).map(|pile| ("piles up", pile)));
        facts.push(("growth", growth(holder, finding)));
    }
    const MOST_SITES: usize = 3;
    for (at, site) in finding.sites.iter().take(MOST_SITES).enumerate() {
        let label = if at == 0 { "allocated" } else { "" };
        facts.push((label, line_of(site)));
        let callers: Vec<String> = site.called_from.iter().take(2).map(named).collect();
        if at == 0 && !callers.is_empty() {
            facts.push(("called from", callers.join(" < ")));
        }
    }
    if let Some(full) = finding.full_in_us {
        facts.push(("memory", format!("lasts {} at this pace", short_duration(full))));
    }
    facts.extend(finding.advice.clone().map(|advice| ("advice", advice)));
    facts
}

fn named(site: &heaptap_report::rows::Site) -> String {
    with_file(&site_name(site), 100)
}

/// What of the holder piles up: the end of the path to it.
fn pile(holder: &HolderGrowth) -> Option<String> {
    let last = holder.path.last()?;
    Some(format!("{} of {last}", count(holder.elements?, "block", "blocks")))
}

fn growth(holder: &HolderGrowth, finding: &Finding) -> String {
    let sizes: Vec<String> = holder.sizes.iter().map(|size| bytes(*size as f64)).collect();
    let pace = match holder.pace {
        Pace::Even => "evenly",
        Pace::Steps => "in steps, each larger than the one before",
        Pace::Uneven => "unevenly",
        Pace::Slows => "less and less",
        _ => "between two snapshots",
    };
    let since = finding.since_us.map(|since| format!(", since {}", clock(since)));
    format!(
        "{}, {pace}{}; {} of all growth",
        sizes.join(" → "),
        since.unwrap_or_default(),
        percent(holder.share_of_growth)
    )
}

/// The time of day of a moment, in UTC.
fn clock(micros: u64) -> String {
    let text = utc(micros);
    let time = text.split(' ').nth(1).unwrap_or_default();
    format!("{} UTC", time.split('.').next().unwrap_or_default())
}

fn line_of(site: &GainedSite) -> String {
    let via = site.via.as_ref().map(|via| format!(" via {}", escaped(&via.name)));
    format!(
        "{}{}, {} of the growth, oldest {}",
        named(&site.site),
        via.unwrap_or_default(),
        percent(site.share),
        short_duration(site.oldest_us as f64)
    )
}

/// What was looked at, and where it is.
fn last_lines(
    diagnosis: &Diagnosis,
    closing: &[String],
    folder: Option<&Path>,
    layout: Layout,
) -> Vec<String> {
    let examined = &diagnosis.examined;
    let mut parts = Vec::new();
    if let Some(trace) = &examined.trace {
        let time = short_duration(trace.duration_us as f64);
        parts.push(format!("a trace of {time} at rate {}", trace.rate));
    }
    let snapshots = examined.snapshots.len() as u64;
    if snapshots > 0 {
        parts.push(count(snapshots, "heap snapshot", "heap snapshots"));
    }
    let points = &examined.timeline.points;
    if points.iter().any(|point| point.heap_bytes.is_some()) {
        parts.push("the collector's time line".to_owned());
    }
    let program = fit(&escaped(&examined.program), 60);
    let of = examined.pid.map_or(String::new(), |pid| format!(" (process {pid})"));
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
    let looked = format!("{program}{of}: {}", parts.join(", "));
    push(&mut lines, "looked at", &looked, layout);
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
