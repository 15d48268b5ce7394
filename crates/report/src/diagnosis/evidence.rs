//! All that is known of a program's memory, before anything is concluded from it.
//!
//! Times are in microseconds since the Unix epoch, so that traces, sidecars and snapshots of one process have one clock.

use heaptap_graph::{HeapAnalysis, HolderName, HolderTree, Node};
use heaptap_heap::{MetaKey, RootKind};
use serde::Serialize;

use crate::figures::heap::findings::{Finding as HeapFinding, findings};
use crate::figures::heap::titles::Titles;

use super::duplicates::DuplicateStrings;
use super::empty_slots::EmptySlots;
use super::keepers::Keepers;
use super::pace::Point;
use super::sites::HolderGain;

/// What a diagnosis is made of. Any part may be missing.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// The program's name; may be empty.
    pub program: String,
    pub pid: Option<u64>,
    /// When the process began.
    pub began_us: Option<u64>,
    /// Whether it runs, so that it can be asked for more.
    pub is_running: bool,
    /// Whether it ran to its own end while it was watched.
    pub has_ended: bool,
    pub trace: Option<TraceEvidence>,
    pub timeline: Timeline,
    /// The oldest first.
    pub snapshots: Vec<SnapshotEvidence>,
    /// Where the holders' blocks were allocated, by the last snapshot's join with the trace.
    pub gains: Vec<HolderGain>,
    /// The memory that the program can have.
    pub limit: Option<MemoryLimit>,
    /// What is missing or damaged, in sentences.
    pub remarks: Vec<String>,
}

/// What bounds the program's memory.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct MemoryLimit {
    pub bytes: u64,
    /// Whose limit it is: `control group` or `machine`.
    pub whose: &'static str,
}

/// What the leak rule says of the trace.
#[derive(Clone, Debug, Serialize)]
pub struct TraceEvidence {
    pub file: String,
    pub began_us: u64,
    pub duration_us: u64,
    pub rate: f64,
    /// The rule's own sentence.
    pub verdict: String,
    /// Whether the rule could decide.
    pub is_conclusive: bool,
    /// Sites that grow or may, those that grow most first.
    pub rows: Vec<TraceSite>,
}

/// What the leak rule says of a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TraceVerdict {
    KeepsGrowing,
    /// As far as is known, which is not to the end.
    WasGrowing,
    Slowing,
    /// It stopped, turns over, or is garbage that waits.
    NotGrowing,
    Undecided,
}

/// A site of the trace that grows or may.
#[derive(Clone, Debug, Serialize)]
pub struct TraceSite {
    pub site: crate::rows::Site,
    pub verdict: TraceVerdict,
    pub live_bytes: f64,
    pub growth_bytes_per_second: f64,
    pub growth_error: Option<f64>,
}

/// The process over time, by the sidecar.
#[derive(Clone, Debug, Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "ExaminedTimeline"))]
pub struct Timeline {
    pub points: Vec<TimelinePoint>,
    /// The part of the time in which the program stood still for its collector.
    pub collector: Option<CollectorShare>,
}

/// A moment, or the largest sizes of an interval that ends then.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct TimelinePoint {
    pub at_us: u64,
    pub heap_bytes: Option<u64>,
    /// The part of the heap that is not free. Some of it may be dead.
    pub used_bytes: Option<u64>,
    pub rss_bytes: Option<u64>,
    pub threads: Option<u64>,
    /// Major cycles that have ended, in all.
    pub cycles: Option<u64>,
    /// Bytes allocated in all.
    pub allocated_bytes: Option<u64>,
}

/// How the collector's time divides, as shares of the time that was watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CollectorShare {
    pub minor: f64,
    pub major: f64,
    pub finalisers: f64,
    pub longest_us: u64,
    /// Of the words of the minor heap, those that were promoted.
    pub promoted: Option<f64>,
    pub watched_us: u64,
}

impl CollectorShare {
    pub(super) fn all(&self) -> f64 {
        self.minor + self.major + self.finalisers
    }
}

/// What a snapshot says, without its heap.
#[derive(Clone, Debug, Default)]
pub struct SnapshotEvidence {
    pub file: String,
    pub taken_us: u64,
    pub pid: Option<u64>,
    /// When the process began.
    pub began_us: Option<u64>,
    pub reachable_bytes: u64,
    pub blocks: u64,
    /// What nothing reaches: the collector has not freed it yet.
    pub garbage_bytes: u64,
    pub outside_bytes: u64,
    pub suspended_fibers: Option<u64>,
    pub suspended_stack_bytes: u64,
    /// What the program had allocated by then, if the sidecar says so.
    pub allocated_bytes: Option<u64>,
    /// The largest first.
    pub holders: Vec<HolderSize>,
    pub findings: Vec<HeapFinding>,
    pub empty_slots: Option<EmptySlots>,
    /// If it has the contents of strings.
    pub duplicates: Option<DuplicateStrings>,
}

/// What kind of thing a holder is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum HolderKind {
    Variable,
    Stack,
    Finalisers,
    Fiber,
    C,
    /// Several holders reach it, each of which would be enough.
    #[default]
    Shared,
}

/// The blocks of which a holder is the lowest that retains them: each block counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HolderSize {
    pub name: String,
    pub kind: HolderKind,
    pub bytes: u64,
    pub outside_bytes: u64,
    pub biggest_block: u64,
}

