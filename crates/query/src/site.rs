//! All about one site: callers and callees, lifetimes, sizes and lines.

use heaptap_report::figures::{Sum, share};
use heaptap_report::rows::{By, Grouping, Site, Sites};
use heaptap_report::{Aggregate, CallTree, Metric, SelectedBlock, SiteFrame};
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};

use crate::answer::{Stated, json, sum};
use crate::block_rows::Inside;
use crate::report::needs_frames;
use crate::request::TraceRequest;
use crate::traces::Traces;
use crate::tree::unit;

/// The most levels of callers and callees, and of rows in each.
const MOST_LEVELS: usize = 8;
const MOST_ROWS: usize = 20;

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
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SiteNode"))]
struct CallRow {
    site: Site,
    sum: Sum,
    share: f64,
    children: Vec<CallRow>,
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
    let shape = traces.shape(of.trace, of.grouping(), true)?;
    let figures = traces.figures(of, &found)?;
    let archive = traces.archive(of.trace)?;
    let (aggregate, metric) = (figures.aggregate, of.metric);
    let levels = levels.clamp(1, MOST_LEVELS);
    let tree = aggregate.call_tree(&shape, metric);
    let number = tree.sites().iter().position(|site| site == wanted).map(|at| at as u32);
    let nodes = number.map_or(Vec::new(), |number| outermost(&tree, number));
    let all = nodes.iter().fold(0_u64, |sum, &node| sum.saturating_add(tree.samples(node)));
    let row = |site: &Site, samples, children| CallRow {
        site: site.clone(),
        sum: sum(aggregate, metric, samples),
        share: share(samples, all),
        children,
    };
    let with_samples: Vec<_> = nodes.iter().map(|&node| (node, tree.samples(node))).collect();
    let inside = Inside::new(&rows, wanted);
    let own = match of.sites {
        SiteFrame::Innermost => own_samples(&tree, number),
        SiteFrame::Own => samples_inside(aggregate, metric, inside),
    };
    let all_blocks = archive.blocks.selected(&archive.aggregate, &selected);
    let blocks: Vec<SelectedBlock> =
        all_blocks.filter(|block| inside.has_path(block.path)).collect();
    let answer = SiteAnswer {
        sum: sum(aggregate, metric, own),
        total: sum(aggregate, metric, all),
        share: share(all, tree.samples(0)),
        callers: callers(&tree, &with_samples, levels, &row),
        callees: callees(&tree, &nodes, levels, &row),
        own_bytes: own_bytes(&blocks, unit(aggregate)),
        lifetimes: lifetimes(&blocks, aggregate.duration(), unit(aggregate)),
        sizes: sizes(&blocks, unit(aggregate)),
        lines: lines(&figures, of, inside),
    };
    json(&Stated { answer, exact: found.exact })
}

/// The nodes of a site that have samples and are below no other node of it.
fn outermost(tree: &CallTree, site: u32) -> Vec<u32> {
    let mut nodes = Vec::new();
    let mut node = 1;
    while node < tree.len() {
        if tree.samples(node) == 0 {
            node = tree.end(node);
        } else if tree.site(node) == Some(site) {
            nodes.push(node);
            node = tree.end(node);
        } else {
            node += 1;
        }
    }
    nodes
}

fn own_samples(tree: &CallTree, site: Option<u32>) -> u64 {
    let Some(site) = site else { return 0 };
    let nodes = (1..tree.len()).filter(|&node| tree.site(node) == Some(site));
    nodes.fold(0, |sum: u64, node| sum.saturating_add(tree.own_samples(node)))
}

/// The samples of the paths of which the site is this row.
fn samples_inside(aggregate: &Aggregate, metric: Metric, inside: Inside<'_>) -> u64 {
    let is_inside = |path| aggregate.whole_path(path).is_some_and(|path| inside.has_path(path));
    let paths = aggregate.paths().enumerate();
    let samples = paths.filter(|&(path, _)| is_inside(path as u32));
    samples.fold(0, |sum: u64, (_, (_, counts))| sum.saturating_add(metric.samples(counts)))
}

