//! Call paths: a tree of frames, the outermost at the root, in bounded memory.
//!
//! A path is a node at which blocks were allocated, with their counts. When the
//! tree reaches its bound, the lightest nodes are dropped, as in lossy counting
//! (Manku and Motwani, VLDB 2002): their counts move under [`LIGHT`], with the
//! innermost frame alone, and the innermost of own code. So sums over these stay exact, and the sum of
//! any call path lacks at most [`Paths::missing`] samples. Paths of blocks in a table of
//! blocks stay ([`table_paths`]).

mod pruning;
mod stand_ins;
mod table_paths;

use std::hash::BuildHasher as _;
use std::sync::{Arc, OnceLock};

use hashbrown::{DefaultHashBuilder, HashTable};

pub(crate) use pruning::Bounds;
pub use pruning::PathMoves;
pub(crate) use stand_ins::{
    LIGHT, NOWHERE, domain_frame, domain_of, is_stand_in, kind_frame, kind_of_frame, source_frame,
    source_of,
};
use table_paths::TablePaths;

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
    /// The first child, or `NONE`. It begins the list of all children; the latest is the
    /// second.
    first_child: Node,
    /// The next child of the same parent, or `NONE`.
    sibling: Node,
}

impl NodeLinks {
    fn new(parent: Node, frame: u32) -> Self {
        NodeLinks { parent, frame, end: NONE, first_child: NONE, sibling: NONE }
    }
}

/// The most children of a node that are found by their list alone. Those of a node with more
/// are in the index too: all of them.
///
/// Half of the steps of a large trace add a node, and most of these have few siblings. An entry
/// for each would cost more cache misses than the list.
const MOST_LISTED: usize = 6;

/// A child by its parent and frame. The key is in the table, so that a look-up costs
/// one cache miss besides that of the table's control bytes, not three.
#[derive(Clone, Copy)]
struct ChildEntry {
    parent: Node,
    frame: u32,
    child: Node,
}

/// A tree to which no node will be added. Selections share it, and what is found of its nodes.
struct CompleteTree {
    links: Vec<NodeLinks>,
    own_nodes: OnceLock<Arc<Vec<Node>>>,
}

impl CompleteTree {
    fn new(links: Vec<NodeLinks>) -> Arc<CompleteTree> {
        Arc::new(CompleteTree { links, own_nodes: OnceLock::new() })
    }
}

