//! Two snapshots compared by where their blocks were allocated.
//!
//! Each snapshot is joined with its trace, so sizes are estimates. Blocks that both snapshots of one run have do not
//! change: the error of a change is that of the blocks which only one of them has.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use heaptap_graph::{HeapAnalysis, RetainingHolders};
use heaptap_report::figures::Size;
use heaptap_report::figures::heap::growth::Change;
use heaptap_report::figures::heap::sites::{SiteGrowthRow, SiteGrowthTable};
use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{Options, Scale};

use super::tracked::{TrackedBlocks, TrackedList};
use crate::exit_status::Failure;

/// A snapshot, its file, and its trace if it was named.
pub(crate) struct JoinedSnapshot<'a> {
    pub(crate) analysis: &'a HeapAnalysis,
    pub(crate) file: &'a Path,
    pub(crate) trace: Option<&'a PathBuf>,
}

/// The samples of blocks that are alive, by their ids in the trace.
type Blocks = HashMap<u64, u64>;

struct BlocksBySite {
    scale: Scale,
    /// Process and start of the trace.
    run: (u64, u64),
    sites: BTreeMap<Site, Blocks>,
}

/// Compares two snapshots. `limit`: the most rows, 0 for all.
pub(crate) fn site_growth(
    before: &JoinedSnapshot<'_>,
    after: &JoinedSnapshot<'_>,
    limit: usize,
) -> Result<SiteGrowthTable, Failure> {
    let (mut before, mut after) = (BlocksBySite::read(before)?, BlocksBySite::read(after)?);
    let is_one_run = before.run == after.run;
    let mut sites: Vec<Site> = before.sites.keys().chain(after.sites.keys()).cloned().collect();
    sites.sort();
    sites.dedup();
    let row = |site: Site| {
        let old = before.sites.remove(&site).unwrap_or_default();
        let new = after.sites.remove(&site).unwrap_or_default();
        row(site, (&old, &before.scale), (&new, &after.scale), is_one_run)
    };
    let mut rows: Vec<SiteGrowthRow> = sites.into_iter().map(row).collect();
    rows.retain(|row| row.change != Change::Same);
    rows.sort_by(|one, other| {
        let order = other.growth_bytes.abs().total_cmp(&one.growth_bytes.abs());
        order.then_with(|| one.site.cmp(&other.site))
    });
    let shown = if limit == 0 { rows.len() } else { limit.min(rows.len()) };
    let others = rows.split_off(shown);
    Ok(SiteGrowthTable {
        by: "site",
        rows,
        other_rows: others.len() as u64,
        other_growth_bytes: others.iter().map(|row| row.growth_bytes).sum(),
    })
}

impl BlocksBySite {
    fn read(snapshot: &JoinedSnapshot<'_>) -> Result<BlocksBySite, Failure> {
        let JoinedSnapshot { analysis, file, trace } = snapshot;
        let listed = TrackedList::of(analysis);
        let trace = listed.origin.find_trace(file, trace.map(PathBuf::as_path))?;
        let remedy = format!("name the one of {} with --trace", file.display());
        let tracked = TrackedBlocks::read(&listed, &trace, Options::default(), &remedy)?;
        let names = Sites::new(tracked.locations(), By::Location);
        let retaining = RetainingHolders::new(&analysis.dominators);
        let mut sites: BTreeMap<Site, Blocks> = BTreeMap::new();
        for block in tracked.blocks.iter().filter(|block| retaining.of(block.block).is_some()) {
            let site = names.of(block.frame);
            sites.entry(site).or_default().insert(block.id, block.samples);
        }
        let run = (tracked.info().pid, tracked.info().start_time);
        Ok(BlocksBySite { scale: tracked.scale(), run, sites })
    }
}

fn row(
    site: Site,
    (old, old_scale): (&Blocks, &Scale),
    (new, new_scale): (&Blocks, &Scale),
    is_one_run: bool,
) -> SiteGrowthRow {
    let sum = |blocks: &Blocks| blocks.values().fold(0u64, |sum, one| sum.saturating_add(*one));
    let only_in = |one: &Blocks, other: &Blocks| {
        let only = one.iter().filter(|(id, _)| !is_one_run || !other.contains_key(id));
        only.fold(0u64, |sum, (_, samples)| sum.saturating_add(*samples))
    };
    let before: Size = old_scale.bytes(sum(old)).into();
    let after: Size = new_scale.bytes(sum(new)).into();
    let gone = old_scale.bytes(only_in(old, new));
    let added = new_scale.bytes(only_in(new, old));
    let growth_bytes = after.bytes - before.bytes;
    let change = match (old.is_empty(), new.is_empty()) {
        (true, false) => Change::New,
        (false, true) => Change::Gone,
        _ if growth_bytes > 0.0 => Change::Grown,
        _ if growth_bytes < 0.0 => Change::Shrunk,
        _ => Change::Same,
    };
    let growth_error = gone.error.hypot(added.error);
    SiteGrowthRow { site, change, before, after, growth_bytes, growth_error }
}
