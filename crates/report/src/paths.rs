//! Call paths: a tree of frames, the outermost at the root, in bounded memory.
//!
//! A path is a node at which blocks were allocated, with their counts. When the
//! tree reaches its bound, the lightest nodes are dropped, as in lossy counting
//! (Manku and Motwani, VLDB 2002): their counts move under [`LIGHT`], with the
//! innermost frame alone. So sums over innermost frames stay exact, and the sum of
//! any call path lacks at most [`Paths::missing`] samples.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};
use heaptap_trace::Source;

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
    /// Another child of the same parent, or `NONE`. The child with the number after its
    /// parent's begins a list of them; the latest is the second.
    sibling: Node,
}

impl NodeLinks {
    fn new(parent: Node, frame: u32) -> Self {
        NodeLinks { parent, frame, end: NONE, sibling: NONE }
    }
}

/// How many siblings are looked at before the index. In traces of the OCaml compiler one
/// step in twenty needs the index.
const MOST_SIBLINGS: usize = 4;

/// A child by its parent and frame. The key is in the table, so that a look-up costs
/// one cache miss besides that of the table's control bytes, not three.
#[derive(Clone, Copy)]
struct ChildEntry {
    parent: Node,
    frame: u32,
    child: Node,
}

/// The tree and its paths. What happens to the blocks of a path is counted elsewhere.
pub(crate) struct Paths {
    links: Vec<NodeLinks>,
    /// The tree in place of `links`, once it is complete. The ends in it are the paths of
    /// the whole trace, also where [`Paths::emptied`] shares it.
    shared: Option<Arc<Vec<NodeLinks>>>,
    /// The children whose number is not the one after their parent's.
    index: HashTable<ChildEntry>,
    hash: DefaultHashBuilder,
    /// The node of each path.
    nodes: Vec<Node>,
    /// The samples allocated at each path, by which the lightest are found.
    allocated: Vec<u64>,
    most: Bounds,
    missing: u64,
}

/// The new numbers of all paths, after the lightest were dropped.
#[derive(Debug)]
pub struct PathMoves {
    /// For each old number the new one.
    pub(crate) to: Vec<u32>,
    /// How many paths there are now.
    pub(crate) count: usize,
}

/// The sizes at which a tree is pruned.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) nodes: usize,
    pub(crate) paths: usize,
}

impl Bounds {
    /// 56 MB of nodes, up to 54 of index, and 112 of paths and their counts. While the tree grows or is
    /// pruned, some of that exists twice.
    pub(crate) const USUAL: Bounds = Bounds { nodes: 3_500_000, paths: 1_000_000 };

    /// If paths are followed over time, in 64 points of up to 8 bytes each.
    pub(crate) const FOLLOWED: Bounds = Bounds { nodes: 2_000_000, paths: 250_000 };
}

impl Paths {
    pub(crate) fn new(most: Bounds) -> Self {
        Paths {
            links: vec![NodeLinks::new(ROOT, NONE)],
            shared: None,
            index: HashTable::new(),
            hash: DefaultHashBuilder::default(),
            nodes: Vec::new(),
            allocated: Vec::new(),
            most,
            missing: 0,
        }
    }

    /// No more nodes will be added: from now on, [`Paths::emptied`] takes no time.
    pub(crate) fn complete(&mut self) {
        if self.shared.is_none() {
            self.shared = Some(Arc::new(std::mem::take(&mut self.links)));
        }
    }

    /// The same tree without paths. No node can be added to it.
    pub(crate) fn emptied(&self) -> Self {
        let shared = self.shared.clone().unwrap_or_else(|| Arc::new(self.links.clone()));
        Paths {
            links: Vec::new(),
            shared: Some(shared),
            missing: self.missing,
            ..Paths::new(self.most)
        }
    }

    /// Adds a path that ends at this node to those of [`Paths::emptied`], which has none
    /// there.
    pub(crate) fn add_path(&mut self, node: Node) -> u32 {
        self.nodes.push(node);
        self.nodes.len() as u32 - 1
    }

