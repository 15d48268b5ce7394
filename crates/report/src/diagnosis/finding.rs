//! What a diagnosis says: findings, and the verdict over all of them.

use serde::Serialize;

use super::evidence::{MemoryLimit, Timeline};
use super::pace::Pace;
use super::sites::GainedSite;
use crate::figures::heap::findings::Finding as HeapFinding;

/// What is wrong, or worth knowing. In the order in which findings are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum FindingKind {
    /// Memory that a holder gains and never loses.
    Leak,
    /// Threads that are begun and do not end.
    Threads,
    /// Fibers that wait for ever.
    Fibers,
    /// Values that their own finalisers keep.
    FinaliserCycle,
    /// Memory that no value of the program keeps.
    OutsideHeap,
    /// The collector takes too much of the time.
    BusyCollector,
    /// Memory that the allocator keeps though it is free.
    FreeMemory,
    /// Tables of which most slots are empty.
    EmptyTables,
    /// Strings that are there more than once.
    DuplicateStrings,
    /// A holder that grows less and less.
    Filling,
    /// Dead blocks that the collector has not come to.
    Garbage,
}

/// How sure a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Certainty {
    Sure,
    Likely,
    /// What was seen fits it, and other things too.
    Possible,
}

impl Certainty {
    pub fn name(self) -> &'static str {
        match self {
            Certainty::Sure => "sure",
            Certainty::Likely => "likely",
            Certainty::Possible => "possible",
        }
    }
}

/// One finding. The field names are those of the JSON.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "DiagnosisFinding"))]
pub struct Finding {
    pub kind: FindingKind,
    pub certainty: Certainty,
    /// False for what is only worth knowing.
    pub is_problem: bool,
    /// One plain sentence.
    pub sentence: String,
    /// How large it is now, in bytes.
    pub bytes: Option<f64>,
    pub bytes_per_second: Option<f64>,
    /// The standard error of that, if it is an estimate with one.
    pub growth_error: Option<f64>,
    /// Since when, in microseconds since the Unix epoch, as far as it was seen.
    pub since_us: Option<u64>,
    /// How long the memory lasts at this pace.
    pub full_in_us: Option<f64>,
    /// Who holds it, and how that grew.
    pub holder: Option<HolderGrowth>,
    /// Where it is allocated, most growth first.
    pub sites: Vec<GainedSite>,
    /// What would help.
    pub advice: Option<String>,
}

impl Finding {
    pub(super) fn new(kind: FindingKind, certainty: Certainty, sentence: String) -> Finding {
        Finding {
            kind,
            certainty,
            is_problem: !matches!(
                kind,
                FindingKind::EmptyTables
                    | FindingKind::DuplicateStrings
                    | FindingKind::Filling
                    | FindingKind::Garbage
            ),
            sentence,
            bytes: None,
            bytes_per_second: None,
            growth_error: None,
            since_us: None,
            full_in_us: None,
            holder: None,
            sites: Vec::new(),
            advice: None,
        }
    }

    /// Whether it is more than a suspicion.
    pub fn counts(&self) -> bool {
        self.is_problem && self.certainty < Certainty::Possible
    }
}

/// A holder that grows.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HolderGrowth {
    pub name: String,
    pub pace: Pace,
    pub before_bytes: u64,
    pub after_bytes: u64,
    /// The part of it outside the heap.
    pub after_outside_bytes: u64,
    /// Its share of all growth.
    pub share_of_growth: f64,
    /// Its size in each snapshot.
    pub sizes: Vec<u64>,
    /// What of it piles up, from the holder down to the blocks.
    pub path: Vec<String>,
    /// How many blocks pile up.
    pub elements: Option<u64>,
}

/// The answer in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub enum Outcome {
    NothingWrong,
    Found,
    CannotTell,
}

/// The overall verdict.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "DiagnosisVerdict"))]
pub struct Verdict {
    pub outcome: Outcome,
    pub sentence: String,
    /// If it cannot be told: the one command that would decide it.
    pub command: Option<String>,
}

/// What was looked at. Times are in microseconds since the Unix epoch.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Examined {
    pub program: String,
    pub pid: Option<u64>,
    pub from_us: u64,
    pub to_us: u64,
    pub trace: Option<ExaminedTrace>,
    pub snapshots: Vec<ExaminedSnapshot>,
    pub timeline: Timeline,
    pub limit: Option<MemoryLimit>,
}

/// The trace that was read.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ExaminedTrace {
    pub file: String,
    pub rate: f64,
    pub duration_us: u64,
    /// What its own leak rule says.
    pub verdict: String,
}

/// A snapshot that was read.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ExaminedSnapshot {
    pub file: String,
    pub taken_us: u64,
    pub reachable_bytes: u64,
    pub garbage_bytes: u64,
    pub outside_bytes: u64,
    /// The largest holders.
    pub holders: Vec<ExaminedHolder>,
    /// What piles up in it; of the last snapshot only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<HeapFinding>>"))]
    pub piles: Vec<HeapFinding>,
}

/// A holder in a snapshot.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct ExaminedHolder {
    pub name: String,
    pub bytes: u64,
    pub outside_bytes: u64,
}

/// Everything that is concluded from the evidence.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct Diagnosis {
    pub verdict: Verdict,
    /// Problems first, the surest and the largest first.
    pub findings: Vec<Finding>,
    pub examined: Examined,
    /// What is missing or damaged, in sentences.
    pub remarks: Vec<String>,
}
