//! All about one site: callers and callees, lifetimes, sizes and lines.

mod calls;

use heaptap_report::figures::{Sum, share};
use heaptap_report::rows::{By, Grouping, Site, Sites};
use heaptap_report::{Aggregate, CallTree, Metric, Sampled, SelectedBlock, SiteFrame, SiteTotal};
use serde::Serialize;
use std::collections::BTreeMap;

use crate::answer::{Stated, json, sum, unit};
use crate::block_rows::Inside;
use crate::report::needs_frames;
use crate::request::TraceRequest;
use crate::totals::{Counted, Counting, times};
use crate::traces::Traces;
use calls::{CallRow, callees, callers, outermost};

/// The most levels of callers and callees.
const MOST_LEVELS: usize = 8;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SiteDetails"))]
pub(crate) struct SiteAnswer {
    /// What the site itself allocates, with the library code that it calls if sites are own code.
    sum: Sum,
    /// With all that it calls.
    total: Sum,
    share: f64,
    callers: Vec<CallRow>,
    callees: Vec<CallRow>,
    /// All that the site itself has allocated, whatever the metric: of these blocks are
    /// `lifetimes` and `sizes`.
    own_bytes: f64,
    lifetimes: Lifetimes,
    sizes: Vec<SizeClass>,
    lines: Vec<Line>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct Lifetimes {
    /// Of blocks that were collected.
    classes: Vec<LifetimeClass>,
    /// What was not collected: how long it lives is not known.
    never_freed_bytes: f64,
    /// `None` where the trace ended first.
    median_us: Option<u64>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct LifetimeClass {
    from_us: u64,
    to_us: u64,
    bytes: f64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct SizeClass {
    from: u64,
    to: u64,
    bytes: f64,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SiteLine"))]
struct Line {
    line: u32,
    sum: Sum,
}

pub(crate) fn site(
    traces: &mut Traces,
    of: &TraceRequest,
    wanted: &Site,
    levels: usize,
) -> Result<String, String> {
    needs_frames(of.by)?;
    let found = traces.find(of)?;
    let selected = traces.selected_rows(of)?;
    let rows = traces.rows(of.trace, of.grouping())?;
    let counted = Counted::of(traces, of, &found)?.ok();
    let shape = traces.shape(of.trace, of.grouping(), true)?;
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let (aggregate, metric) = (figures.aggregate, of.metric);
    let table = counted.as_ref().and_then(|counted| counted.table(archive));
    let with_callers = table.unwrap_or(aggregate);
    let levels = levels.clamp(1, MOST_LEVELS);
    let tree = with_callers.call_tree(&shape, metric);
    let number = tree.sites().iter().position(|site| site == wanted).map(|at| at as u32);
    let nodes = number.map_or(Vec::new(), |number| outermost(&tree, number));
    let all: Sampled = nodes.iter().map(|&node| tree.samples(node)).sum();
    let with_samples: Vec<_> = nodes.iter().map(|&node| (node, tree.samples(node))).collect();
    let inside = Inside::new(&rows, wanted);
    let own = match of.sites {
        SiteFrame::Innermost if table.is_none() => own_samples(&tree, number),
        SiteFrame::Innermost | SiteFrame::Own => samples_inside(aggregate, metric, inside),
    };
    // As in the table of rows.
    let total = match table {
        None => sum(aggregate, metric, all),
        table => {
            Counting::new(&figures, of, table, Some).of_row(wanted, own, SiteTotal::of_samples(all))
        }
    };
    // So that callers and callees add up to no more than that.
    let found_in_tree = with_callers.estimate(metric, all);
    let by = if found_in_tree.bytes > 0.0 { total.size.bytes / found_in_tree.bytes } else { 1.0 };
    let row = |site: &Site, samples, children| CallRow {
        site: site.clone(),
        sum: Sum::new(
            &aggregate.scale(),
            samples,
            times(with_callers.estimate(metric, samples), by),
        ),
        share: share(samples.count, all.count),
        children,
    };
    let all_blocks = archive.blocks.selected(&archive.aggregate, &selected);
    let blocks: Vec<SelectedBlock> =
        all_blocks.filter(|block| inside.has_path(block.path)).collect();
    let unit = match found.is_reading() {
        true => {
            unit_of(&blocks, samples_inside(aggregate, Metric::Allocated, inside).count, aggregate)
        }
        false => unit(aggregate),
    };
    let answer = SiteAnswer {
        sum: sum(aggregate, metric, own),
        total,
        share: share(total.sampled.count, aggregate.total(metric).count),
        callers: callers(&tree, &with_samples, levels, &row),
        callees: callees(&tree, &nodes, levels, &row),
        own_bytes: own_bytes(&blocks, unit),
        lifetimes: lifetimes(&blocks, aggregate.duration(), unit),
        sizes: sizes(&blocks, unit),
        lines: lines(&figures, of, inside),
    };
    let exact = found.exact && counted.is_none_or(|counted| counted.is_exact());
    json(&Stated { answer, exact })
}

fn own_samples(tree: &CallTree, site: Option<u32>) -> Sampled {
    let Some(site) = site else { return Sampled::default() };
    let nodes = (1..tree.len()).filter(|&node| tree.site(node) == Some(site));
    nodes.map(|node| tree.own_samples(node)).sum()
}

/// The samples of the paths of which the site is this row.
fn samples_inside(aggregate: &Aggregate, metric: Metric, inside: Inside<'_>) -> Sampled {
    let is_inside = |path| aggregate.whole_path(path).is_some_and(|path| inside.has_path(path));
    let paths = aggregate.paths().enumerate();
    let samples = paths.filter(|&(path, _)| is_inside(path as u32));
    samples.map(|(_, (_, tally))| metric.of(&tally)).sum()
}

/// Classes that double, from 0 on.
fn class_of(number: u64) -> (u64, u64) {
    if number == 0 {
        return (0, 1);
    }
    let from = 1 << (63 - number.leading_zeros());
    (from, from.saturating_mul(2))
}

/// The bytes for each sample of the blocks of a table, which together are `allocated` samples: a thinned
/// table has a little more or less than that.
fn unit_of(blocks: &[SelectedBlock], allocated: u64, aggregate: &Aggregate) -> f64 {
    let found = blocks.iter().map(|block| block.samples).sum::<Sampled>().count;
    if found == 0 { unit(aggregate) } else { unit(aggregate) * allocated as f64 / found as f64 }
}

fn own_bytes(blocks: &[SelectedBlock], unit: f64) -> f64 {
    blocks.iter().map(|block| block.samples).sum::<Sampled>().count as f64 * unit
}

/// `end`: no block has lived longer than the trace.
fn lifetimes(blocks: &[SelectedBlock], end: u64, unit: f64) -> Lifetimes {
    let mut classes: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    let mut never_freed = 0_u64;
    let mut lives: Vec<(u64, u64)> = Vec::with_capacity(blocks.len());
    for block in blocks {
        let lifetime = match block.end {
            Some(end) if block.collected => end.saturating_sub(block.birth),
            _ => u64::MAX,
        };
        let samples = match lifetime {
            u64::MAX => &mut never_freed,
            known => classes.entry(class_of(known)).or_default(),
        };
        *samples = samples.saturating_add(block.samples.count);
        lives.push((lifetime, block.samples.count));
    }
    lives.sort_unstable();
    let all = lives.iter().fold(0_u64, |sum, &(_, samples)| sum.saturating_add(samples));
    let mut below = 0_u64;
    let median = lives.iter().find(|&&(_, samples)| {
        below = below.saturating_add(samples);
        below.saturating_mul(2) >= all
    });
    let class = |((from_us, to_us), samples): ((u64, u64), u64)| LifetimeClass {
        from_us,
        to_us: to_us.min(end.max(from_us)),
        bytes: samples as f64 * unit,
    };
    Lifetimes {
        classes: classes.into_iter().map(class).collect(),
        never_freed_bytes: never_freed as f64 * unit,
        median_us: median.map(|&(lifetime, _)| lifetime).filter(|&lifetime| lifetime != u64::MAX),
    }
}

fn sizes(blocks: &[SelectedBlock], unit: f64) -> Vec<SizeClass> {
    let mut classes: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for block in blocks {
        *classes.entry(class_of(block.bytes)).or_default() += block.samples.count;
    }
    let class = |((from, to), samples): ((u64, u64), u64)| SizeClass {
        from,
        to,
        bytes: samples as f64 * unit,
    };
    classes.into_iter().map(class).collect()
}

/// The lines at which the site allocates.
fn lines(
    figures: &heaptap_report::figures::TraceFigures<'_>,
    of: &TraceRequest,
    inside: Inside<'_>,
) -> Vec<Line> {
    let (aggregate, metric) = (figures.aggregate, of.metric);
    let places = Sites::new(figures.locations, Grouping { by: By::Location, site: of.sites });
    let frames = aggregate.site_frames(figures.locations, of.sites);
    let mut lines: BTreeMap<u32, Sampled> = BTreeMap::new();
    for (number, ((_, counts), frame)) in aggregate.paths().zip(frames).enumerate() {
        let samples = metric.of(&counts);
        let is_inside = || aggregate.whole_path(number as u32).is_some_and(|p| inside.has_path(p));
        if samples.count > 0 && is_inside() {
            let sum = lines.entry(places.of(frame).line).or_default();
            *sum = sum.plus(samples);
        }
    }
    let line = |(line, samples)| Line { line, sum: sum(aggregate, metric, samples) };
    lines.into_iter().map(line).collect()
}
