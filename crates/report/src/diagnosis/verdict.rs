//! The verdict over all findings, and what was looked at.

use super::evidence::{Evidence, SnapshotEvidence};
use super::finding::{
    Examined, ExaminedHolder, ExaminedSnapshot, ExaminedTrace, Finding, FindingKind, Outcome,
    Verdict,
};
use super::holders::{is_young, that_count};
use crate::figures::units::short_duration;

/// A shorter look does not show that nothing is wrong.
const SHORTEST_US: u64 = 15_000_000;
/// With fewer snapshots holders cannot be seen to be steady.
const FEWEST_SNAPSHOTS: usize = 3;

pub(super) fn verdict(evidence: &Evidence, findings: &[Finding]) -> Verdict {
    let found: Vec<&Finding> = findings.iter().filter(|finding| finding.counts()).collect();
    let (from, to) = span(evidence);
    let watched = short_duration(to.saturating_sub(from) as f64);
    if let Some(first) = found.first() {
        let sentence = first.sentence.clone();
        return Verdict { outcome: Outcome::Found, sentence, command: None };
    }
    let is_suspected = findings.iter().any(|finding| finding.is_problem);
    if is_suspected || is_too_little(evidence) {
        let suspect = findings.iter().find(|finding| finding.is_problem);
        let ended = format!("the program ended after {watched}, too soon to see what grows");
        let why = match (suspect, evidence.snapshots.len()) {
            (Some(suspect), _) if evidence.has_ended && is_young(evidence) => {
                format!("{ended} for ever: {}", suspect.sentence)
            }
            (Some(suspect), _) => format!("in {watched} this was seen: {}", suspect.sentence),
            (None, _) if evidence.has_ended => ended,
            (None, 0) => {
                format!("there is no heap snapshot, and the trace of {watched} shows no growth")
            }
            (None, 1) => "one heap snapshot does not show what grows".to_owned(),
            (None, number) => format!("{number} heap snapshots over {watched} are too few"),
        };
        let sentence = format!("Cannot tell: {why}");
        return Verdict {
            outcome: Outcome::CannotTell,
            sentence,
            command: Some(command(evidence)),
        };
    }
    let fills = findings.iter().any(|finding| finding.kind == FindingKind::Filling);
    let but = if fills { "; what grows grows less and less" } else { "" };
    let sentence = format!("Nothing wrong was seen in {watched}{but}");
    Verdict { outcome: Outcome::NothingWrong, sentence, command: None }
}

fn is_too_little(evidence: &Evidence) -> bool {
    let snapshots = that_count(evidence);
    let of_snapshots = match snapshots {
        [first, .., last] => last.taken_us.saturating_sub(first.taken_us),
        _ => 0,
    };
    let by_snapshots =
        evidence.snapshots.len() >= FEWEST_SNAPSHOTS && of_snapshots >= SHORTEST_US * 2 / 3;
    let by_trace = evidence
        .trace
        .as_ref()
        .is_some_and(|trace| trace.is_conclusive && trace.duration_us >= 2 * SHORTEST_US);
    !by_snapshots && !by_trace
}

/// The command that would decide it.
fn command(evidence: &Evidence) -> String {
    let (from, to) = span(evidence);
    let watched = to.saturating_sub(from) / 1_000_000;
    let longer = (4 * watched).clamp(60, 3600);
    let longer = if longer < 600 { format!("{longer}s") } else { format!("{}m", longer / 60) };
    match (evidence.pid, evidence.is_running) {
        (Some(pid), true) => format!("heaptap doctor {pid} --for {longer}"),
        _ if evidence.has_ended => "heaptap doctor -- PROGRAM, with work for a minute".to_owned(),
        _ => "heaptap doctor -- PROGRAM".to_owned(),
    }
}

/// The time that was looked at.
pub(super) fn span(evidence: &Evidence) -> (u64, u64) {
    let mut times: Vec<u64> = evidence.snapshots.iter().map(|snapshot| snapshot.taken_us).collect();
    if let Some(trace) = &evidence.trace {
        times.extend([trace.began_us, trace.began_us.saturating_add(trace.duration_us)]);
    }
    let points = &evidence.timeline.points;
    times.extend(points.first().into_iter().chain(points.last()).map(|point| point.at_us));
    times.retain(|time| *time > 0);
    let least = times.iter().copied().min().unwrap_or(0);
    (least, times.iter().copied().max().unwrap_or(0))
}

pub(super) fn examined(evidence: &Evidence) -> Examined {
    let (from_us, to_us) = span(evidence);
    let trace = evidence.trace.as_ref().map(|trace| ExaminedTrace {
        file: trace.file.clone(),
        rate: trace.rate,
        duration_us: trace.duration_us,
        verdict: trace.verdict.clone(),
    });
    let last = evidence.snapshots.len().saturating_sub(1);
    let snapshots = evidence.snapshots.iter().enumerate();
    Examined {
        program: evidence.program.clone(),
        pid: evidence.pid,
        from_us,
        to_us,
        trace,
        snapshots: snapshots
            .map(|(at, snapshot)| examined_snapshot(snapshot, at == last))
            .collect(),
        timeline: evidence.timeline.clone(),
        limit: evidence.limit.clone(),
    }
}

fn examined_snapshot(snapshot: &SnapshotEvidence, is_last: bool) -> ExaminedSnapshot {
    const MOST_HOLDERS: usize = 12;
    let holders = snapshot.holders.iter().take(MOST_HOLDERS);
    let holder = |holder: &super::evidence::HolderSize| ExaminedHolder {
        name: holder.name.clone(),
        bytes: holder.bytes,
        outside_bytes: holder.outside_bytes,
    };
    ExaminedSnapshot {
        file: snapshot.file.clone(),
        taken_us: snapshot.taken_us,
        reachable_bytes: snapshot.reachable_bytes,
        garbage_bytes: snapshot.garbage_bytes,
        outside_bytes: snapshot.outside_bytes,
        holders: holders.map(holder).collect(),
        piles: if is_last { snapshot.findings.clone() } else { Vec::new() },
    }
}