    /// The path of the whole trace that ends at this node, if one does.
    pub(crate) fn whole_path(&self, node: Node) -> Option<u32> {
        Some(self.links()[node as usize].end).filter(|&end| end != NONE)
    }

    fn links(&self) -> &[NodeLinks] {
        self.shared.as_deref().unwrap_or(&self.links)
    }

    /// Adds a node that is not there. The tree cannot be searched afterwards.
    pub(crate) fn append(&mut self, parent: Node, frame: u32) {
        self.links.push(NodeLinks::new(parent, frame));
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
        match self.next_child(parent) {
            Some((next, of_next)) if of_next == frame => next,
            Some((next, _)) => self.sibling(next, frame),
            None if parent as usize + 1 == self.links.len() => {
                self.links.push(NodeLinks::new(parent, frame));
                parent + 1
            }
            None => self.look_up(parent, frame),
        }
    }

    /// The child of `parent` with the next number, if there is one, and its frame. It is
    /// the one that [`Paths::child`] looks at first.
    #[inline]
    pub(crate) fn next_child(&self, parent: Node) -> Option<(Node, u32)> {
        let next = parent + 1;
        let links = self.links.get(next as usize)?;
        (links.parent == parent).then_some((next, links.frame))
    }

    /// The child of `frame` that has the same parent as `first`, the first child.
    fn sibling(&mut self, first: Node, frame: u32) -> Node {
        let NodeLinks { parent, mut sibling, .. } = self.links[first as usize];
        for _ in 0..MOST_SIBLINGS {
            let Some(links) = self.links.get(sibling as usize) else { break };
            if links.frame == frame {
                return sibling;
            }
            sibling = links.sibling;
        }
        let nodes = self.links.len();
        let child = self.look_up(parent, frame);
        if child as usize == nodes {
            // It is new.
            self.links[child as usize].sibling = self.links[first as usize].sibling;
            self.links[first as usize].sibling = child;
        }
        child
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
        links.push(NodeLinks::new(parent, frame));
        child
    }

    /// Adds a child that is not there, as [`Paths::child`] would. The children of a node
    /// may be added in any order.
    fn add_child(&mut self, parent: Node, frame: u32) -> Node {
        let Paths { links, index, hash, .. } = self;
        let child = links.len() as Node;
        let first = parent as usize + 1;
        links.push(NodeLinks::new(parent, frame));
        if first == child as usize {
            return child;
        }
        let entry = ChildEntry { parent, frame, child };
        index.insert_unique(hash_of(hash, parent, frame), entry, |step| {
            hash_of(hash, step.parent, step.frame)
        });
        if links[first].parent == parent {
            links[child as usize].sibling = links[first].sibling;
            links[first].sibling = child;
        }
        child
    }

    /// The path that ends at this node.
    pub(crate) fn path(&mut self, node: Node) -> u32 {
        let end = &mut self.links[node as usize].end;
        if *end == NONE {
            *end = self.nodes.len() as u32;
            self.nodes.push(node);
            self.allocated.push(0);
        }
        *end
    }

    /// How many paths there are.
    pub(crate) fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Samples were allocated at this path.
    #[inline]
    pub(crate) fn allocate(&mut self, path: u32, samples: u64) {
        let sum = &mut self.allocated[path as usize];
        *sum = sum.saturating_add(samples);
    }

    pub(crate) fn node(&self, path: u32) -> Node {
        self.nodes[path as usize]
    }

    pub(crate) fn parent(&self, node: Node) -> Node {
        self.links()[node as usize].parent
    }

    pub(crate) fn frame(&self, node: Node) -> u32 {
        self.links()[node as usize].frame
    }

    pub(crate) fn len(&self) -> usize {
        self.links().len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.links.len() >= self.most.nodes || self.nodes.len() >= self.most.paths
    }

