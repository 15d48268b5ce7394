//! A diagnosis in lines, for `doctor` and `top`.

use heaptap_report::diagnosis::{
    Diagnosis, Examined, Finding, GainedSite, HolderGrowth, Outcome, Pace,
};
use heaptap_report::figures::units::{bytes, count, percent, short_duration, utc};
use heaptap_report::rows::Site;

use crate::text::names::{escaped, site_name, with_file};
use crate::text::terminal::fit;

/// The verdict with how sure it is.
pub(crate) fn verdict(diagnosis: &Diagnosis) -> String {
    let verdict = &diagnosis.verdict;
    match diagnosis.findings.first() {
        Some(first) if verdict.outcome == Outcome::Found => {
            format!("{} ({})", verdict.sentence, first.certainty.name())
        }
        _ => verdict.sentence.clone(),
    }
}

/// Whether the verdict says what a finding does.
pub(crate) fn is_said(diagnosis: &Diagnosis, finding: &Finding) -> bool {
    diagnosis.verdict.sentence.contains(&finding.sentence)
}

/// The sentence of a finding behind how sure it is.
pub(crate) fn finding(finding: &Finding) -> String {
    let kind = if finding.is_problem { finding.certainty.name() } else { "note" };
    format!("{kind}: {}", finding.sentence)
}

/// What else there is to say of a finding, each with a label; the label is empty if it is that of the fact before.
pub(crate) fn facts(finding: &Finding) -> Vec<(&'static str, String)> {
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

fn named(site: &Site) -> String {
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

/// What was looked at, and of which program.
pub(crate) fn looked_at(examined: &Examined) -> String {
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
    format!("{program}{of}: {}", parts.join(", "))
}
