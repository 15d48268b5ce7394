//! Call paths by site: what exporters write.
//!
//! Different frames may have the same site, and a frame with inlined calls has
//! several. So the tree of frames becomes one of sites, and paths that are the
//! same there are one stack. Stacks are made one at a time: whoever writes them
//! needs no more memory than the tree does.

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
    /// The node at which each path ends, with the path, in order.
    ends: Vec<(u32, u32)>,
}

/// A stack.
pub struct Stack<'a> {
    /// The numbers of its sites, the innermost first.
    pub sites: Vec<u32>,
    /// The sums of all paths that it is made of.
    pub counts: Counts,
    stacks: &'a Stacks<'a>,
    ends: &'a [(u32, u32)],
}

impl Aggregate {
    /// All stacks. Needs whole ones.
    pub fn stacks(&self, table: &LocationTable, by: By) -> Stacks<'_> {
        let mut numbers = SiteNumbers::new(table, by);
        let mut nodes = vec![(0, u32::MAX)];
        let mut index: HashMap<(u32, u32), u32> = HashMap::new();
        // A parent is older than its children.
        let mut places = vec![0_u32; self.paths.len()];
        for node in 1..self.paths.len() as u32 {
            let mut place = places[self.paths.parent(node) as usize];
            for &site in numbers.of(self.frame(node)).iter().rev() {
                place = *index.entry((place, site)).or_insert_with(|| {
                    nodes.push((place, site));
                    nodes.len() as u32 - 1
                });
            }
            places[node as usize] = place;
        }
        let end = |path: u32| (places[self.paths.node(path) as usize], path);
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
    /// What came and went in each slice of time; nothing if that was not followed.
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
