//! The join of a snapshot and the trace that was being written: where what is alive was allocated, how long ago,
//! and who holds it now.
//!
//! The snapshot has the address and the id of each block that the trace follows. Other blocks were not sampled, so
//! sizes are estimates with an error, as in `heaptap report`; but the snapshot knows exactly what a holder
//! retains.

use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use heaptap_figures::{CallSite, Size};
use heaptap_heap::{HeapAnalysis, HolderId, MetaKey, Node};
use heaptap_report::rows::{By, Sites};
use heaptap_report::{Frame, Scale};
use heaptap_trace::EventKind;
use serde::Serialize;

use super::titles::Titles;
use crate::exit_status::Failure;
use crate::io::input::Input;

/// A place that allocated blocks which are alive.
#[derive(Serialize)]
pub(crate) struct SiteRow {
    pub(crate) site: CallSite,
    /// How many of its blocks the trace follows.
    pub(crate) sampled_blocks: u64,
    pub(crate) samples: u64,
    /// What they stand for.
    pub(crate) size: Size,
    pub(crate) share: f64,
    /// Ages when the snapshot was taken: half are younger.
    pub(crate) median_age_us: u64,
    pub(crate) oldest_us: u64,
    /// The holder that retains most of them, and its share of them.
    pub(crate) holder: String,
    pub(crate) holder_share: f64,
}

/// Where what is alive was allocated.
#[derive(Serialize)]
pub(crate) struct SiteFigures {
    pub(crate) trace: String,
    /// The holder whose blocks are counted; absent for all.
    pub(crate) within: Option<String>,
    /// What it retains, or all that is reachable: exact.
    pub(crate) exact_bytes: u64,
    /// The same, estimated from the samples.
    pub(crate) estimated: Size,
    pub(crate) sampled_blocks: u64,
    pub(crate) rows: Vec<SiteRow>,
    pub(crate) other_rows: u64,
    pub(crate) other_share: f64,
}

/// What the trace knows about a block.
struct Origin {
    frame: Frame,
    samples: u64,
    time: u64,
}

#[derive(Default)]
struct SiteSum {
    blocks: u64,
    samples: u64,
    ages: Vec<u64>,
    holders: BTreeMap<HolderId, u64>,
}

/// The trace of a snapshot: the one that is given, or the one that the snapshot names, where it
/// was or beside the snapshot.
pub(crate) fn trace_of(
    analysis: &HeapAnalysis,
    snapshot: &Path,
    given: Option<&Path>,
) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let Some(name) = analysis.graph.facts().meta(MetaKey::TRACE_FILE) else {
        return Err(Failure::Trouble(format!(
            "{}: no trace was being written when it was taken, so where its blocks were allocated is not known; \
             `heaptap run --snapshot exit -o trace.ctf -- PROGRAM` writes both",
            snapshot.display()
        )));
    };
    let named = PathBuf::from(String::from_utf8_lossy(name).into_owned());
    let beside = named.file_name().map(|file| snapshot.with_file_name(file));
    let found = [Some(named.clone()), beside].into_iter().flatten().find(|path| path.exists());
    found.ok_or_else(|| {
        Failure::Trouble(format!(
            "{}: its trace {} is not there; name it with --trace",
            snapshot.display(),
            named.display()
        ))
    })
}