    /// The most samples that are missing from the sum of any call path.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Samples allocated at each node or below it.
    fn weights(&self) -> Vec<u64> {
        let mut weights = vec![0_u64; self.links.len()];
        for (&node, &allocated) in self.nodes.iter().zip(&self.allocated) {
            weights[node as usize] = weights[node as usize].saturating_add(allocated);
        }
        // The number of a parent is below those of its children.
        for node in (1..weights.len()).rev() {
            let parent = self.links[node].parent as usize;
            weights[parent] = weights[parent].saturating_add(weights[node]);
        }
        weights
    }

    /// Drops the lightest nodes, at least half of all, and numbers the paths anew.
    pub(crate) fn prune(&mut self) -> PathMoves {
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
        let indexed = self.index.len();
        self.index = HashTable::new();
        tree.index.reserve(indexed, |step| hash_of(&self.hash, step.parent, step.frame));
        tree.links.reserve(room);
        let mut moved = vec![NONE; self.links.len()];
        moved[ROOT as usize] = ROOT;
        for (node, &NodeLinks { parent, frame, .. }) in self.links.iter().enumerate().skip(1) {
            let parent = moved[parent as usize];
            let stays = weights[node] > lightest || frame == LIGHT;
            if parent != NONE && (stays || tree.frame(parent) == LIGHT) {
                moved[node] = tree.add_child(parent, frame);
            }
        }
        let paths = self.nodes.iter().zip(&self.allocated).map(|(&node, &allocated)| {
            let to = match moved[node as usize] {
                NONE => {
                    let light = tree.child(ROOT, LIGHT);
                    tree.child(light, self.frame(node))
                }
                to => to,
            };
            let path = tree.path(to);
            tree.allocate(path, allocated);
            path
        });
        let to = paths.collect();
        // Innermost frames are never dropped. If they alone fill the tree, it must grow,
        // or it would be pruned for each of them.
        tree.most.nodes = tree.most.nodes.max(tree.links.len() * 2);
        tree.most.paths = tree.most.paths.max(tree.nodes.len() * 2);
        let moves = PathMoves { to, count: tree.nodes.len() };
        *self = tree;
        moves
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
    fn a_child_is_found_whatever_was_added_in_between() {
        use std::collections::HashMap;
        let mut paths = Paths::new(Bounds::USUAL);
        let mut known: HashMap<(Node, u32), Node> = HashMap::new();
        let mut parents: HashMap<Node, (Node, u32)> = HashMap::new();
        for turn in 0..100_000_u64 {
            // Stacks of up to 8 frames, of which some nodes have up to 40 children.
            let mut node = ROOT;
            for depth in 0..scramble(turn) % 8 {
                let choices = [2, 40, 3, 1][(depth % 4) as usize];
                let frame = (scramble(turn << 8 | depth) % choices) as u32;
                let child = paths.child(node, frame);
                assert_eq!(*known.entry((node, frame)).or_insert(child), child);
                assert_eq!(*parents.entry(child).or_insert((node, frame)), (node, frame));
                assert_eq!((paths.parent(child), paths.frame(child)), (node, frame));
                node = child;
            }
        }
        assert_eq!(paths.len(), known.len() + 1);
        assert!(paths.index.len() < known.len(), "first children need no index");
    }

    #[test]
    fn a_full_tree_keeps_what_is_heavy_and_all_innermost_frames() {
        let mut paths = Paths::new(Bounds { nodes: 1000, paths: 1000 });
        let mut leaves = [0_u64; 10];
        let mut heavy = 0;
        for turn in 0..20_000_u64 {
            if paths.is_full() {
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
            paths.allocate(path, 1);
        }
        let mut found = [0_u64; 10];
        for (path, allocated) in paths.allocated.iter().enumerate() {
            found[paths.frame(paths.node(path as u32)) as usize] += allocated;
        }
        assert_eq!(found, leaves);
        let callers = paths.child(ROOT, 1000);
        let weight = paths.weights()[callers as usize];
        assert!(weight <= heavy && weight + paths.missing() >= heavy, "{weight} of {heavy}");
        assert!(paths.missing() < heavy / 10);
    }
}