type MakeRow<'a> = dyn Fn(&Site, u64, Vec<CallRow>) -> CallRow + 'a;

/// The callers of nodes, each with the samples that it passes on.
fn callers(
    tree: &CallTree,
    nodes: &[(u32, u64)],
    levels: usize,
    row: &MakeRow<'_>,
) -> Vec<CallRow> {
    if levels == 0 {
        return Vec::new();
    }
    let mut groups: HashMap<u32, Vec<(u32, u64)>> = HashMap::new();
    for &(node, samples) in nodes {
        let parent = tree.parent(node);
        if let Some(site) = tree.site(parent) {
            groups.entry(site).or_default().push((parent, samples));
        }
    }
    ranked(
        tree,
        groups,
        |group| {
            let samples = group.iter().fold(0, |sum: u64, &(_, part)| sum.saturating_add(part));
            (samples, callers(tree, group, levels - 1, row))
        },
        row,
    )
}

fn callees(tree: &CallTree, nodes: &[u32], levels: usize, row: &MakeRow<'_>) -> Vec<CallRow> {
    if levels == 0 {
        return Vec::new();
    }
    let mut groups: HashMap<u32, Vec<u32>> = HashMap::new();
    for child in nodes.iter().flat_map(|&node| tree.children(node)) {
        if let Some(site) = tree.site(child).filter(|_| tree.samples(child) > 0) {
            groups.entry(site).or_default().push(child);
        }
    }
    ranked(
        tree,
        groups,
        |group| {
            let samples =
                group.iter().fold(0, |sum: u64, &node| sum.saturating_add(tree.samples(node)));
            (samples, callees(tree, group, levels - 1, row))
        },
        row,
    )
}

/// The groups as rows, the largest first.
fn ranked<T>(
    tree: &CallTree,
    groups: HashMap<u32, Vec<T>>,
    mut below: impl FnMut(&[T]) -> (u64, Vec<CallRow>),
    row: &MakeRow<'_>,
) -> Vec<CallRow> {
    let mut rows: Vec<(u64, u32, Vec<CallRow>)> = groups
        .into_iter()
        .map(|(site, group)| {
            let (samples, children) = below(&group);
            (samples, site, children)
        })
        .collect();
    let name = |site: u32| &tree.sites()[site as usize];
    rows.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| name(one.1).cmp(name(other.1))));
    rows.truncate(MOST_ROWS);
    rows.into_iter().map(|(samples, site, below)| row(name(site), samples, below)).collect()
}

/// Classes that double, from 0 on.
fn class_of(number: u64) -> (u64, u64) {
    if number == 0 {
        return (0, 1);
    }
    let from = 1 << (63 - number.leading_zeros());
    (from, from.saturating_mul(2))
}

fn own_bytes(blocks: &[SelectedBlock], unit: f64) -> f64 {
    let samples = blocks.iter().fold(0_u64, |sum, block| sum.saturating_add(block.samples));
    samples as f64 * unit
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
        *samples = samples.saturating_add(block.samples);
        lives.push((lifetime, block.samples));
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
        *classes.entry(class_of(block.bytes)).or_default() += block.samples;
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
    let mut lines: BTreeMap<u32, u64> = BTreeMap::new();
    for (number, ((_, counts), frame)) in aggregate.paths().zip(frames).enumerate() {
        let samples = metric.samples(counts);
        let is_inside = || aggregate.whole_path(number as u32).is_some_and(|p| inside.has_path(p));
        if samples > 0 && is_inside() {
            let sum = lines.entry(places.of(frame).line).or_default();
            *sum = sum.saturating_add(samples);
        }
    }
    let line = |(line, samples)| Line { line, sum: sum(aggregate, metric, samples) };
    lines.into_iter().map(line).collect()
}
