//! Call paths: a tree of frames, the outermost at the root, in bounded memory.
//!
//! A path is a node at which blocks were allocated, with their counts. When the
//! tree reaches its bound, the lightest nodes are dropped, as in lossy counting
//! (Manku and Motwani, VLDB 2002): their counts move under [`LIGHT`], with the
//! innermost frame alone. So sums over innermost frames stay exact, and the sum of
//! any call path lacks at most [`Paths::missing`] samples.

mod pruning;
mod stand_ins;

use std::hash::BuildHasher as _;
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

pub(crate) use pruning::Bounds;
pub use pruning::PathMoves;
pub(crate) use stand_ins::{
    LIGHT, NOWHERE, domain_frame, domain_of, is_stand_in, source_frame, source_of,
};

/// A node: its index in the list of nodes.
pub(crate) type Node = u32;

/// The root, above all outermost frames.
pub(crate) const ROOT: Node = 0;

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
}

fn hash_of(hash: &DefaultHashBuilder, parent: Node, frame: u32) -> u64 {
    hash.hash_one(u64::from(parent) << 32 | u64::from(frame))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinning::scramble;

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
}
