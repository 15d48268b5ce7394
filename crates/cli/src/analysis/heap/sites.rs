//! Where what is alive in a snapshot was allocated, how long ago, and who holds it now.
//!
//! What a holder retains is exact, and what a site has of it is an estimate.

use std::collections::BTreeMap;
use std::path::Path;

use heaptap_graph::{DominatorTree, HeapAnalysis, HolderId, Node, RetainingHolders};
use heaptap_heap::MetaKey;
use heaptap_report::figures::heap::sites::{SiteFigures, SiteRow};
use heaptap_report::figures::heap::titles::Titles;
use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{Options, Scale};

use super::tracked::{TrackedBlocks, TrackedList};
use crate::exit_status::Failure;

#[derive(Default)]
struct SiteSum {
    blocks: u64,
    samples: u64,
    ages: Vec<u64>,
    holders: BTreeMap<HolderId, u64>,
}

/// Joins the snapshot with its trace. `within`: only what this holder retains.
pub(crate) fn sites(
    analysis: &HeapAnalysis,
    trace: &Path,
    within: Option<HolderId>,
    limit: usize,
) -> Result<SiteFigures, Failure> {
    let remedy = "name that one with --trace";
    let listed = TrackedList::of(analysis);
    let tracked = TrackedBlocks::read(&listed, trace, Options::default(), remedy)?;
    Ok(sites_of(analysis, &tracked, within, limit))
}

/// The same of tracked blocks by the frames that allocated them.
pub(crate) fn sites_of(
    analysis: &HeapAnalysis,
    tracked: &TrackedBlocks,
    within: Option<HolderId>,
    limit: usize,
) -> SiteFigures {
    let titles = Titles::new(analysis);
    let sums = sums_by_site(analysis, tracked, within);
    let scale = tracked.scale();
    let all: u64 = sums.values().map(|sum| sum.samples).sum();
    let blocks = sums.values().map(|sum| sum.blocks).sum();
    let mut rows: Vec<SiteRow> =
        sums.into_iter().map(|(site, sum)| row(site, sum, &scale, all, &titles)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
    let shown = if limit == 0 { rows.len() } else { limit.min(rows.len()) };
    let others = rows.split_off(shown);
    let exact = within.map_or(analysis.reachable_bytes(), |id| analysis.dominators.retained_by(id));
    let position = |id| analysis.dominators.position(Node::Holder(id)).unwrap_or_default();
    let exact_outside = analysis
        .dominators
        .retained_outside(within.map_or(DominatorTree::PROGRAM, position))
        .allocated;
    SiteFigures {
        trace: tracked.trace.clone(),
        within: within.map(|holder| titles.holder(holder)),
        exact_bytes: exact,
        exact_outside_bytes: exact_outside,
        estimated: scale.bytes(all).into(),
        sampled_blocks: blocks,
        rows,
        other_rows: others.len() as u64,
        other_share: others.iter().map(|row| row.share).sum(),
    }
}

/// The blocks that are held, or that `within` retains, by site.
fn sums_by_site(
    analysis: &HeapAnalysis,
    tracked: &TrackedBlocks,
    within: Option<HolderId>,
) -> BTreeMap<Site, SiteSum> {
    let taken = analysis.graph.facts().number(MetaKey::TIME).unwrap_or(0) / 1000;
    let names = Sites::new(tracked.locations(), By::Location);
    let retaining = RetainingHolders::new(&analysis.dominators);
    let is_counted = |holder: HolderId| {
        within.is_none_or(|within| analysis.holders.path(holder).contains(&within))
    };
    let mut sums: BTreeMap<Site, SiteSum> = BTreeMap::new();
    for block in &tracked.blocks {
        let Some(holder) = retaining.of(block.block).filter(|holder| is_counted(*holder)) else {
            continue;
        };
        let sum = sums.entry(names.of(block.frame)).or_default();
        sum.blocks += 1;
        sum.samples = sum.samples.saturating_add(block.samples);
        sum.ages.push(taken.saturating_sub(block.time));
        *sum.holders.entry(holder).or_default() += block.samples;
    }
    sums
}

fn row(site: Site, mut sum: SiteSum, scale: &Scale, all: u64, titles: &Titles<'_>) -> SiteRow {
    sum.ages.sort_unstable();
    let most = sum.holders.iter().max_by_key(|(_, samples)| **samples);
    let part = |samples: u64, of: u64| samples as f64 / of.max(1) as f64;
    SiteRow {
        site,
        sampled_blocks: sum.blocks,
        samples: sum.samples,
        size: scale.bytes(sum.samples).into(),
        share: part(sum.samples, all),
        median_age_us: sum.ages.get(sum.ages.len() / 2).copied().unwrap_or(0),
        oldest_us: sum.ages.last().copied().unwrap_or(0),
        holder: most.map_or_else(String::new, |(holder, _)| titles.keeper(*holder)),
        holder_share: most.map_or(0.0, |(_, samples)| part(*samples, sum.samples)),
    }
}
