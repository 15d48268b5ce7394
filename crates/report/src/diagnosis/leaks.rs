//! Leaks and caches that fill: what the snapshots say of holders, what the trace says of sites, and both together.

use super::evidence::{Evidence, HolderKind, TraceSite, TraceVerdict};
use super::finding::{Certainty, Finding, FindingKind, HolderGrowth};
use super::holders::{HolderSeries, growing, is_settled, is_young, that_count};
use super::memory::{full_in, unexplained_outside};
use super::pace::Pace;
use super::sites::{GainedSite, HolderGain};
use crate::escape::Escaped;
use crate::figures::units::{bytes, percent, short_duration};
use crate::rows::Site;

/// The most leaks that are named.
const MOST: usize = 8;
/// Of all growth of a young program: less is one of the many things that it loads.
const LEAST_SHARE_OF_YOUNG: f64 = 0.05;

/// Leaks, and holders that fill.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let grown = growing(evidence);
    let mut found: Vec<Finding> =
        grown.iter().filter_map(|series| of_holder(evidence, series)).take(MOST).collect();
    if evidence.snapshots.len() < 2 {
        found.extend(of_kept_births(evidence));
        if found.is_empty() {
            found.extend(of_trace(evidence));
        }
    }
    found
}

/// What the snapshots and their join with the trace say of a holder.
fn of_holder(evidence: &Evidence, series: &HolderSeries) -> Option<Finding> {
    let gain = evidence.gains.iter().find(|gain| gain.holder == series.name);
    let kept = gain.and_then(HolderGain::keeps_all);
    let certainty = certainty(evidence, series, kept, gain)?;
    // What a program loads, and its first batch, look the same until they are done.
    let is_young = is_young(evidence);
    let certainty = if is_young { certainty.max(Certainty::Possible) } else { certainty };
    let kind = match series.pace {
        Pace::Slows => FindingKind::Filling,
        _ if series.kind == HolderKind::Fiber => FindingKind::Fibers,
        _ => FindingKind::Leak,
    };
    let sites = gain.map(|gain| gain.sites.clone()).unwrap_or_default();
    let is_vague = is_young && certainty == Certainty::Possible;
    let verb = if is_vague && evidence.has_ended { GREW } else { verb(kind, certainty) };
    let mut finding = Finding::new(kind, certainty, sentence(series, verb, &sites));
    finding.bytes = Some(series.after.all_bytes() as f64);
    finding.bytes_per_second = Some(series.bytes_per_second);
    finding.since_us = Some(series.since_us);
    finding.holder = Some(holder_growth(evidence, series));
    finding.sites = sites;
    if kind == FindingKind::Filling {
        finding.advice = Some("if it has no bound, it is a leak: look again later".to_owned());
    } else {
        let lasts = || full_in(evidence, series.bytes_per_second);
        // A program that loads does not load for ever.
        finding.full_in_us = if is_vague { None } else { lasts() };
        let loads = || "the program is young, and may still fill what it needs: look again later";
        finding.advice = advice(evidence, series).or_else(|| is_young.then(|| loads().to_owned()));
    }
    Some(finding)
}

/// How sure it is that the holder leaks, or fills; `None` if it does neither.
fn certainty(
    evidence: &Evidence,
    series: &HolderSeries,
    kept: Option<bool>,
    gain: Option<&HolderGain>,
) -> Option<Certainty> {
    let said = gain.and_then(|gain| of_rule(evidence, gain));
    if series.pace == Pace::Uneven && is_replaced(evidence, series, gain) {
        return None;
    }
    if !is_settled(evidence) && (series.points < 4 || series.share_of_growth < 0.1) {
        // A young program fills what it needs, and that looks the same.
        let is_much = series.share_of_growth >= LEAST_SHARE_OF_YOUNG;
        let grows = series.pace.keeps_growing() && series.late_growth > 0.5 * series.early_growth
            || series.pace == Pace::Unknown;
        return (is_much && grows).then_some(Certainty::Possible);
    }
    Some(match series.pace {
        Pace::Even if series.points >= 4 || kept == Some(true) => Certainty::Sure,
        Pace::Even if said == Some(TraceVerdict::KeepsGrowing) => Certainty::Sure,
        Pace::Even | Pace::Steps => Certainty::Likely,
        Pace::Uneven if kept == Some(true) => Certainty::Likely,
        // A ring that was filled and whose elements have become a little larger.
        Pace::Uneven if series.late_growth < 0.5 * series.early_growth => return None,
        Pace::Uneven if series.points >= 5 && grows_to_the_end(series) => Certainty::Likely,
        Pace::Uneven => Certainty::Possible,
        Pace::Unknown if kept == Some(true) => Certainty::Likely,
        Pace::Unknown if said == Some(TraceVerdict::KeepsGrowing) => Certainty::Likely,
        Pace::Unknown => Certainty::Possible,
        Pace::Slows => Certainty::Likely,
        Pace::Stopped | Pace::TurnsOver | Pace::Steady => return None,
    })
}

