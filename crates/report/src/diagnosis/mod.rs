//! The diagnosis: one verdict from all evidence on a program's memory.
//!
//! - `evidence`: what goes in: what the trace's leak rule says, the time line, snapshots, and their join with the trace.
//! - `keepers`: whose block it is; `empty_slots`: tables that are mostly empty; `duplicates`: copies of strings; `pace`: how a size grows;
//!   `holders`: how holders grow from snapshot to snapshot; `sites`: where what they gained was allocated.
//! - `leaks`, `memory`, `savings`, `collector`, `waiting`: what is found; `finding`: findings and the verdict as data;
//!   `page`: what the web page gets of it.
//!
//! Nothing here reads a file or knows a terminal. Names come from the program: they are escaped by
//! [`crate::figures::heap::titles`] or by who prints them.

#![allow(missing_docs)]

mod collector;
mod duplicates;
mod empty_slots;
mod evidence;
mod finding;
mod holders;
mod keepers;
mod leaks;
mod memory;
mod pace;
mod page;
mod savings;
mod sites;
mod timeline;
mod verdict;
mod waiting;

pub use duplicates::DuplicateStrings;
pub use empty_slots::EmptySlots;
pub use evidence::{
    CollectorShare, Evidence, HolderKind, HolderSize, MemoryLimit, SnapshotEvidence, Timeline,
    TimelinePoint, TraceEvidence, TraceSite, TraceVerdict,
};
pub use finding::{
    Certainty, Diagnosis, Examined, ExaminedHolder, ExaminedSnapshot, ExaminedTrace, Finding,
    FindingKind, HolderGrowth, Outcome, Verdict,
};
pub use keepers::Keepers;
pub use pace::{Pace, Point, pace};
pub use page::PageDiagnosis;
pub use sites::{GainedSite, HolderGain, SourceLines, StackSites};
pub use timeline::allocated_bytes;

/// What the evidence says.
pub fn diagnose(evidence: &Evidence) -> Diagnosis {
    let mut findings = leaks::findings(evidence);
    if !leaks::explain_outside(evidence, &findings) {
        findings.extend(memory::outside(evidence));
    }
    findings.extend(waiting::threads(evidence));
    if !findings.iter().any(|finding| finding.kind == FindingKind::Fibers) {
        findings.extend(waiting::fibers(evidence));
    }
    findings.extend(waiting::cycles(evidence, &findings));
    findings.extend(collector::finding(evidence));
    findings.extend(memory::free(evidence));
    findings.extend(savings::findings(evidence));
    findings.extend(memory::garbage(evidence));
    sort(&mut findings);
    let verdict = verdict::verdict(evidence, &findings);
    let examined = verdict::examined(evidence);
    Diagnosis { verdict, findings, examined, remarks: evidence.remarks.clone() }
}

/// What counts comes first, then the surest and the fastest.
fn sort(findings: &mut [Finding]) {
    let rate = |finding: &Finding| finding.bytes_per_second.unwrap_or(0.0);
    findings.sort_by(|one, other| {
        let order = |finding: &Finding| (!finding.counts(), !finding.is_problem, finding.kind);
        order(one)
            .cmp(&order(other))
            .then_with(|| one.certainty.cmp(&other.certainty))
            .then_with(|| rate(other).total_cmp(&rate(one)))
    });
}

#[cfg(test)]
mod tests;
