//! The call tree by function: inlined calls spread out, recursion folded unless it
//! is asked for.
//!
//! Its shape depends on the calls of a trace, not on what is counted of them. So one
//! shape serves all metrics, and all selections from a table of blocks.

use std::rc::Rc;

use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric};
use crate::counts::{Counts, Tallies};
use crate::estimate::Sampled;
use crate::folding::{SiteTree, StackState, used};
use crate::paths::Node;
use crate::rows::{By, Grouping, Site};
use crate::stacks::Omitted;

/// The functions of a tree. Nodes are in preorder, so that a subtree is a range.
pub(crate) struct FunctionShape {
    /// The sites by number.
    pub(crate) names: Vec<Site>,
    /// The site of each node. Node 0 is the root, which has no site.
    pub(crate) sites: Vec<u32>,
    pub(crate) parents: Vec<u32>,
    /// For each node, the first node after its subtree.
    pub(crate) ends: Vec<u32>,
    /// For each node, the most iterations of the cycle of functions that begins there.
    pub(crate) repeats: Vec<u32>,
    /// For each node of the aggregate's call tree at which a path ends, or below which
    /// one does, the node here.
    positions: Vec<u32>,
    /// For each node of the aggregate's call tree, the frames above it that are folded
    /// away; empty if none are.
    folded: Vec<u32>,
}

/// A tree of functions with the samples of each.
pub(crate) struct FunctionTree {
    pub(crate) shape: Rc<FunctionShape>,
    /// Samples at each node and below it.
    pub(crate) weights: Vec<u64>,
    /// The variances of these; none if the trace has one rate.
    pub(crate) variances: Vec<u64>,
    /// What was folded away.
    pub(crate) omitted: Omitted,
}

impl FunctionShape {
    pub(crate) fn new(
        aggregate: &Aggregate,
        table: &LocationTable,
        grouping: Grouping,
        fold: bool,
    ) -> Self {
        let (tree, names, states) = aggregate.site_tree(table, grouping, fold);
        let folded = folded(&tree, &states);
        let mut positions: Vec<u32> = states.iter().map(|state| state.node).collect();
        let ends = aggregate.end_states(&states).map(|state| state.node);
        let used = used(&tree.nodes, ends);
        drop(states);
        let order = in_preorder(&tree.nodes, &used);
        positions.iter_mut().for_each(|node| *node = order[*node as usize].0);
        let count = used.iter().filter(|&&used| used).count().max(1);
        let mut shape = FunctionShape {
            names,
            sites: vec![u32::MAX; count],
            parents: vec![0; count],
            ends: vec![count as u32; count],
            repeats: vec![1; count],
            positions,
            folded,
        };
        for node in (1..tree.nodes.len()).filter(|&node| used[node]) {
            let (parent, site) = tree.nodes[node];
            let (position, size) = order[node];
            let at = position as usize;
            shape.sites[at] = site;
            shape.parents[at] = order[parent as usize].0;
            shape.ends[at] = position + size;
            shape.repeats[at] = tree.repeats(node as u32).map_or(1, |repeats| repeats.count);
        }
        shape
    }

    /// The functions called from a node.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let end = self.ends[node as usize];
        let next = move |&child: &u32| Some(self.ends[child as usize]).filter(|&next| next < end);
        std::iter::successors(Some(node + 1).filter(|&first| first < end), next)
    }

    /// The sums at each node and below it.
    fn sums(&self, aggregate: &Aggregate, counts: &[Counts], metric: Metric) -> Vec<u64> {
        let mut weights = vec![0_u64; self.sites.len()];
        for (path, counts) in counts.iter().enumerate() {
            let node = aggregate.paths.node(path as u32);
            let weight = &mut weights[self.positions[node as usize] as usize];
            *weight = weight.saturating_add(metric.samples(counts));
        }
        for position in (1..weights.len()).rev() {
            let parent = self.parents[position] as usize;
            weights[parent] = weights[parent].saturating_add(weights[position]);
        }
        weights
    }

    fn folded_above(&self, node: Node) -> u32 {
        self.folded.get(node as usize).copied().unwrap_or(0)
    }
}

impl FunctionTree {
    pub(crate) fn new(
        aggregate: &Aggregate,
        table: &LocationTable,
        by: By,
        metric: Metric,
        fold: bool,
    ) -> Self {
        let shape = FunctionShape::new(aggregate, table, by.into(), fold);
        FunctionTree::with_shape(Rc::new(shape), aggregate, metric)
    }

    /// The shape must be that of an aggregate with the same call tree and, at least, the
    /// same paths.
    pub(crate) fn with_shape(
        shape: Rc<FunctionShape>,
        aggregate: &Aggregate,
        metric: Metric,
    ) -> Self {
        let mut omitted = Omitted::default();
        for path in 0..aggregate.counts.len() {
            let node = aggregate.paths.node(path as u32);
            omitted.paths += 1;
            omitted.folded.add(u64::from(shape.folded_above(node)));
        }
        let Tallies { counts, variances, .. } = &aggregate.counts;
        let weights = shape.sums(aggregate, counts, metric);
        let variances = match aggregate.counts.are_mixed() {
            true => shape.sums(aggregate, variances, metric),
            false => Vec::new(),
        };
        FunctionTree { shape, weights, variances, omitted }
    }

    /// What is at a node and below it.
    pub(crate) fn sampled(&self, node: u32) -> Sampled {
        let variance = self.variances.get(node as usize).copied().unwrap_or(0);
        Sampled { count: self.weights[node as usize], variance }
    }
}

/// The frames that are folded away above each node; empty if none are.
fn folded(tree: &SiteTree, states: &[StackState]) -> Vec<u32> {
    let folded = |state: &StackState| state.pushed - tree.depth(state.node);
    if states.iter().all(|state| folded(state) == 0) {
        return Vec::new();
    }
    states.iter().map(folded).collect()
}

/// For each node that is used, its position in preorder and the size of its subtree.
fn in_preorder(nodes: &[(u32, u32)], used: &[bool]) -> Vec<(u32, u32)> {
    let mut order = vec![(0_u32, 0_u32); nodes.len()];
    order[0].1 = 1;
    // Parents come before their children, so sizes are sums from the end.
    for node in (1..nodes.len()).rev().filter(|&node| used[node]) {
        order[node].1 += 1;
        order[nodes[node].0 as usize].1 += order[node].1;
    }
    let mut free = vec![1_u32; nodes.len()];
    for node in (1..nodes.len()).filter(|&node| used[node]) {
        let parent = nodes[node].0 as usize;
        order[node].0 = free[parent];
        free[parent] += order[node].1;
        free[node] = order[node].0 + 1;
    }
    order
}