/// Whether most of what it has is younger than the first snapshot that counts, and not because it grew: a ring whose
/// elements become a little larger.
fn is_replaced(evidence: &Evidence, series: &HolderSeries, gain: Option<&HolderGain>) -> bool {
    /// For each byte that it grew.
    const REPLACED: f64 = 1.8;
    let Some((gain, trace)) = gain.zip(evidence.trace.as_ref()) else { return false };
    let first = that_count(evidence).first().map_or(0, |first| first.taken_us);
    let taken = evidence.snapshots.last().map_or(0, |last| last.taken_us);
    let age =
        first.saturating_sub(trace.began_us) as f64 / taken.saturating_sub(trace.began_us) as f64;
    let younger = gain.share_born_after(age).unwrap_or(0.0) * series.after.all_bytes() as f64;
    younger > REPLACED * series.growth() as f64
}

/// Whether it grew in the earlier and in the later half, and in three stretches or more.
fn grows_to_the_end(series: &HolderSeries) -> bool {
    let counted = series.sizes.get(series.sizes.len() - series.points..).unwrap_or_default();
    let grown: Vec<bool> = counted.windows(2).map(|pair| pair[1] > pair[0]).collect();
    let (early, late) = grown.split_at(grown.len() / 2);
    let most = |part: &[bool]| part.iter().any(|grown| *grown);
    most(early) && most(late) && grown.iter().filter(|grown| **grown).count() >= 3
}

/// What the trace's own rule says of the sites of a holder.
fn of_rule(evidence: &Evidence, gain: &HolderGain) -> Option<TraceVerdict> {
    let trace = evidence.trace.as_ref()?;
    let first = gain.sites.first()?;
    let row = trace.rows.iter().find(|row| is_same_line(&row.site, &first.site))?;
    Some(row.verdict)
}

fn is_same_line(one: &Site, other: &Site) -> bool {
    one.line == other.line && one.file == other.file
}

fn holder_growth(evidence: &Evidence, series: &HolderSeries) -> HolderGrowth {
    let last = evidence.snapshots.last();
    let piles = last.map(|snapshot| &snapshot.findings[..]).unwrap_or_default();
    let pile = piles
        .iter()
        .find(|pile| pile.path.first() == Some(&series.name) && pile.kind != "finaliser cycle");
    HolderGrowth {
        name: series.name.clone(),
        pace: series.pace,
        before_bytes: series.before.all_bytes(),
        after_bytes: series.after.all_bytes(),
        after_outside_bytes: series.after.outside_bytes,
        share_of_growth: series.share_of_growth,
        sizes: series.sizes.clone(),
        path: pile.map(|pile| pile.path.clone()).unwrap_or_default(),
        elements: pile.map(|pile| pile.elements),
    }
}

/// Of a program that ended too soon to call it a leak.
const GREW: &str = "grew";

fn verb(kind: FindingKind, certainty: Certainty) -> &'static str {
    match (kind, certainty) {
        (FindingKind::Filling, _) => "still fills, less and less",
        (_, Certainty::Sure) => "leaks",
        (_, Certainty::Likely) => "probably leaks",
        (_, Certainty::Possible) => "may leak",
    }
}

fn sentence(series: &HolderSeries, verb: &str, sites: &[GainedSite]) -> String {
    let name = &series.name;
    let rate = bytes(series.bytes_per_second);
    let (before, after) = (series.before.all_bytes(), series.after.all_bytes());
    let sizes = format!("{} to {}", bytes(before as f64), bytes(after as f64));
    let outside = if series.grows_outside() { ", most of it outside the heap" } else { "" };
    let how = match series.pace {
        Pace::Even => "evenly, ",
        Pace::Steps => "by ever larger blocks, ",
        Pace::Uneven => "in bursts, ",
        _ => "",
    };
    let line = sites.first().map(|site| format!(", allocated at {}", place(&site.site)));
    let line = line.unwrap_or_default();
    let it = if verb == GREW { "" } else { ": it grew" };
    format!("{name} {verb}{it} {how}by {rate}/s, from {sizes}{outside}{line}")
}

