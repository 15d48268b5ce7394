//! What heap snapshots say of leaks: what was reachable when each was taken, which sampled blocks were garbage then, what
//! held the others, and how much each holder kept.
//!
//! [`SnapshotsRead`] is to be read first. The trace is then aggregated with [`SnapshotsRead::truths`], and its report
//! joined with [`SnapshotsRead::join`]; [`leaks_with_snapshots`] does all of it.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_graph::{DominatorTree, HeapAnalysis, HolderId, HolderTree, Node, RetainingHolders};
use heaptap_heap::MetaKey;
use heaptap_report::figures::heap::titles::Titles;
use heaptap_report::figures::{
    HeldBlock, HeldSites, HolderSize, HolderSizes, LeakReport, leak_report,
};
use heaptap_report::rows::{By, Grouping, Site, Sites};
use heaptap_report::{Depth, Options, OverTime, Selection, SiteFrame, Truths};

use super::load::{load_with_types, say_types};
use super::snapshot_holders::{holders, tracked_in};
use super::tracked::TrackedBlocks;
use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::cycles::truths;
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::series_files::PartOnDisk;
use crate::io::trace_files::{InputFile, expand, shown};

/// The most snapshots of one report.
const MOST: usize = 64;

/// Who holds it
#[derive(Args)]
#[command(next_help_heading = "Who holds it")]
pub(crate) struct EvidenceOptions {
    /// A heap snapshot that was taken while the trace was written: what was reachable then is known, so it says what
    /// grew up to then, what was garbage, and which variables and stack frames keep what each leak has allocated. Give
    /// it for each of several snapshots: a site that grows while its holder does not is no leak
    #[arg(long, value_name = "SNAPSHOT", value_hint = ValueHint::FilePath)]
    heap: Vec<PathBuf>,

    #[command(flatten)]
    types: TypeOptions,
}

/// What leaks are looked for in.
pub(crate) struct LeakQuestion<'a> {
    /// The traces, as they are named.
    pub(crate) files: &'a [PathBuf],
    /// The snapshots that were taken while these were written, in any order.
    pub(crate) snapshots: &'a [PathBuf],
    pub(crate) types: &'a TypeOptions,
    /// The blocks that count, and whether these are not all.
    pub(crate) selection: Selection,
    pub(crate) selected: bool,
    /// Which frame of a stack is its site.
    pub(crate) site: SiteFrame,
}

/// The answer.
pub(crate) struct LeakEvidence {
    pub(crate) trace: AggregatedTrace,
    /// Joined with the snapshots: [`LeakReport::snapshots`] has the sizes of holders in each.
    pub(crate) report: LeakReport,
}

/// The leaks of a trace, with what snapshots say of them.
pub(crate) fn leaks_with_snapshots(question: LeakQuestion<'_>) -> Result<LeakEvidence, Failure> {
    let LeakQuestion { files, snapshots, types, selection, selected, site } = question;
    let read = SnapshotsRead::read(snapshots, types, files, site, &selection)?;
    let options = Options {
        selection,
        depth: Depth::Whole,
        over_time: OverTime::LiveSize,
        truths: read.truths(files)?,
        ..Options::default()
    };
    let trace = AggregatedTrace::read(files, options)?;
    let mut report = leak_report(&trace.figures(selected), site);
    read.join(&mut report);
    Ok(LeakEvidence { trace, report })
}

/// One snapshot.
struct SnapshotRead {
    evidence: HeldSites,
    /// When it was taken, in microseconds since the start of the trace.
    taken_us: u64,
    /// The sampled blocks in it that nothing holds, by their ids in the trace.
    garbage: Vec<u64>,
}

/// Snapshots of a trace, in the order of time.
pub(crate) struct SnapshotsRead(Vec<SnapshotRead>);

impl EvidenceOptions {
    /// The snapshots, and where types come from.
    pub(crate) fn snapshots(&self) -> Result<(&[PathBuf], &TypeOptions), Failure> {
        if self.heap.is_empty() && self.types.is_given() {
            let message = "--types goes with --heap: it names what holds the blocks";
            return Err(Failure::Trouble(message.into()));
        }
        Ok((&self.heap, &self.types))
    }
}

impl SnapshotsRead {
    /// Reads snapshots, each with the trace for its sampled blocks.
    pub(crate) fn read(
        snapshots: &[PathBuf],
        types: &TypeOptions,
        files: &[PathBuf],
        site: SiteFrame,
        selection: &Selection,
    ) -> Result<SnapshotsRead, Failure> {
        if snapshots.len() > MOST {
            return Err(Failure::Trouble(format!(
                "--heap: {} snapshots are too many for one report; choose {MOST} or fewer",
                snapshots.len()
            )));
        }
        if snapshots.is_empty() {
            return Ok(SnapshotsRead(Vec::new()));
        }
        let files = expand(files)?;
        let grouping = Grouping { by: By::Location, site };
        let mut read: Vec<(SnapshotRead, &PathBuf)> = Vec::new();
        for snapshot in snapshots {
            let (selection, depth) = (selection.clone(), grouping.depth());
            let rows = Options { selection, depth, ..Options::default() };
            let (analysis, named) = load_with_types(snapshot, types)?;
            say_types(snapshot, &named);
            let tracked = tracked_in(&analysis, snapshot, &files, rows)?;
            let one = SnapshotRead::new(&analysis, &shown(snapshot), &tracked, grouping);
            if let Some((_, other)) = read.iter().find(|(other, _)| other.taken_us == one.taken_us)
            {
                return Err(Failure::Trouble(format!(
                    "{}: was taken at the same time as {}: name each snapshot once",
                    shown(snapshot),
                    shown(other)
                )));
            }
            read.push((one, snapshot));
        }
        read.sort_by_key(|(one, _)| one.taken_us);
        Ok(SnapshotsRead(read.into_iter().map(|(one, _)| one).collect()))
    }

