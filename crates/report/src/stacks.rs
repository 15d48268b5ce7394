//! Call paths by site, for exporters.
//!
//! Different frames may have the same site, and a frame with inlined calls has
//! several. So the tree of frames is turned into one of sites ([`crate::folding`]),
//! and paths that are equal there are one stack. Stacks are produced one at a time,
//! so that writing them takes no more memory than the tree.
//!
//! Two kinds of sites stand for frames that are missing: one above a cycle that is
//! folded, with the number of its iterations, and one in the middle of a stack that
//! is cut. They are sites like others, but never the innermost of a stack.

use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_trace::LocationTable;

use crate::aggregate::Aggregate;
use crate::callers::SiteNumbers;
use crate::counts::Tally;
use crate::flows::Flow;
use crate::folding::{Repeats, SiteTree, StackState, used};
use crate::library_runs::LibraryRuns;
use crate::rows::{By, Grouping, Site};

/// How stacks are shortened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StackShape {
    /// Whether repeated cycles of functions are folded.
    pub fold: bool,
    /// The most sites of a stack, markers of folded cycles included: half of them
    /// from its outer end, the others from its inner one.
    pub frames: Option<usize>,
}

/// What was left out of stacks to shorten them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Omitted {
    /// Call paths before any were joined.
    pub paths: u64,
    /// Those with folded cycles, and the frames that they lost.
    pub folded: OmittedFrames,
    /// Those that were cut, and the frames that they lost.
    pub cut: OmittedFrames,
}

/// Paths that lost frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OmittedFrames {
    /// How many paths lost any.
    pub paths: u64,
    /// How many frames they lost together.
    pub frames: u64,
}

impl OmittedFrames {
    pub(crate) fn add(&mut self, frames: u64) {
        self.paths += u64::from(frames > 0);
        self.frames += frames;
    }
}

/// The stacks of an aggregate.
pub struct Stacks<'a> {
    aggregate: &'a Aggregate,
    sites: Vec<Site>,
    /// Parent and site of each node. Node 0 is the root.
    nodes: Vec<(u32, u32)>,
    /// For each path, the node at which it ends and its number; sorted.
    ends: Vec<(u32, u32)>,
    omitted: Omitted,
}

/// A stack of sites.
pub struct Stack<'a> {
    /// The sums over all paths that have this stack.
    pub counts: Tally,
    stacks: &'a Stacks<'a>,
    ends: &'a [(u32, u32)],
}

impl Aggregate {
    /// All stacks. Needs [`crate::Depth::Whole`].
    pub fn stacks(&self, table: &LocationTable, by: By, shape: StackShape) -> Stacks<'_> {
        let (tree, sites, states) = self.site_tree(table, by.into(), shape.fold);
        let mut stacks = Stacks {
            aggregate: self,
            sites,
            nodes: Vec::new(),
            ends: Vec::new(),
            omitted: self.omitted(&tree, &states),
        };
        let mut ends: Vec<u32> = self.end_states(&states).map(|state| state.node).collect();
        drop(states);
        stacks.mark_cycles(&tree, &mut ends);
        drop(tree);
        if let Some(most) = shape.frames {
            stacks.cut(most, &mut ends);
        }
        let numbered = ends.into_iter().enumerate();
        stacks.ends = numbered.map(|(path, node)| (node, path as u32)).collect();
        stacks.ends.sort_unstable();
        stacks
    }

    /// The stack of each path, by the states of nodes.
    pub(crate) fn end_states(&self, states: &[StackState]) -> impl Iterator<Item = StackState> {
        (0..self.counts.len()).map(|path| states[self.paths.node(path as u32) as usize])
    }

    /// What the tree folded away.
    pub(crate) fn omitted(&self, tree: &SiteTree, states: &[StackState]) -> Omitted {
        let mut omitted = Omitted::default();
        for StackState { node, pushed, .. } in self.end_states(states) {
            omitted.paths += 1;
            omitted.folded.add(u64::from(pushed - tree.depth(node)));
        }
        omitted
    }

    /// The call tree by site, its sites, and the stack of each node of `paths`. If sites are own
    /// code, all library code that own code calls is one site: the function that it calls.
    pub(crate) fn site_tree(
        &self,
        table: &LocationTable,
        grouping: Grouping,
        fold: bool,
    ) -> (SiteTree, Vec<Site>, Vec<StackState>) {
        let mut numbers = SiteNumbers::new(table, grouping.by);
        let mut runs = LibraryRuns::new(self, table, grouping.site);
        let mut tree = SiteTree::new(fold);
        // The number of a parent is below those of its children.
        let mut states = vec![StackState::EMPTY; self.paths.len()];
        let mut of_frames: Vec<Option<Rc<[u32]>>> = vec![None; self.frames.codes().len()];
        for node in 1..self.paths.len() as u32 {
            let mut state = states[self.paths.parent(node) as usize];
            let mut of_frame = || {
                let sites = numbers.of(self.frame(node));
                tree.know(&numbers.sites);
                sites
            };
            let of_stand_in;
            let sites = match of_frames.get_mut(self.paths.frame(node) as usize) {
                Some(known) => &*known.get_or_insert_with(of_frame),
                None => {
                    of_stand_in = of_frame();
                    &of_stand_in
                }
            };
            runs.enter(node);
            for (at, &site) in sites.iter().enumerate().rev() {
                if !runs.is_inside(at) {
                    state = tree.push(state, site);
                }
            }
            runs.leave(node);
            states[node as usize] = state;
        }
        (tree, numbers.sites, states)
    }
}

