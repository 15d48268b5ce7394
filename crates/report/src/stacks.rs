//! Call paths by site, for exporters.
//!
//! Different frames may have the same site, and a frame with inlined calls has
//! several. So the tree of frames is turned into one of sites, and paths that are
//! equal there are one stack. Stacks are produced one at a time, so that writing
//! them takes no more memory than the tree.

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::Aggregate;
use crate::callers::SiteNumbers;
use crate::counts::Counts;
use crate::flows::Flow;
use crate::rows::{By, Site};

/// The stacks of an aggregate.
pub struct Stacks<'a> {
    aggregate: &'a Aggregate,
    sites: Vec<Site>,
    /// Parent and site of each node. Node 0 is the root.
    nodes: Vec<(u32, u32)>,
    /// For each path, the node at which it ends and its number; sorted.
    ends: Vec<(u32, u32)>,
}

/// A stack of sites.
pub struct Stack<'a> {
    /// The numbers of its sites, the innermost first.
    pub sites: Vec<u32>,
    /// The sums over all paths that have this stack.
    pub counts: Counts,
    stacks: &'a Stacks<'a>,
    ends: &'a [(u32, u32)],
}

impl Aggregate {
    /// All stacks. Needs [`crate::Depth::Whole`].
    pub fn stacks(&self, table: &LocationTable, by: By) -> Stacks<'_> {
        let mut numbers = SiteNumbers::new(table, by);
        let mut nodes = vec![(0, u32::MAX)];
        let mut index: HashMap<(u32, u32), u32> = HashMap::new();
        // The number of a parent is below those of its children.
        let mut site_nodes = vec![0_u32; self.paths.len()];
        for node in 1..self.paths.len() as u32 {
            let mut site_node = site_nodes[self.paths.parent(node) as usize];
            for &site in numbers.of(self.frame(node)).iter().rev() {
                site_node = *index.entry((site_node, site)).or_insert_with(|| {
                    nodes.push((site_node, site));
                    nodes.len() as u32 - 1
                });
            }
            site_nodes[node as usize] = site_node;
        }
        let end = |path: u32| (site_nodes[self.paths.node(path) as usize], path);
        let mut ends: Vec<(u32, u32)> = (0..self.paths.counts.len() as u32).map(end).collect();
        ends.sort_unstable();
        Stacks { aggregate: self, sites: numbers.sites, nodes, ends }
    }
}

impl Stacks<'_> {
    /// The sites that occur.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Every stack, once.
    pub fn iter(&self) -> impl Iterator<Item = Stack<'_>> {
        self.ends.chunk_by(|one, other| one.0 == other.0).map(|ends| {
            let mut counts = Counts::default();
            for &(_, path) in ends {
                counts.add(&self.aggregate.paths.counts[path as usize]);
            }
            Stack { sites: self.sites_up_from(ends[0].0), counts, stacks: self, ends }
        })
    }

    fn sites_up_from(&self, mut node: u32) -> Vec<u32> {
        let mut sites = Vec::new();
        while node != 0 {
            let (parent, site) = self.nodes[node as usize];
            sites.push(site);
            node = parent;
        }
        sites
    }
}

impl Stack<'_> {
    /// Allocations and collections in each slice of time; empty unless followed.
    pub fn flows(&self) -> Vec<Flow> {
        let mut sums = vec![Flow::default(); self.stacks.aggregate.slices()];
        for &(_, path) in self.ends {
            for (sum, flow) in sums.iter_mut().zip(self.stacks.aggregate.flows.of(path)) {
                sum.add(flow);
            }
        }
        sums
    }
}
