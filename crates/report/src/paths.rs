//! Call paths: a tree of frames from `main` on, in bounded memory.
//!
//! A path is a node at which something was allocated, with its sums. When the
//! tree outgrows its bound, the lightest nodes go, as in lossy counting: what
//! was allocated in them is kept under [`LIGHT`] with its innermost frame alone.
//! So sums over innermost frames stay exact, and what is missing from the sum of
//! any call path is at most [`Paths::missing`] samples.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};

/// A node: its place in the tree's lists.
pub(crate) type Node = u32;

/// Where everything begins.
pub(crate) const ROOT: Node = 0;

/// Stands in for the frames of paths that were too light to keep.
pub(crate) const LIGHT: u32 = u32::MAX - 1;

/// Stands in for the frame of an allocation without a backtrace.
pub(crate) const NOWHERE: u32 = u32::MAX - 2;

const NONE: u32 = u32::MAX;

/// What was counted of the allocations of one path, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counts {
    /// Allocated.
    pub allocated: u64,
    /// Moved to the old generation.
    pub promoted: u64,
    /// Alive at the end.
    pub live: u64,
    /// Alive when the most was alive.
    pub peak: u64,
    /// Alive at the time that was asked for.
    pub at: u64,
    /// Collected.
    pub died: u64,
    /// How long those lived: samples × microseconds.
    pub lifetime: f64,
    /// How many blocks were allocated, as far as samples tell.
    pub blocks: f64,
    /// The peak for which `peak` is up to date.
    pub(crate) peak_number: u64,
}

impl Counts {
    /// Adds another's counts.
    pub fn add(&mut self, other: &Counts) {
        self.allocated = self.allocated.saturating_add(other.allocated);
        self.promoted = self.promoted.saturating_add(other.promoted);
        self.live = self.live.saturating_add(other.live);
        self.peak = self.peak.saturating_add(other.peak);
        self.at = self.at.saturating_add(other.at);
        self.died = self.died.saturating_add(other.died);
        self.lifetime += other.lifetime;
        self.blocks += other.blocks;
    }

    /// Before `live` changes: it still is what it was at the last peak, unless
    /// it has changed since.
    pub(crate) fn settle(&mut self, peak_number: u64) {
        if self.peak_number != peak_number {
            self.peak = self.live;
            self.peak_number = peak_number;
        }
    }
}

/// Where a node is. In one piece, since a step down the tree asks for all of it.
#[derive(Clone, Copy)]
struct Place {
    parent: Node,
    frame: u32,
    /// The path that ends here.
    end: u32,
}

/// A child by its parent and frame. The key is in the table, so that a look-up
/// goes to one place in memory more than the table's own bytes, not three.
#[derive(Clone, Copy)]
struct Step {
    parent: Node,
    frame: u32,
    child: Node,
}

/// The tree, its paths and their counts.
pub(crate) struct Paths {
    places: Vec<Place>,
    index: HashTable<Step>,
    hash: DefaultHashBuilder,
    /// The node of each path.
    nodes: Vec<Node>,
    pub(crate) counts: Vec<Counts>,
    most_nodes: usize,
    missing: u64,
}

/// The most nodes a tree has: about 150 MB, and 80 more while it is pruned.
pub(crate) const MOST_NODES: usize = 3_500_000;

/// The same where each path's live size is followed over time, which takes up to
/// 256 bytes more.
pub(crate) const MOST_NODES_WITH_GROWTH: usize = 500_000;

impl Paths {
    pub(crate) fn new(most_nodes: usize) -> Self {
        Paths {
            places: vec![Place { parent: ROOT, frame: NONE, end: NONE }],
            index: HashTable::new(),
            hash: DefaultHashBuilder::default(),
            nodes: Vec::new(),
            counts: Vec::new(),
            most_nodes,
            missing: 0,
        }
    }

    /// The node of `frame` called from `parent`.
    #[inline]
    pub(crate) fn child(&mut self, parent: Node, frame: u32) -> Node {
        // A stack that was new when it came has its nodes in a row.
        let next = parent + 1;
        if let Some(place) = self.places.get(next as usize)
            && (place.parent, place.frame) == (parent, frame)
        {
            return next;
        }
        self.look_up(parent, frame)
    }

    fn look_up(&mut self, parent: Node, frame: u32) -> Node {
        let Paths { places, index, hash, .. } = self;
        let hashed = hash_of(hash, parent, frame);
        let same = |step: &Step| (step.parent, step.frame) == (parent, frame);
        if let Some(step) = index.find(hashed, same) {
            return step.child;
        }
        let child = places.len() as Node;
        index.insert_unique(hashed, Step { parent, frame, child }, |step| {
            hash_of(hash, step.parent, step.frame)
        });
        places.push(Place { parent, frame, end: NONE });
        child
    }