impl HolderSize {
    pub fn all_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.outside_bytes)
    }
}

impl SnapshotEvidence {
    /// The most holders that are kept: the largest.
    const MOST_HOLDERS: usize = 4096;

    pub fn of(
        file: &str,
        analysis: &HeapAnalysis,
        titles: &Titles<'_>,
        keepers: &Keepers<'_>,
    ) -> SnapshotEvidence {
        let facts = analysis.graph.facts();
        let reachable = analysis.reachable();
        SnapshotEvidence {
            file: file.to_owned(),
            taken_us: facts.number(MetaKey::TIME).unwrap_or(0) / 1000,
            pid: facts.number(MetaKey::PID),
            began_us: facts.number(MetaKey::PROCESS_START),
            reachable_bytes: reachable.bytes,
            blocks: reachable.blocks,
            garbage_bytes: analysis.all().bytes.saturating_sub(reachable.bytes),
            outside_bytes: analysis.outside().allocated,
            suspended_fibers: facts.number(MetaKey::SUSPENDED_FIBERS),
            suspended_stack_bytes: facts.number(MetaKey::SUSPENDED_STACKS).unwrap_or(0),
            allocated_bytes: None,
            holders: holder_sizes(analysis, titles, keepers),
            findings: findings(analysis),
            empty_slots: EmptySlots::of(analysis, titles, keepers),
            duplicates: DuplicateStrings::of(analysis, titles, keepers),
        }
    }

    pub(super) fn holder(&self, name: &str) -> Option<&HolderSize> {
        self.holders.iter().find(|holder| holder.name == name)
    }

    /// All memory that values keep.
    pub(super) fn all_bytes(&self) -> u64 {
        self.reachable_bytes.saturating_add(self.outside_bytes)
    }

    /// A size at the time of this snapshot.
    pub(super) fn point(&self, bytes: u64) -> Point {
        Point {
            seconds: self.taken_us as f64 / 1e6,
            allocated: self.allocated_bytes.map(|bytes| bytes as f64),
            bytes: bytes as f64,
        }
    }
}

/// The holders by name; several may have one.
fn holder_sizes(
    analysis: &HeapAnalysis,
    titles: &Titles<'_>,
    keepers: &Keepers<'_>,
) -> Vec<HolderSize> {
    let mut sizes = vec![HolderSize::default(); analysis.holders.len()];
    for (block, holder) in keepers.blocks() {
        if let Some(size) = sizes.get_mut(holder as usize) {
            let bytes = analysis.graph.bytes(block);
            size.bytes = size.bytes.saturating_add(bytes);
            size.biggest_block = size.biggest_block.max(bytes);
        }
    }
    // What a holder keeps outside is what it dominates less what those below it do.
    let outside = |holder| {
        let position = analysis.dominators.position(Node::Holder(holder));
        let at = position.map(|position| analysis.dominators.retained_outside(position));
        at.map_or(0, |outside| outside.allocated)
    };
    for holder in analysis.holders.ids() {
        let own = outside(holder);
        if let Some(size) = sizes.get_mut(holder as usize) {
            size.outside_bytes = size.outside_bytes.saturating_add(own);
        }
        let parent = analysis.holders.parent(holder);
        if holder != HolderTree::PROGRAM
            && let Some(size) = sizes.get_mut(parent as usize)
        {
            size.outside_bytes = size.outside_bytes.saturating_sub(own);
        }
    }
    for (from, to, bytes) in keepers.moved_outside() {
        if let Some(size) = sizes.get_mut(from as usize) {
            size.outside_bytes = size.outside_bytes.saturating_sub(bytes);
        }
        if let Some(size) = sizes.get_mut(to as usize) {
            size.outside_bytes = size.outside_bytes.saturating_add(bytes);
        }
    }
    let mut named: hashbrown::HashMap<String, HolderSize> = hashbrown::HashMap::new();
    for (holder, size) in (0..).zip(sizes).filter(|(_, size)| size.all_bytes() > 0) {
        let name = titles.keeper(holder);
        let sum = named.entry(name.clone()).or_default();
        *sum = HolderSize {
            name,
            kind: kind_of(analysis.holders.name(holder)),
            bytes: sum.bytes.saturating_add(size.bytes),
            outside_bytes: sum.outside_bytes.saturating_add(size.outside_bytes),
            biggest_block: sum.biggest_block.max(size.biggest_block),
        };
    }
    let mut sizes: Vec<HolderSize> = named.into_values().collect();
    sizes.sort_by(|one, other| {
        other.all_bytes().cmp(&one.all_bytes()).then_with(|| one.name.cmp(&other.name))
    });
    sizes.truncate(SnapshotEvidence::MOST_HOLDERS);
    sizes
}

fn kind_of(name: HolderName) -> HolderKind {
    match name {
        HolderName::Variable { .. } | HolderName::DomainLocal(_) => HolderKind::Variable,
        HolderName::Frame { .. } | HolderName::Thread(_) => HolderKind::Stack,
        HolderName::Handlers { .. } | HolderName::Kind(RootKind::Continuation) => HolderKind::Fiber,
        HolderName::Finalisers(_) | HolderName::Kind(RootKind::Finaliser) => HolderKind::Finalisers,
        HolderName::LocalC | HolderName::Slot(_) => HolderKind::C,
        _ => HolderKind::Shared,
    }
}
