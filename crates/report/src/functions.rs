//! The call tree by function: inlined calls spread out, recursion folded unless it
//! is asked for.
//!
//! Nodes are in preorder, so that a subtree is a range.

use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric};
use crate::folding::used;
use crate::rows::{By, Site};
use crate::stacks::Omitted;

/// A tree of functions with the samples of each.
pub(crate) struct FunctionTree {
    /// The sites by number.
    pub(crate) names: Vec<Site>,
    /// The site of each node. Node 0 is the root, which has no site.
    pub(crate) sites: Vec<u32>,
    pub(crate) parents: Vec<u32>,
    /// For each node, the first node after its subtree.
    pub(crate) ends: Vec<u32>,
    /// For each node, the most iterations of the cycle of functions that begins there.
    pub(crate) repeats: Vec<u32>,
    /// Samples at each node and below it.
    pub(crate) weights: Vec<u64>,
    /// What was folded away.
    pub(crate) omitted: Omitted,
}

/// The tree as it is built: children come after their parents.
struct Draft {
    parents: Vec<u32>,
    sites: Vec<u32>,
    repeats: Vec<u32>,
    own: Vec<u64>,
}

impl FunctionTree {
    pub(crate) fn new(
        aggregate: &Aggregate,
        table: &LocationTable,
        by: By,
        metric: Metric,
        fold: bool,
    ) -> Self {
        let (tree, names, states) = aggregate.site_tree(table, by, fold);
        let ends: Vec<u32> = aggregate.end_states(&states).map(|state| state.node).collect();
        let used = used(&tree.nodes, ends.iter().copied());
        let mut draft =
            Draft { parents: vec![0], sites: vec![u32::MAX], repeats: vec![1], own: vec![0] };
        let mut positions = vec![0_u32; tree.nodes.len()];
        for node in (1..tree.nodes.len()).filter(|&node| used[node]) {
            let (parent, site) = tree.nodes[node];
            positions[node] = draft.sites.len() as u32;
            draft.parents.push(positions[parent as usize]);
            draft.sites.push(site);
            draft.repeats.push(tree.repeats(node as u32).map_or(1, |repeats| repeats.count));
            draft.own.push(0);
        }
        for (end, counts) in ends.into_iter().zip(&aggregate.counts) {
            let own = &mut draft.own[positions[end as usize] as usize];
            *own = own.saturating_add(metric.samples(counts));
        }
        FunctionTree {
            omitted: aggregate.omitted(&tree, &states),
            ..FunctionTree::in_preorder(&draft, names)
        }
    }

    fn in_preorder(draft: &Draft, names: Vec<Site>) -> FunctionTree {
        let count = draft.sites.len();
        // Sizes of subtrees, then positions: a node's children follow it one by one.
        let mut sizes = vec![1_u32; count];
        for node in (1..count).rev() {
            sizes[draft.parents[node] as usize] += sizes[node];
        }
        let mut free = vec![1_u32; count];
        let mut positions = vec![0_u32; count];
        for node in 1..count {
            let parent = draft.parents[node] as usize;
            positions[node] = free[parent];
            free[parent] += sizes[node];
            free[node] = positions[node] + 1;
        }
        let mut tree = FunctionTree {
            names,
            sites: vec![u32::MAX; count],
            parents: vec![0; count],
            ends: vec![count as u32; count],
            repeats: vec![1; count],
            weights: vec![0; count],
            omitted: Omitted::default(),
        };
        for node in 0..count {
            let position = positions[node] as usize;
            tree.sites[position] = draft.sites[node];
            tree.parents[position] = positions[draft.parents[node] as usize];
            tree.ends[position] = positions[node] + sizes[node];
            tree.repeats[position] = draft.repeats[node];
            tree.weights[position] = draft.own[node];
        }
        for position in (1..count).rev() {
            let parent = tree.parents[position] as usize;
            tree.weights[parent] = tree.weights[parent].saturating_add(tree.weights[position]);
        }
        tree
    }

    /// The functions called from a node.
    pub(crate) fn children(&self, node: u32) -> impl Iterator<Item = u32> {
        let end = self.ends[node as usize];
        let next = move |&child: &u32| Some(self.ends[child as usize]).filter(|&next| next < end);
        std::iter::successors(Some(node + 1).filter(|&first| first < end), next)
    }
}