    /// The moments at which it is known what was reachable: the collector's cycles and these snapshots.
    pub(crate) fn truths(&self, files: &[PathBuf]) -> Result<Truths, Failure> {
        let cycles = truths(files)?;
        // Blocks of several processes are numbered anew when these are read as one.
        if self.0.is_empty() || !is_one_process(&expand(files)?) {
            return Ok(cycles);
        }
        Ok(cycles.with_snapshots(self.0.iter().map(|one| (one.taken_us, one.garbage.clone()))))
    }

    /// Adds what the snapshots say to a report.
    pub(crate) fn join(self, report: &mut LeakReport) {
        let evidence: Vec<HeldSites> = self.0.into_iter().map(|one| one.evidence).collect();
        report.join(&evidence);
    }
}

/// Whether traces are one file, or parts of one series.
fn is_one_process(files: &[InputFile]) -> bool {
    let series = |file: &InputFile| PartOnDisk::of(&file.path).map(|part| part.head.series);
    match files {
        [_] => true,
        [first, others @ ..] => {
            let first = series(first);
            first.is_some() && others.iter().all(|other| series(other) == first)
        }
        [] => false,
    }
}

impl SnapshotRead {
    fn new(
        analysis: &HeapAnalysis,
        file: &str,
        tracked: &TrackedBlocks,
        rows: Grouping,
    ) -> SnapshotRead {
        let taken_us = analysis.graph.facts().number(MetaKey::TIME).unwrap_or(0) / 1000;
        let taken_us = taken_us.saturating_sub(tracked.info().start_time);
        let retaining = RetainingHolders::new(&analysis.dominators);
        let garbage = analysis.graph.tracked().iter();
        let garbage = garbage.filter(|&&(block, _)| retaining.of(block).is_none());
        SnapshotRead {
            garbage: garbage.map(|&(_, id)| id).collect(),
            evidence: HeldSites::new(
                holders(analysis, file, tracked, rows),
                sizes(analysis, (file.to_owned(), taken_us)),
                tracked.scale(),
                blocks_by_site(&retaining, tracked, rows),
            ),
            taken_us,
        }
    }
}

/// The sampled blocks that are reachable, by site.
fn blocks_by_site(
    retaining: &RetainingHolders<'_>,
    tracked: &TrackedBlocks,
    rows: Grouping,
) -> BTreeMap<Site, Vec<HeldBlock>> {
    let (names, start) = (Sites::new(tracked.locations(), rows), tracked.info().start_time);
    let mut sites: BTreeMap<Site, Vec<HeldBlock>> = BTreeMap::new();
    for block in tracked.blocks.iter().filter(|block| retaining.of(block.block).is_some()) {
        let birth_us = block.time.saturating_sub(start);
        let held = HeldBlock { id: block.id, birth_us, samples: block.samples };
        sites.entry(names.of(block.frame)).or_default().push(held);
    }
    sites
}

/// What each holder alone keeps.
fn sizes(analysis: &HeapAnalysis, taken: (String, u64)) -> HolderSizes {
    /// Blocks, bytes and bytes outside.
    #[derive(Default)]
    struct Own(u64, u64, u64);
    let (dominators, titles) = (&analysis.dominators, Titles::new(analysis));
    let retaining = RetainingHolders::new(dominators);
    let mut own: HashMap<HolderId, Own> = HashMap::new();
    for position in 0..dominators.len() as u32 {
        let holder = match dominators.node(position) {
            Node::Block(block) => {
                let holder = retaining.of(block).unwrap_or(HolderTree::PROGRAM);
                own.entry(holder).or_default().0 += 1;
                continue;
            }
            Node::Holder(holder) => holder,
        };
        let (bytes, outside) =
            (dominators.retained(position), dominators.retained_outside(position).allocated);
        let size = own.entry(holder).or_default();
        (size.1, size.2) = (size.1.wrapping_add(bytes), size.2.wrapping_add(outside));
        // What a holder keeps is not what the one above it alone keeps.
        if position != DominatorTree::PROGRAM
            && let Node::Holder(above) = dominators.node(dominators.dominator(position))
        {
            let size = own.entry(above).or_default();
            (size.1, size.2) = (size.1.wrapping_sub(bytes), size.2.wrapping_sub(outside));
        }
    }
    let garbage = analysis.all().bytes.saturating_sub(analysis.reachable().bytes);
    let keeps = own.into_iter().filter(|(_, Own(blocks, ..))| *blocks > 0);
    let sizes = keeps.map(|(holder, Own(blocks, bytes, outside_bytes))| HolderSize {
        holder: titles.keeper(holder),
        type_name: titles.type_of(holder),
        path: analysis.holders.path(holder).into_iter().map(|id| titles.holder(id)).collect(),
        blocks,
        bytes,
        outside_bytes,
    });
    HolderSizes::new(taken, garbage, sizes)
}