/// `file.ml:12 (Module.function)`.
pub(super) fn place(site: &Site) -> String {
    let (name, file) = (Escaped(site.name.as_bytes()), Escaped(site.file.as_bytes()));
    match (site.line, site.file.is_empty()) {
        (0, true) => name.to_string(),
        (0, false) => format!("{name} ({file})"),
        (line, _) => format!("{file}:{line} ({name})"),
    }
}

/// What to look at.
fn advice(evidence: &Evidence, series: &HolderSeries) -> Option<String> {
    let last = evidence.snapshots.last()?;
    let cycle = last.findings.iter().find(|finding| finding.kind == "finaliser cycle");
    match series.kind {
        HolderKind::Finalisers => Some(cycle.map_or_else(
            || "values with finalisers are reachable until these have run".to_owned(),
            |cycle| cycle.text.clone(),
        )),
        HolderKind::Stack => Some("a function that does not return holds it".to_owned()),
        _ => None,
    }
}

/// One snapshot and its trace: a holder that has kept as much of every stretch of the trace.
fn of_kept_births(evidence: &Evidence) -> Vec<Finding> {
    let Some(trace) = &evidence.trace else { return Vec::new() };
    let seconds = trace.duration_us as f64 / 1e6;
    let kept = evidence.gains.iter().filter(|gain| gain.keeps_all() == Some(true));
    let finding = |gain: &HolderGain| {
        let gained: f64 = gain.sites.iter().map(|site| site.gained_bytes).sum();
        let rate = gained / seconds.max(1e-6);
        let line = gain.sites.first().map(|site| format!(" at {}", place(&site.site)));
        let line = line.unwrap_or_default();
        let sentence = format!(
            "{} probably leaks: it has kept as much of each part of the {} that were traced, \
             {}/s, allocated{line}",
            gain.holder,
            short_duration(trace.duration_us as f64),
            bytes(rate),
        );
        let mut finding = Finding::new(FindingKind::Leak, Certainty::Likely, sentence);
        finding.bytes = Some(gained);
        finding.bytes_per_second = Some(rate);
        finding.since_us = Some(trace.began_us);
        finding.full_in_us = full_in(evidence, rate);
        finding.sites = gain.sites.clone();
        finding
    };
    kept.map(finding).take(MOST).collect()
}

/// The trace alone: nothing is known of who holds it.
fn of_trace(evidence: &Evidence) -> Vec<Finding> {
    let Some(trace) = &evidence.trace else { return Vec::new() };
    let finding = |row: &TraceSite| {
        let rate = bytes(row.growth_bytes_per_second);
        let at = place(&row.site);
        let (kind, certainty, what) = match row.verdict {
            TraceVerdict::KeepsGrowing => {
                (FindingKind::Leak, Certainty::Likely, "what is allocated there keeps growing")
            }
            TraceVerdict::Slowing => (
                FindingKind::Filling,
                Certainty::Likely,
                "what is allocated there grows less and less",
            ),
            TraceVerdict::WasGrowing => (
                FindingKind::Leak,
                Certainty::Possible,
                "what is allocated there was growing, and nothing is known of it since",
            ),
            TraceVerdict::NotGrowing | TraceVerdict::Undecided => (
                FindingKind::Leak,
                Certainty::Possible,
                "what is allocated there has grown, and may leak",
            ),
        };
        let error = row
            .growth_error
            .map(|error| format!(" ± {}", percent(error / row.growth_bytes_per_second.max(1.0))));
        let sentence = format!("{at}: {what}, by {rate}/s{}", error.unwrap_or_default());
        let mut finding = Finding::new(kind, certainty, sentence);
        finding.bytes = Some(row.live_bytes);
        finding.bytes_per_second = Some(row.growth_bytes_per_second);
        finding.growth_error = row.growth_error;
        finding.since_us = Some(trace.began_us);
        finding.full_in_us = full_in(evidence, row.growth_bytes_per_second);
        finding
    };
    let grows = trace.rows.iter().filter(|row| row.verdict != TraceVerdict::NotGrowing);
    // What is undecided says little: the first ones are enough.
    const MOST_UNDECIDED: usize = 3;
    let all_undecided = trace.rows.iter().all(|row| row.verdict == TraceVerdict::Undecided);
    grows.map(finding).take(if all_undecided { MOST_UNDECIDED } else { MOST }).collect()
}

/// Whether leaks explain what the process has more outside the heap.
pub(super) fn explain_outside(evidence: &Evidence, found: &[Finding]) -> bool {
    let held: f64 = found
        .iter()
        .filter(|finding| finding.holder.as_ref().is_some_and(|one| one.after_outside_bytes > 0))
        .filter_map(|finding| finding.bytes_per_second)
        .sum();
    unexplained_outside(evidence).is_none_or(|rate| held * 2.0 > rate)
}