/// Joins the snapshot with its trace. `within`: only what this holder retains.
pub(crate) fn sites(
    analysis: &HeapAnalysis,
    trace: &Path,
    within: Option<HolderId>,
    limit: usize,
) -> Result<SiteFigures, Failure> {
    let facts = analysis.graph.facts();
    let titles = Titles::new(analysis);
    let input = Input::open(trace)?;
    let mut events = input.in_file_order()?;
    let info = events.info().clone();
    let other = |why: &str| {
        Failure::Trouble(format!(
            "{}: not the trace that was being written when the snapshot was taken: {why}; name that one with --trace",
            input.name()
        ))
    };
    if facts.number(MetaKey::PID).is_some_and(|pid| pid != info.pid) {
        return Err(other("it is of another process"));
    }
    let wanted: HashMap<u64, u32> =
        analysis.graph.followed().iter().map(|&(block, id)| (id, block)).collect();
    let mut origins: HashMap<u32, Origin> = HashMap::new();
    let mut of_other_sizes = 0;
    let read = events.for_each(&mut |event, _| {
        if let EventKind::Alloc(allocation) = &event.kind
            && let Some(&block) = wanted.get(&allocation.id)
        {
            of_other_sizes += usize::from(allocation.length != analysis.graph.words(block));
            let frame = allocation.backtrace.frames.last();
            let frame = frame.map_or(Frame::Nowhere, |code| Frame::Code(*code));
            origins.insert(block, Origin { frame, samples: allocation.samples, time: event.time });
        }
        ControlFlow::Continue(())
    });
    let _ = read.map_err(|error| input.failure(error))?;
    input.end_progress();
    // Few programs cut blocks, and few of their blocks.
    if of_other_sizes > origins.len() / 100 {
        return Err(other("its blocks have other sizes"));
    }
    let taken = facts.number(MetaKey::TIME).unwrap_or(0) / 1000;
    let mut sums: BTreeMap<(String, String, u32, (u32, u32)), SiteSum> = BTreeMap::new();
    let names = Sites::new(events.locations(), By::Location);
    for (block, origin) in &origins {
        let Some(holder) = retaining_holder(analysis, *block, within) else { continue };
        let site = names.of(origin.frame);
        let sum = sums.entry((site.name, site.file, site.line, site.chars)).or_default();
        sum.blocks += 1;
        sum.samples = sum.samples.saturating_add(origin.samples);
        sum.ages.push(taken.saturating_sub(origin.time));
        *sum.holders.entry(holder).or_default() += origin.samples;
    }
    let scale = Scale { rate: info.sample_rate, word_bytes: f64::from(info.word_size) / 8.0 };
    let all: u64 = sums.values().map(|sum| sum.samples).sum();
    let blocks = sums.values().map(|sum| sum.blocks).sum();
    let mut rows: Vec<SiteRow> = sums
        .into_iter()
        .map(|((name, file, line, chars), sum)| {
            row(CallSite { name, file, line, chars }, sum, &scale, all, &titles)
        })
        .collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.samples));
    let shown = if limit == 0 { rows.len() } else { limit.min(rows.len()) };
    let others = rows.split_off(shown);
    let exact = within.map_or(analysis.reachable_bytes(), |id| analysis.dominators.retained_by(id));
    Ok(SiteFigures {
        trace: input.name().to_owned(),
        within: within.map(|holder| titles.holder(holder)),
        exact_bytes: exact,
        estimated: scale.bytes(all).into(),
        sampled_blocks: blocks,
        rows,
        other_rows: others.len() as u64,
        other_share: others.iter().map(|row| row.share).sum(),
    })
}

/// The last holder that retains a block. `None` if the block is garbage or `within` does not retain it.
fn retaining_holder(
    analysis: &HeapAnalysis,
    block: u32,
    within: Option<HolderId>,
) -> Option<HolderId> {
    let dominators = &analysis.dominators;
    let mut position = dominators.position(Node::Block(block))?;
    loop {
        position = dominators.dominator(position);
        let Node::Holder(holder) = dominators.node(position) else { continue };
        let is_within =
            |within: HolderId| holder == within || analysis.holders.path(holder).contains(&within);
        return within.is_none_or(is_within).then_some(holder);
    }
}

fn row(site: CallSite, mut sum: SiteSum, scale: &Scale, all: u64, titles: &Titles<'_>) -> SiteRow {
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
        holder: most.map_or_else(String::new, |(holder, _)| titles.holder(*holder)),
        holder_share: most.map_or(0.0, |(_, samples)| part(*samples, sum.samples)),
    }
}
