//! The call tree by function: inlined calls spread out, direct recursion folded.
//!
//! Nodes are in preorder, so that a subtree is a range.

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::{Aggregate, Metric};
use crate::callers::SiteNumbers;
use crate::rows::{By, Site};

/// A tree of functions with the samples of each.
pub(crate) struct FunctionTree {
    /// The sites by number.
    pub(crate) names: Vec<Site>,
    /// The site of each node. Node 0 is the root, which has no site.
    pub(crate) sites: Vec<u32>,
    pub(crate) parents: Vec<u32>,
    /// For each node, the first node after its subtree.
    pub(crate) ends: Vec<u32>,
    /// Samples at each node and below it.
    pub(crate) weights: Vec<u64>,
}

/// The tree as it is built: children come after their parents.
struct Draft {
    parents: Vec<u32>,
    sites: Vec<u32>,
    own: Vec<u64>,
    index: HashMap<(u32, u32), u32>,
}

impl Draft {
    fn child(&mut self, parent: u32, site: u32) -> u32 {
        if parent != 0 && self.sites[parent as usize] == site {
            return parent;
        }
        *self.index.entry((parent, site)).or_insert_with(|| {
            self.parents.push(parent);
            self.sites.push(site);
            self.own.push(0);
            self.sites.len() as u32 - 1
        })
    }
}

impl FunctionTree {
    pub(crate) fn new(aggregate: &Aggregate, table: &LocationTable, by: By, of: Metric) -> Self {
        let mut numbers = SiteNumbers::new(table, by);
        let mut draft =
            Draft { parents: vec![0], sites: vec![u32::MAX], own: vec![0], index: HashMap::new() };
        // In `paths` too, parents precede their children.
        let mut positions = vec![0_u32; aggregate.paths.len()];
        for node in 1..aggregate.paths.len() as u32 {
            let mut position = positions[aggregate.paths.parent(node) as usize];
            for &site in numbers.of(aggregate.frame(node)).iter().rev() {
                position = draft.child(position, site);
            }
            positions[node as usize] = position;
        }
        for (path, counts) in aggregate.paths.counts.iter().enumerate() {
            let position = positions[aggregate.paths.node(path as u32) as usize] as usize;
            draft.own[position] = draft.own[position].saturating_add(of.samples(counts));
        }
        FunctionTree::in_preorder(&draft, numbers.sites)
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
            weights: vec![0; count],
        };
        for node in 0..count {
            let position = positions[node] as usize;
            tree.sites[position] = draft.sites[node];
            tree.parents[position] = positions[draft.parents[node] as usize];
            tree.ends[position] = positions[node] + sizes[node];
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