impl Stacks<'_> {
    /// The sites that occur.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The tree that the stacks are paths of: the parent and the site of each node
    /// from 1 on, parents before their children. Node 0 is the root.
    pub fn nodes(&self) -> &[(u32, u32)] {
        &self.nodes[1..]
    }

    /// What was left out.
    pub fn omitted(&self) -> Omitted {
        self.omitted
    }

    /// Every stack, once.
    pub fn iter(&self) -> impl Iterator<Item = Stack<'_>> {
        self.ends.chunk_by(|one, other| one.0 == other.0).map(|ends| {
            let mut counts = Tally::default();
            for &(_, path) in ends {
                counts.add(&self.aggregate.counts.get(path as usize));
            }
            Stack { counts, stacks: self, ends }
        })
    }

    /// Takes over the nodes above `ends`, with a site above each folded cycle.
    fn mark_cycles(&mut self, tree: &SiteTree, ends: &mut [u32]) {
        let used = used(&tree.nodes, ends.iter().copied());
        let mut moved = vec![0; tree.nodes.len()];
        let mut marker_sites: HashMap<Repeats, u32> = HashMap::new();
        // By parent and site, as all nodes: cycles may share a marker.
        let mut markers: HashMap<(u32, u32), u32> = HashMap::new();
        self.nodes.push(tree.nodes[0]);
        for node in (1..tree.nodes.len() as u32).filter(|&node| used[node as usize]) {
            let (parent, site) = tree.nodes[node as usize];
            let mut above = moved[parent as usize];
            if let Some(repeats) = tree.repeats(node) {
                let marker = *marker_sites.entry(repeats).or_insert_with(|| {
                    self.sites.push(Site::named(&cycle_marker(repeats)));
                    self.sites.len() as u32 - 1
                });
                above = *markers.entry((above, marker)).or_insert_with(|| {
                    self.nodes.push((above, marker));
                    self.nodes.len() as u32 - 1
                });
            }
            self.nodes.push((above, site));
            moved[node as usize] = self.nodes.len() as u32 - 1;
        }
        for end in ends {
            *end = moved[*end as usize];
        }
    }

    /// Cuts the middle out of stacks of more than `most` sites.
    fn cut(&mut self, most: usize, ends: &mut [u32]) {
        let (outer, inner) = (most / 2, most - most / 2);
        let mut depths = vec![0_u32; self.nodes.len()];
        // The ancestor that is the last of the outer sites.
        let mut outermost = vec![0_u32; self.nodes.len()];
        for (node, &(parent, _)) in self.nodes.iter().enumerate().skip(1) {
            depths[node] = depths[parent as usize] + 1;
            let is_outer = depths[node] as usize <= outer;
            outermost[node] = if is_outer { node as u32 } else { outermost[parent as usize] };
        }
        let marker = self.sites.len() as u32;
        let mut children: HashMap<(u32, u32), u32> = HashMap::new();
        let mut sites = Vec::with_capacity(inner + 1);
        for end in &mut *ends {
            let depth = depths[*end as usize] as usize;
            self.omitted.cut.add(depth.saturating_sub(most) as u64);
            if depth <= most {
                continue;
            }
            sites.clear();
            sites.extend(self.sites_above(*end).take(inner));
            sites.push(marker);
            *end = sites.iter().rev().fold(outermost[*end as usize], |parent, &site| {
                *children.entry((parent, site)).or_insert_with(|| {
                    self.nodes.push((parent, site));
                    self.nodes.len() as u32 - 1
                })
            });
        }
        if self.omitted.cut.paths > 0 {
            self.sites.push(Site::named("(frames left out)"));
            self.drop_unused(ends);
        }
    }

    /// Drops the nodes that are on no stack.
    fn drop_unused(&mut self, ends: &mut [u32]) {
        let used = used(&self.nodes, ends.iter().copied());
        let mut moved = vec![0; self.nodes.len()];
        let mut kept = vec![self.nodes[0]];
        for node in (1..self.nodes.len()).filter(|&node| used[node]) {
            let (parent, site) = self.nodes[node];
            moved[node] = kept.len() as u32;
            kept.push((moved[parent as usize], site));
        }
        self.nodes = kept;
        for end in ends {
            *end = moved[*end as usize];
        }
    }

    fn sites_above(&self, node: u32) -> impl Iterator<Item = u32> {
        let up = move |&(parent, _): &(u32, u32)| Some(self.nodes[parent as usize]);
        std::iter::successors(Some(self.nodes[node as usize]), up)
            .map(|(_, site)| site)
            .take_while(|&site| site != u32::MAX)
    }
}

/// The name of the site above a folded cycle.
fn cycle_marker(Repeats { count, period }: Repeats) -> String {
    match period {
        1 => format!("(repeated up to ×{count})"),
        _ => format!("({period} frames repeated up to ×{count})"),
    }
}

impl Stack<'_> {
    /// The node of its innermost site in [`Stacks::nodes`]; 0 if it has no sites.
    pub fn node(&self) -> u32 {
        self.ends[0].0
    }

    /// The numbers of its sites, the innermost first.
    pub fn sites(&self) -> Vec<u32> {
        self.stacks.sites_above(self.node()).collect()
    }

    /// The sum over its paths of a figure that each path has.
    pub fn sum(&self, of_paths: &[f64]) -> f64 {
        self.ends.iter().filter_map(|&(_, path)| of_paths.get(path as usize)).sum()
    }

    /// Allocations and collections in each slice of time; empty unless tracked.
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
