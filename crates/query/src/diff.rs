//! The comparison of two traces: the figures of `heaptap diff`, and both call trees
//! as one.

use heaptap_report::figures::comparison;
use heaptap_report::rows::Site;
use heaptap_report::{
    Estimate, Sampled, SingleSample, certain_distance, distance, is_total_certain,
};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::report::needs_frames;
use crate::request::{Pair, TraceRequest, TreeShape};
use crate::totals::{Called, Counted};
use crate::traces::Traces;
use crate::tree::{Node, Walk};

/// The most cells of a merged tree, and its deepest level.
const MOST_CELLS: usize = 100_000;
const DEEPEST: u32 = 1000;

pub(crate) fn diff(
    traces: &mut Traces,
    pair: Pair,
    of: &TraceRequest,
    top: usize,
) -> Result<String, String> {
    let before = TraceRequest { trace: pair.before, ..of.clone() };
    let after = TraceRequest { trace: pair.after, ..of.clone() };
    let found = (traces.find(&before)?, traces.find(&after)?);
    let exact = found.0.exact && found.1.exact;
    let figures = (traces.figures(&before, &found.0)?, traces.figures(&after, &found.1)?);
    let answer = comparison(&figures.0, &figures.1, &of.view(), top);
    json(&Stated { answer, exact })
}

/// Cells of both trees in preorder, sizes in bytes.
#[derive(Default, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
struct MergedCells {
    parent: Vec<u32>,
    site: Vec<i64>,
    before: Vec<f64>,
    after: Vec<f64>,
    /// Whether the difference is more than chance.
    certain: Vec<bool>,
    count: Vec<u32>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct MergedTree {
    sites: Vec<Site>,
    cells: MergedCells,
    depth: u32,
}

/// A node of either tree or both.
struct Both {
    before: Option<Node>,
    after: Option<Node>,
}

/// Two trees that are walked together.
struct Trees<'a> {
    before: Walk<'a>,
    after: Walk<'a>,
    called: (&'a Called<'a>, &'a Called<'a>),
    single: SingleSample,
}

pub(crate) fn diff_tree(
    traces: &mut Traces,
    pair: Pair,
    of: &TraceRequest,
    shape: &TreeShape,
) -> Result<String, String> {
    needs_frames(of.by)?;
    let before = TraceRequest { trace: pair.before, ..of.clone() };
    let after = TraceRequest { trace: pair.after, ..of.clone() };
    let found = (traces.find(&before)?, traces.find(&after)?);
    let counted =
        (Counted::of(traces, &before, &found.0)?.ok(), Counted::of(traces, &after, &found.1)?.ok());
    let is_exact = |counted: &Option<Counted>| counted.as_ref().is_none_or(Counted::is_exact);
    let exact = found.0.exact && found.1.exact && is_exact(&counted.0) && is_exact(&counted.1);
    let calls = (
        traces.shape(pair.before, of.grouping(), shape.fold)?,
        traces.shape(pair.after, of.grouping(), shape.fold)?,
    );
    let figures = (traces.figures(&before, &found.0)?, traces.figures(&after, &found.1)?);
    let archives = (traces.archive(pair.before)?, traces.archive(pair.after)?);
    let metric = of.metric;
    let one = Called::new(figures.0.aggregate, metric, counted.0.as_ref(), archives.0);
    let other = Called::new(figures.1.aggregate, metric, counted.1.as_ref(), archives.1);
    let tree =
        (one.aggregate.call_tree(&calls.0, metric), other.aggregate.call_tree(&calls.1, metric));
    let walk =
        |tree, called: &Called<'_>| Walk { tree, spread: called.spread(), scale: called.unit() };
    let single = SingleSample { before: one.single_error(), after: other.single_error() };
    let trees = Trees {
        before: walk(&tree.0, &one),
        after: walk(&tree.1, &other),
        called: (&one, &other),
        single,
    };
    let root =
        Both { before: trees.before.focused(shape).ok(), after: trees.after.focused(shape).ok() };
    if root.before.is_none() && root.after.is_none() {
        return Err("that call is in neither trace: its blocks are not selected".to_owned());
    }
    json(&Stated { answer: trees.merged(root, shape), exact })
}