/// The tree and its paths. What happens to the blocks of a path is counted elsewhere.
pub(crate) struct Paths {
    links: Vec<NodeLinks>,
    /// The tree in place of `links`, once it is complete. The ends in it are the paths of
    /// the whole trace, also where [`Paths::emptied`] shares it.
    shared: Option<Arc<CompleteTree>>,
    /// The children of nodes that have more than [`MOST_LISTED`].
    index: HashTable<ChildEntry>,
    hash: DefaultHashBuilder,
    /// The node of each path.
    nodes: Vec<Node>,
    /// What was allocated at each path, by which the lightest are found.
    allocated: Vec<u64>,
    most: Bounds,
    missing: u64,
    /// If a table of blocks is made: the paths that it needs.
    table: Option<Box<TablePaths>>,
    /// Blocks that a table has may be of paths without their callers.
    table_lacks_callers: bool,
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
            table: None,
            table_lacks_callers: false,
        }
    }

    /// From now on, the paths of a table of at most so many blocks are not dropped.
    pub(crate) fn keep_for_table(&mut self, most_rows: usize) {
        self.table = Some(Box::new(TablePaths::new(most_rows)));
    }

    /// No more nodes will be added: from now on, [`Paths::emptied`] takes no time.
    pub(crate) fn complete(&mut self) {
        if self.shared.is_none() {
            self.shared = Some(CompleteTree::new(std::mem::take(&mut self.links)));
        }
    }

    /// The same tree without paths. No node can be added to it.
    pub(crate) fn emptied(&self) -> Self {
        let shared = self.shared.clone().unwrap_or_else(|| CompleteTree::new(self.links.clone()));
        Paths {
            links: Vec::new(),
            shared: Some(shared),
            missing: self.missing,
            table_lacks_callers: self.table_lacks_callers,
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

    /// For each node the innermost of own code on the way to it, or the root. In a complete tree they
    /// are found once. `prepare` returns what tells whether a frame is own code.
    pub(crate) fn own_nodes<F: Fn(u32) -> bool>(
        &self,
        prepare: impl FnOnce() -> F,
    ) -> Arc<Vec<Node>> {
        let find = || Arc::new(own_nodes(self.links(), prepare()));
        match &self.shared {
            Some(shared) => Arc::clone(shared.own_nodes.get_or_init(find)),
            None => find(),
        }
    }

    fn links(&self) -> &[NodeLinks] {
        self.shared.as_ref().map_or(&self.links, |shared| &shared.links)
    }

    /// Adds a node that is not there. The tree cannot be searched afterwards.
    pub(crate) fn append(&mut self, parent: Node, frame: u32) {
        self.links.push(NodeLinks::new(parent, frame));
    }

    /// Says what was missing from a tree that is read back.
    pub(crate) fn set_missing(&mut self, missing: u64, table_lacks_callers: bool) {
        self.missing = missing;
        self.table_lacks_callers = table_lacks_callers;
    }

    /// The node of `frame` called from `parent`.
    #[inline]
    pub(crate) fn child(&mut self, parent: Node, frame: u32) -> Node {
        let mut listed = 0;
        let mut child = self.links[parent as usize].first_child;
        while let Some(links) = self.links.get(child as usize) {
            if listed == MOST_LISTED {
                return self.indexed_child(parent, frame);
            }
            if links.frame == frame {
                return child;
            }
            child = links.sibling;
            listed += 1;
        }
        self.add_listed(parent, frame, listed)
    }

    /// The first child of `parent`, if there is one, and its frame. It is the one that
    /// [`Paths::child`] looks at first.
    #[inline]
    pub(crate) fn first_child(&self, parent: Node) -> Option<(Node, u32)> {
        let first = self.links[parent as usize].first_child;
        self.links.get(first as usize).map(|links| (first, links.frame))
    }

    /// The node of `frame` called from `parent`, whose children are in the index.
    fn indexed_child(&mut self, parent: Node, frame: u32) -> Node {
        let hashed = hash_of(&self.hash, parent, frame);
        let same = |entry: &ChildEntry| (entry.parent, entry.frame) == (parent, frame);
        if let Some(step) = self.index.find(hashed, same) {
            return step.child;
        }
        let child = self.link(parent, frame);
        self.add_to_index(child);
        child
    }

    /// Adds a child that is not there, as [`Paths::child`] would. The children of a node
    /// may be added in any order.
    fn add_child(&mut self, parent: Node, frame: u32) -> Node {
        let listed = self.children(parent).take(MOST_LISTED + 1).count();
        self.add_listed(parent, frame, listed)
    }

    /// Adds a child that is not there. `listed`: how many there are, at most one more than
    /// [`MOST_LISTED`].
    fn add_listed(&mut self, parent: Node, frame: u32, listed: usize) -> Node {
        let child = self.link(parent, frame);
        if listed > MOST_LISTED {
            self.add_to_index(child);
        } else if listed == MOST_LISTED {
            let mut next = self.links[parent as usize].first_child;
            while next != NONE {
                self.add_to_index(next);
                next = self.links[next as usize].sibling;
            }
        }
        child
    }

    /// Adds a child to the list of those of `parent`.
    fn link(&mut self, parent: Node, frame: u32) -> Node {
        let child = self.links.len() as Node;
        let mut links = NodeLinks::new(parent, frame);
        match self.links[parent as usize].first_child {
            NONE => self.links[parent as usize].first_child = child,
            first => {
                let second = &mut self.links[first as usize].sibling;
                links.sibling = std::mem::replace(second, child);
            }
        }
        self.links.push(links);
        child
    }

    fn add_to_index(&mut self, child: Node) {
        let Paths { links, index, hash, .. } = self;
        let NodeLinks { parent, frame, .. } = links[child as usize];
        let entry = ChildEntry { parent, frame, child };
        index.insert_unique(hash_of(hash, parent, frame), entry, |step| {
            hash_of(hash, step.parent, step.frame)
        });
    }

    /// The children of a node.
    fn children(&self, parent: Node) -> impl Iterator<Item = Node> {
        let node = |node: Node| (node != NONE).then_some(node);
        std::iter::successors(node(self.links[parent as usize].first_child), move |&child| {
            node(self.links[child as usize].sibling)
        })
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

    /// So much was allocated at this path.
    #[inline]
    pub(crate) fn allocate(&mut self, path: u32, count: u64) {
        let sum = &mut self.allocated[path as usize];
        *sum = sum.saturating_add(count);
    }

    /// A block of this size ([`crate::thinning`]) is allocated at this path, which counts so much.
    #[inline]
    pub(crate) fn allocate_block(&mut self, path: u32, id: u64, size: u64, count: u64) {
        self.allocate(path, count);
        if let Some(table) = &mut self.table {
            table.add(path, id, size);
        }
    }

    #[inline]
    pub(crate) fn node(&self, path: u32) -> Node {
        self.nodes[path as usize]
    }

    #[inline]
    pub(crate) fn parent(&self, node: Node) -> Node {
        self.links()[node as usize].parent
    }

    #[inline]
    pub(crate) fn frame(&self, node: Node) -> u32 {
        self.links()[node as usize].frame
    }

    pub(crate) fn len(&self) -> usize {
        self.links().len()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.links.len() >= self.most.nodes || self.nodes.len() >= self.most.paths
    }

    /// The most that is missing from the sum of any call path.
    pub(crate) fn missing(&self) -> u64 {
        self.missing
    }

    /// Whether blocks that a table has may be of paths without their callers.
    pub(crate) fn table_lacks_callers(&self) -> bool {
        self.table_lacks_callers
    }
}

fn own_nodes(links: &[NodeLinks], is_own: impl Fn(u32) -> bool) -> Vec<Node> {
    let mut own = vec![ROOT; links.len()];
    // The number of a parent is below those of its children.
    for (node, links) in links.iter().enumerate().skip(1) {
        let is_own = is_own(links.frame);
        own[node] = if is_own { node as Node } else { own[links.parent as usize] };
    }
    own
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
        assert!(!paths.index.is_empty(), "some nodes have many children");
        assert!(paths.index.len() < known.len(), "a few children need no index");
        let mut indexed: HashMap<Node, usize> = HashMap::new();
        paths.index.iter().for_each(|entry| *indexed.entry(entry.parent).or_default() += 1);
        for parent in 0..paths.len() as Node {
            let children = paths.children(parent).count();
            let expected = if children > MOST_LISTED { children } else { 0 };
            assert_eq!(indexed.get(&parent).copied().unwrap_or(0), expected);
        }
    }
}
