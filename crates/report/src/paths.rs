//! Call paths: a tree of frames, the outermost at the root, in bounded memory.
//!
//! A path is a node at which blocks were allocated, with their counts. When the
//! tree reaches its bound, the lightest nodes are dropped, as in lossy counting
//! (Manku and Motwani, VLDB 2002): their counts move under [`LIGHT`], with the
//! innermost frame alone. So sums over innermost frames stay exact, and the sum of
//! any call path lacks at most [`Paths::missing`] samples.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashTable};
use heaptap_trace::Source;

use crate::counts::Counts;

/// A node: its index in the list of nodes.
pub(crate) type Node = u32;

/// The root, above all outermost frames.
pub(crate) const ROOT: Node = 0;

/// Stands in for the frames of paths that were too light to keep.
pub(crate) const LIGHT: u32 = u32::MAX - 1;

/// Stands in for the frame of an allocation without a backtrace.
pub(crate) const NOWHERE: u32 = u32::MAX - 2;

/// Stands in for the frames of a domain, where paths are domains.
const DOMAINS: u32 = u32::MAX - 3 - u16::MAX as u32;

/// Stands in for the frames of sources, where paths are sources.
const SOURCES: u32 = DOMAINS - 3;

/// The frame that stands for a source.
pub(crate) fn source_frame(source: Source) -> u32 {
    SOURCES + source as u32
}

/// The source that a frame stands for.
pub(crate) fn source_of(frame: u32) -> Option<Source> {
    [Source::Minor, Source::Major, Source::External]
        .into_iter()
        .find(|&source| source_frame(source) == frame)
}

/// The frame that stands for a domain.
pub(crate) fn domain_frame(domain: u16) -> u32 {
    DOMAINS + u32::from(domain)
}

/// The domain that a frame stands for.
pub(crate) fn domain_of(frame: u32) -> Option<u16> {
    frame.checked_sub(DOMAINS).and_then(|number| u16::try_from(number).ok())
}

const NONE: u32 = u32::MAX;

/// The links of a node. They are together, since a step down the tree needs all.
#[derive(Clone, Copy)]
struct NodeLinks {
    parent: Node,
    frame: u32,
    /// The path that ends here, or `NONE`.
    end: u32,
}

/// A child by its parent and frame. The key is in the table, so that a look-up costs
/// one cache miss besides that of the table's control bytes, not three.
#[derive(Clone, Copy)]
struct ChildEntry {
    parent: Node,
    frame: u32,
    child: Node,
}

/// The tree, its paths and their counts.
pub(crate) struct Paths {
    links: Vec<NodeLinks>,
    index: HashTable<ChildEntry>,
    hash: DefaultHashBuilder,
    /// The node of each path.
    nodes: Vec<Node>,
    pub(crate) counts: Vec<Counts>,
    most: Bounds,
    missing: u64,
}

/// The sizes at which a tree is pruned.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) nodes: usize,
    pub(crate) paths: usize,
}

impl Bounds {
    /// 42 MB of nodes, 54 of index and 72 of counts. While the tree grows or is
    /// pruned, some of that exists twice.
    pub(crate) const USUAL: Bounds = Bounds { nodes: 3_500_000, paths: 1_000_000 };

    /// If paths are followed over time, in 64 points of up to 8 bytes each.
    pub(crate) const FOLLOWED: Bounds = Bounds { nodes: 2_000_000, paths: 250_000 };
}

impl Paths {
    pub(crate) fn new(most: Bounds) -> Self {
        Paths {
            links: vec![NodeLinks { parent: ROOT, frame: NONE, end: NONE }],
            index: HashTable::new(),
            hash: DefaultHashBuilder::default(),
            nodes: Vec::new(),
            counts: Vec::new(),
            most,
            missing: 0,
        }
    }

    /// The same tree without paths. No node can be added to it.
    pub(crate) fn emptied(&self) -> Self {
        let links = self.links.iter().map(|&links| NodeLinks { end: NONE, ..links }).collect();
        Paths { links, missing: self.missing, ..Paths::new(self.most) }
    }

    /// Adds a node that is not there. The tree cannot be searched afterwards.
    pub(crate) fn append(&mut self, parent: Node, frame: u32) {
        self.links.push(NodeLinks { parent, frame, end: NONE });
    }

    /// Whether a path ends at this node.
    pub(crate) fn has_path(&self, node: Node) -> bool {
        self.links[node as usize].end != NONE
    }