impl Trees<'_> {
    fn size(&self, both: &Both) -> (Estimate, Estimate) {
        let samples =
            |node: &Option<Node>| node.as_ref().map_or(Sampled::default(), |node| node.samples);
        (
            self.called.0.estimate(samples(&both.before)),
            self.called.1.estimate(samples(&both.after)),
        )
    }

    fn site(&self, both: &Both) -> Option<Site> {
        let name =
            |walk: &Walk<'_>, node: &Node| walk.tree.sites().get(node.site? as usize).cloned();
        let before = both.before.as_ref().and_then(|node| name(&self.before, node));
        before.or_else(|| both.after.as_ref().and_then(|node| name(&self.after, node)))
    }

    /// The nodes below, those of the same site together, the larger side first.
    fn below(&self, both: &Both, innermost: bool) -> Vec<(Site, Both)> {
        let mut pairs: std::collections::HashMap<Site, Both> = std::collections::HashMap::new();
        let none = || Both { before: None, after: None };
        for node in both.before.iter().flat_map(|node| self.before.below(node, innermost)) {
            let Some(site) = node.site else { continue };
            let site = self.before.tree.sites()[site as usize].clone();
            pairs.entry(site).or_insert_with(none).before = Some(node);
        }
        for node in both.after.iter().flat_map(|node| self.after.below(node, innermost)) {
            let Some(site) = node.site else { continue };
            let site = self.after.tree.sites()[site as usize].clone();
            pairs.entry(site).or_insert_with(none).after = Some(node);
        }
        let mut pairs: Vec<(Site, Both)> = pairs.into_iter().collect();
        let larger = |both: &Both| {
            let (before, after) = self.size(both);
            before.bytes.max(after.bytes)
        };
        pairs.sort_by(|(one, first), (other, second)| {
            larger(second).total_cmp(&larger(first)).then_with(|| one.cmp(other))
        });
        pairs
    }

    fn merged(&self, root: Both, shape: &TreeShape) -> MergedTree {
        let most = shape.most.clamp(1, MOST_CELLS);
        // The root of all is what the reading counted, without a table's error.
        let of_root = match shape.focus.is_empty() {
            true => (self.called.0.all(), self.called.1.all()),
            false => self.size(&root),
        };
        let (before, after) = &of_root;
        let least = before.bytes.max(after.bytes) * shape.min_share.clamp(0.0, 1.0);
        let mut numbers: std::collections::HashMap<Site, usize> = std::collections::HashMap::new();
        let mut answer = MergedTree { sites: Vec::new(), cells: MergedCells::default(), depth: 0 };
        let mut distances = Vec::new();
        let first = self.site(&root);
        let mut stack = vec![(0_u32, 0_u32, first, root)];
        while let Some((parent, depth, site, both)) = stack.pop() {
            let number = answer.cells.parent.len() as u32;
            answer.depth = answer.depth.max(depth);
            let site = site.map(|site| {
                let sites = &mut answer.sites;
                *numbers.entry(site).or_insert_with_key(|site| {
                    sites.push(site.clone());
                    sites.len() - 1
                })
            });
            let (before, after) = match number {
                0 => of_root,
                _ => self.size(&both),
            };
            distances.push(distance(&before, &after, self.single));
            answer.cells.push(
                parent,
                site.map_or(-1, |site| site as i64),
                before.bytes,
                after.bytes,
                1,
            );
            let innermost = shape.invert && depth == 0 && site.is_none();
            let below = self.below(&both, innermost);
            let full = number as usize + stack.len() + below.len() > most || depth >= DEEPEST;
            let is_shown = |(_, both): &(Site, Both)| {
                let (before, after) = self.size(both);
                !full && before.bytes.max(after.bytes) >= least
            };
            let (shown, small): (Vec<_>, Vec<_>) = below.into_iter().partition(is_shown);
            // Small cells have no cells below, so their place in preorder is right here.
            if !small.is_empty() {
                let sizes = small.iter().map(|(_, both)| self.size(both));
                let (before, after) = sizes.fold((0.0, 0.0), |(before, after), size| {
                    (before + size.0.bytes, after + size.1.bytes)
                });
                distances.push(0.0);
                answer.cells.push(number, -1, before, after, small.len() as u32);
                answer.depth = answer.depth.max(depth + 1);
            }
            let shown = shown.into_iter().rev();
            stack.extend(shown.map(|(site, both)| (number, depth + 1, Some(site), both)));
        }
        let limit = certain_distance(distances.len());
        answer.cells.certain = distances.iter().map(|distance| distance.abs() > limit).collect();
        // What the tree is of was chosen before its cells were seen, as the total of a table is.
        answer.cells.certain[0] = is_total_certain(distances[0]);
        answer
    }
}

impl MergedCells {
    fn push(&mut self, parent: u32, site: i64, before: f64, after: f64, count: u32) {
        self.parent.push(parent);
        self.site.push(site);
        self.before.push(before);
        self.after.push(after);
        self.count.push(count);
    }
}
