//! A collector that takes too much of the time, and what would help.

use super::evidence::Evidence;
use super::finding::{Certainty, Finding, FindingKind};
use crate::figures::units::{percent, short_duration};

/// Of the time: more is worth knowing, and more than this a problem.
const NOTABLE: f64 = 0.25;
const TOO_MUCH: f64 = 0.5;

/// Shorter looks say nothing.
const LEAST_US: u64 = 5_000_000;

pub(super) fn finding(evidence: &Evidence) -> Option<Finding> {
    let share = evidence.timeline.collector.filter(|share| share.watched_us >= LEAST_US)?;
    let all = share.all();
    if all < NOTABLE {
        return None;
    }
    let sentence = format!(
        "The collector takes {} of the time ({} minor, {} major), and the longest pause was {}",
        percent(all),
        percent(share.minor),
        percent(share.major),
        short_duration(share.longest_us as f64),
    );
    let mut finding = Finding::new(FindingKind::BusyCollector, Certainty::Sure, sentence);
    finding.is_problem = all >= TOO_MUCH;
    let is_promoting = share.promoted.is_some_and(|promoted| promoted > 0.1);
    finding.advice = Some(
        match (share.minor >= share.major, is_promoting) {
            (true, _) | (_, true) => {
                "a larger minor heap promotes less: OCAMLRUNPARAM=s=1M (words), or Gc.set"
            }
            _ => {
                "a higher space_overhead collects less often, for more memory: OCAMLRUNPARAM=o=200"
            }
        }
        .to_owned(),
    );
    Some(finding)
}