    pub(crate) fn set_missing(&mut self, missing: u64) {
        self.missing = missing;
    }

    /// The node of `frame` called from `parent`.
    #[inline]
    pub(crate) fn child(&mut self, parent: Node, frame: u32) -> Node {
        // The nodes of a stack that was new as a whole are consecutive.
        let next = parent + 1;
        if let Some(links) = self.links.get(next as usize)
            && (links.parent, links.frame) == (parent, frame)
        {
            return next;
        }
        self.look_up(parent, frame)
    }

    fn look_up(&mut self, parent: Node, frame: u32) -> Node {
        let Paths { links, index, hash, .. } = self;
        let hashed = hash_of(hash, parent, frame);
        let same = |entry: &ChildEntry| (entry.parent, entry.frame) == (parent, frame);
        if let Some(step) = index.find(hashed, same) {
            return step.child;
        }
        let child = links.len() as Node;
        index.insert_unique(hashed, ChildEntry { parent, frame, child }, |step| {
            hash_of(hash, step.parent, step.frame)
        });
        links.push(NodeLinks { parent, frame, end: NONE });
        child
    }

    /// The path that ends at this node.
    pub(crate) fn path(&mut self, node: Node) -> u32 {
        let end = &mut self.links[node as usize].end;
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
        self.links[node as usize].parent
    }

    pub(crate) fn frame(&self, node: Node) -> u32 {
        self.links[node as usize].frame
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.links.len() >= self.most.nodes || self.counts.len() >= self.most.paths
    }

    /// The most samples that are missing from the sum of any call path.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Samples allocated at each node or below it.
    fn weights(&self) -> Vec<u64> {
        let mut weights = vec![0_u64; self.links.len()];
        for (&node, counts) in self.nodes.iter().zip(&self.counts) {
            weights[node as usize] = weights[node as usize].saturating_add(counts.allocated);
        }
        // The number of a parent is below those of its children.
        for node in (1..weights.len()).rev() {
            let parent = self.links[node].parent as usize;
            weights[parent] = weights[parent].saturating_add(weights[node]);
        }
        weights
    }

    /// Drops the lightest nodes, at least half of all. Returns the new number of each
    /// path.
    pub(crate) fn prune(&mut self) -> Vec<u32> {
        let weights = self.weights();
        let mut ordered = weights.clone();
        let keep = self.links.len() / 2;
        let rank = ordered.len().saturating_sub(keep + 1);
        let (_, &mut lightest, _) = ordered.select_nth_unstable(rank);
        drop(ordered);
        self.missing += lightest;
        let mut tree = Paths::new(self.most);
        tree.missing = self.missing;
        // The old index is dropped before the new one is allocated, which has room up to
        // the next pruning.
        let room = self.links.len();
        self.index = HashTable::new();
        tree.index.reserve(room, |step| hash_of(&self.hash, step.parent, step.frame));
        tree.links.reserve(room);
        let mut moved = vec![NONE; self.links.len()];
        moved[ROOT as usize] = ROOT;
        for (node, &NodeLinks { parent, frame, .. }) in self.links.iter().enumerate().skip(1) {
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
        // Innermost frames are never dropped. If they alone fill the tree, it must grow,
        // or it would be pruned for each of them.
        tree.most.nodes = tree.most.nodes.max(tree.links.len() * 2);
        tree.most.paths = tree.most.paths.max(tree.counts.len() * 2);
        *self = tree;
        paths
    }

    /// Adds counts that are all settled for the same peak.
    pub(crate) fn take(&mut self, path: u32, counts: &Counts) -> u32 {
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
    use crate::thinning::scramble;

    #[test]
    fn frames_of_domains_and_sources_are_no_others() {
        for source in [Source::Minor, Source::Major, Source::External] {
            assert_eq!(source_of(source_frame(source)), Some(source));
            assert_eq!(domain_of(source_frame(source)), None);
        }
        for domain in [0, 1, u16::MAX] {
            assert_eq!(domain_of(domain_frame(domain)), Some(domain));
            assert_eq!(source_of(domain_frame(domain)), None);
        }
        for frame in [0, 1000, NOWHERE, LIGHT, NONE] {
            assert_eq!(domain_of(frame), None);
        }
    }

    #[test]
    fn a_full_tree_keeps_what_is_heavy_and_all_innermost_frames() {
        let mut paths = Paths::new(Bounds { nodes: 1000, paths: 1000 });
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
