//! The option `--heap` of a trace's reports: what holds the blocks of each row, from a snapshot that was taken while
//! the trace was written.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_graph::{HeapAnalysis, HolderId, RetainingHolders};
use heaptap_heap::MetaKey;
use heaptap_report::figures::SnapshotHolders;
use heaptap_report::figures::heap::titles::Titles;
use heaptap_report::rows::{Grouping, Sites};
use heaptap_report::{Frame, Options};

use super::load::{load_with_types, say_types};
use super::origin::taken_without_trace;
use super::tracked::{TrackedBlocks, TrackedList};
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::trace_files::{InputFile, expand, shown};

/// Who holds it
#[derive(Args)]
#[command(next_help_heading = "Who holds it")]
pub(crate) struct HolderOptions {
    /// A heap snapshot that was taken while the trace was written: show for each row which variables and
    /// stack frames kept its blocks then, with the share of each, and what was garbage
    #[arg(long, value_name = "SNAPSHOT", value_hint = ValueHint::FilePath)]
    heap: Option<PathBuf>,

    #[command(flatten)]
    types: TypeOptions,
}

impl HolderOptions {
    /// Joins the one trace that the arguments name with the snapshot, if there is one. `options`: which blocks count,
    /// and how much of their stacks rows need.
    pub(crate) fn join(
        &self,
        files: &[PathBuf],
        rows: Grouping,
        options: Options,
    ) -> Result<Option<SnapshotHolders>, Failure> {
        let Some(snapshot) = &self.heap else {
            if self.types.is_given() {
                let message = "--types goes with --heap: it names what holds the blocks";
                return Err(Failure::Trouble(message.into()));
            }
            return Ok(None);
        };
        let (analysis, types) = load_with_types(snapshot, &self.types)?;
        say_types(snapshot, &types);
        let tracked = tracked_in(&analysis, snapshot, &expand(files)?, options)?;
        Ok(Some(holders(&analysis, &shown(snapshot), &tracked, rows)))
    }
}

/// The blocks of a snapshot that the one of these traces tracks which was being written when it was taken.
pub(super) fn tracked_in(
    analysis: &HeapAnalysis,
    snapshot: &Path,
    files: &[InputFile],
    options: Options,
) -> Result<TrackedBlocks, Failure> {
    let listed = TrackedList::of(analysis);
    let trace = listed.origin.part_among(files).map_or_else(|| one_trace(files), Ok)?;
    let Some(own) = listed.origin.trace_file() else {
        return Err(taken_before(analysis, snapshot, &trace)
            .unwrap_or_else(|| taken_without_trace(snapshot)));
    };
    let own = shown(own);
    let remedy = format!("the snapshot belongs to {own}: name that, or a snapshot of this trace");
    TrackedBlocks::read(&listed, &trace, options, &remedy)
}

/// The failure for a snapshot of the process that was taken before its trace began.
fn taken_before(analysis: &HeapAnalysis, snapshot: &Path, trace: &Path) -> Option<Failure> {
    let events = Input::open(trace).ok()?.in_file_order().ok()?;
    let (info, facts) = (events.info(), analysis.graph.facts());
    let taken = facts.number(MetaKey::TIME)? / 1000;
    let is_before = facts.number(MetaKey::PID) == Some(info.pid) && taken <= info.start_time;
    is_before.then(|| {
        Failure::Trouble(format!(
            "{}: was taken before the trace {} began, so none of its blocks is in it; take one while the \
             program is traced: `heaptap snapshot {}`",
            shown(snapshot),
            shown(trace),
            info.pid
        ))
    })
}

/// The trace, if it is one that can be read twice.
fn one_trace(files: &[InputFile]) -> Result<PathBuf, Failure> {
    let is_pipe = |path: &Path| path.as_os_str() == "-" || path.exists() && !path.is_file();
    match files {
        [InputFile { path, .. }] if !is_pipe(path) => Ok(path.clone()),
        [InputFile { path, .. }] => Err(Failure::Trouble(format!(
            "{}: a pipe can be read only once, and --heap reads the trace twice; save it to a file first",
            shown(path)
        ))),
        traces => Err(Failure::Trouble(format!(
            "--heap: a snapshot belongs to one trace, and here are {}; name the one that was being written \
             when it was taken: `heaptap info SNAPSHOT` shows its name",
            traces.len()
        ))),
    }
}

/// The samples of all tracked blocks by row and holder.
pub(crate) fn holders(
    analysis: &HeapAnalysis,
    snapshot: &str,
    tracked: &TrackedBlocks,
    rows: Grouping,
) -> SnapshotHolders {
    let taken_us = analysis.graph.facts().number(MetaKey::TIME).unwrap_or(0) / 1000;
    let since_start = taken_us.saturating_sub(tracked.info().start_time);
    let mut holders = SnapshotHolders::new(snapshot, since_start, tracked.scale());
    let retaining = RetainingHolders::new(&analysis.dominators);
    // Names are looked up once for each pair.
    let mut sums: HashMap<(Frame, Option<HolderId>), u64> = HashMap::new();
    for block in &tracked.blocks {
        let sum = sums.entry((block.frame, retaining.of(block.block))).or_default();
        *sum = sum.saturating_add(block.samples);
    }
    let (titles, sites) = (Titles::new(analysis), Sites::new(tracked.locations(), rows));
    for ((frame, holder), samples) in sums {
        let holder = holder.map(|holder| titles.keeper(holder));
        holders.add(sites.of(frame), holder.as_deref(), samples);
    }
    holders
}