    /// The path that ends at this node.
    pub(crate) fn path(&mut self, node: Node) -> u32 {
        let end = &mut self.places[node as usize].end;
        if *end == NONE {
            *end = self.counts.len() as u32;
            self.nodes.push(node);
            self.counts.push(Counts::default());
        }
        *end
    }

    pub(crate) fn node(&self, path: u32) -> Node {
        self.nodes[path as usize]
    }

    pub(crate) fn parent(&self, node: Node) -> Node {
        self.places[node as usize].parent
    }

    pub(crate) fn frame(&self, node: Node) -> u32 {
        self.places[node as usize].frame
    }

    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.places.len() >= self.most_nodes
    }

    /// How many samples at most are missing from the sum of any call path.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Samples allocated at each node or below it.
    fn weights(&self) -> Vec<u64> {
        let mut weights = vec![0_u64; self.places.len()];
        for (&node, counts) in self.nodes.iter().zip(&self.counts) {
            weights[node as usize] = weights[node as usize].saturating_add(counts.allocated);
        }
        // A parent is older than its children.
        for node in (1..weights.len()).rev() {
            let parent = self.places[node].parent as usize;
            weights[parent] = weights[parent].saturating_add(weights[node]);
        }
        weights
    }

    /// Drops the lightest nodes, at least half of all. Gives the new number of
    /// each path.
    pub(crate) fn prune(&mut self) -> Vec<u32> {
        let weights = self.weights();
        let mut ordered = weights.clone();
        let keep = self.most_nodes / 2;
        let place = ordered.len().saturating_sub(keep + 1);
        let (_, &mut lightest, _) = ordered.select_nth_unstable(place);
        drop(ordered);
        self.missing += lightest;
        let mut tree = Paths::new(self.most_nodes);
        tree.missing = self.missing;
        // The old index goes before the new one comes, with room to the next pruning.
        self.index = HashTable::new();
        tree.index.reserve(self.most_nodes, |step| hash_of(&self.hash, step.parent, step.frame));
        let mut moved = vec![NONE; self.places.len()];
        moved[ROOT as usize] = ROOT;
        for (node, &Place { parent, frame, .. }) in self.places.iter().enumerate().skip(1) {
            let parent = moved[parent as usize];
            let stays = weights[node] > lightest || frame == LIGHT;
            if parent != NONE && (stays || tree.frame(parent) == LIGHT) {
                moved[node] = tree.child(parent, frame);
            }
        }
        let paths = self.nodes.iter().zip(&self.counts).map(|(&node, counts)| {
            let to = match moved[node as usize] {
                NONE => {
                    let light = tree.child(ROOT, LIGHT);
                    tree.child(light, self.frame(node))
                }
                to => to,
            };
            let path = tree.path(to);
            tree.take(path, counts)
        });
        let paths = paths.collect();
        *self = tree;
        paths
    }

    /// Adds counts that are all settled for the same peak.
    fn take(&mut self, path: u32, counts: &Counts) -> u32 {
        let into = &mut self.counts[path as usize];
        into.add(counts);
        into.peak_number = counts.peak_number;
        path
    }

    /// Brings the counts of all paths up to date with the last peak.
    pub(crate) fn settle(&mut self, peak_number: u64) {
        for counts in &mut self.counts {
            counts.settle(peak_number);
        }
    }
}

fn hash_of(hash: &DefaultHashBuilder, parent: Node, frame: u32) -> u64 {
    hash.hash_one(u64::from(parent) << 32 | u64::from(frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::scramble;

    #[test]
    fn a_full_tree_keeps_what_is_heavy_and_all_innermost_frames() {
        let mut paths = Paths::new(1000);
        let mut leaves = [0_u64; 10];
        let mut heavy = 0;
        for turn in 0..20_000_u64 {
            if paths.is_full() {
                paths.settle(1);
                paths.prune();
                assert!(paths.len() <= 600, "{} nodes left", paths.len());
            }
            let leaf = turn % 10;
            leaves[leaf as usize] += 1;
            // Half of everything has the same callers.
            let caller = if turn % 2 == 0 { 1000 } else { scramble(turn) % 900 };
            heavy += u64::from(turn % 2 == 0);
            let middle = paths.child(ROOT, caller as u32);
            let node = paths.child(middle, leaf as u32);
            let path = paths.path(node);
            paths.counts[path as usize].allocated += 1;
        }
        let mut found = [0_u64; 10];
        for (path, counts) in paths.counts.iter().enumerate() {
            found[paths.frame(paths.node(path as u32)) as usize] += counts.allocated;
        }
        assert_eq!(found, leaves);
        let callers = paths.child(ROOT, 1000);
        let weight = paths.weights()[callers as usize];
        assert!(weight <= heavy && weight + paths.missing() >= heavy, "{weight} of {heavy}");
        assert!(paths.missing() < heavy / 10);
    }
}
