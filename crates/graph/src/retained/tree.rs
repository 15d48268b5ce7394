//! The joined tree.

use std::collections::HashMap;

use crate::dominators::{DominatorTree, Node};
use crate::graph::OutsideBytes;
use crate::holders::HolderId;
use crate::kinds::KindId;

/// The number of a node; the program is 0, and a parent comes before its children.
pub type RetainedId = u32;

/// What the blocks of a node are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RetainedKind {
    /// A holder, which has no blocks of its own.
    Holder(HolderId),
    /// Blocks of this kind.
    Blocks(KindId),
    /// Blocks of several kinds, since the tree would have become too big.
    Others,
}

/// Blocks that are alike and held alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetainedNode {
    /// What they are.
    pub kind: RetainedKind,
    /// The node above.
    pub parent: RetainedId,
    /// The pointer of the one block above that leads here, from 0, if others of its pointers lead to blocks of the same
    /// kind, which are nodes of their own.
    pub pointer: Option<u32>,
    /// How many blocks.
    pub blocks: u64,
    /// How many of them are held by the node above, and not by blocks of this node: for a
    /// list, the number of lists.
    pub heads: u64,
    /// Their bytes, with headers.
    pub bytes: u64,
    /// The bytes of these and of all below.
    pub retained: u64,
    /// The bytes outside the heap of these and of all below.
    pub outside: OutsideBytes,
}

/// The dominator tree with blocks that are alike joined.
#[derive(Debug)]
pub struct RetainedTree {
    nodes: Vec<RetainedNode>,
    /// The node of each position of the dominator tree.
    node_of: Vec<RetainedId>,
}

impl RetainedTree {
    /// The top.
    pub const PROGRAM: RetainedId = 0;

    /// Joins the blocks of a dominator tree by their kinds, into at most about `most` nodes. `pointer` says of a block
    /// and one that it points to which of its pointers that is, if what these lead to is to be kept apart.
    pub fn new(
        tree: &DominatorTree,
        most: usize,
        bytes: impl Fn(u32) -> u64,
        kind: impl Fn(u32) -> KindId,
        pointer: impl Fn(u32, u32) -> Option<u32>,
    ) -> RetainedTree {
        let recent = vec![None; RECENT];
        let mut joined = Joined { nodes: Vec::new(), children: HashMap::new(), recent, most };
        let mut node_of = Vec::with_capacity(tree.len());
        for position in 0..tree.len() as u32 {
            let above = node_of.get(tree.dominator(position) as usize).copied().unwrap_or(0);
            let (node, bytes) = match tree.node(position) {
                Node::Holder(holder) => {
                    (joined.child(above, RetainedKind::Holder(holder), None), None)
                }
                Node::Block(block) => {
                    let pointer = match tree.node(tree.dominator(position)) {
                        Node::Block(from) if joined.is_single(above) => pointer(from, block),
                        _ => None,
                    };
                    let kind = RetainedKind::Blocks(kind(block));
                    (joined.place(above, kind, pointer), Some(bytes(block)))
                }
            };
            node_of.push(node);
            if let Some(entry) = joined.nodes.get_mut(node as usize) {
                if let Some(bytes) = bytes {
                    entry.blocks += 1;
                    entry.bytes = entry.bytes.saturating_add(bytes);
                }
                entry.heads += u64::from(node != above);
                // What is below a node is no longer counted at it.
                let outside = tree.retained_outside(position);
                entry.outside = entry.outside.plus(outside);
            }
            if position != 0
                && let Some(entry) = joined.nodes.get_mut(above as usize)
            {
                let outside = tree.retained_outside(position);
                entry.outside = entry.outside.minus(outside);
            }
        }
        let mut result = RetainedTree { nodes: joined.nodes, node_of };
        result.sum_up();
        result.name_few_pointers();
        result
    }

    /// Forgets which pointer leads to a node that has no namesake beside it.
    fn name_few_pointers(&mut self) {
        let mut alike: HashMap<(RetainedId, RetainedKind), u32> = HashMap::new();
        for node in self.nodes.iter().filter(|node| node.pointer.is_some()) {
            *alike.entry((node.parent, node.kind)).or_default() += 1;
        }
        for node in &mut self.nodes {
            if alike.get(&(node.parent, node.kind)).is_none_or(|count| *count < 2) {
                node.pointer = None;
            }
        }
    }

    fn sum_up(&mut self) {
        for node in &mut self.nodes {
            node.retained = node.bytes;
        }
        for index in (1..self.nodes.len()).rev() {
            let Some(&node) = self.nodes.get(index) else { continue };
            if let Some(above) = self.nodes.get_mut(node.parent as usize) {
                above.retained = above.retained.saturating_add(node.retained);
                above.outside = above.outside.plus(node.outside);
            }
        }
    }

    /// All nodes, parents before their children.
    pub fn nodes(&self) -> &[RetainedNode] {
        &self.nodes
    }

    /// A node.
    pub fn node(&self, id: RetainedId) -> Option<&RetainedNode> {
        self.nodes.get(id as usize)
    }

    /// The node of a position of the dominator tree.
    pub fn node_of(&self, position: u32) -> Option<RetainedId> {
        self.node_of.get(position as usize).copied()
    }

    /// The nodes below each node, those that retain most first.
    pub fn children(&self) -> Vec<Vec<RetainedId>> {
        let mut children = vec![Vec::new(); self.nodes.len()];
        for (id, node) in (0..).zip(&self.nodes).skip(1) {
            if let Some(of_parent) = children.get_mut(node.parent as usize) {
                of_parent.push(id);
            }
        }
        let retained = |id: &RetainedId| self.node(*id).map_or(0, |node| node.retained);
        for list in &mut children {
            list.sort_by_key(|id| std::cmp::Reverse(retained(id)));
        }
        children
    }

    /// A node and those above it, from the first below the program down.
    pub fn path(&self, id: RetainedId) -> Vec<RetainedId> {
        let mut path = Vec::new();
        let mut at = id;
        while at != RetainedTree::PROGRAM {
            path.push(at);
            at = self.node(at).map_or(0, |node| node.parent);
        }
        path.reverse();
        path
    }
}

/// How far below a holder single blocks are looked for: a record of records.
const DEEPEST_SINGLE: usize = 6;

/// The node above, the kind, and the pointer that leads there if that matters.
type Place = (RetainedId, RetainedKind, Option<u32>);

/// How many places are remembered.
const RECENT: usize = 1 << 10;

/// A tree that grows.
struct Joined {
    nodes: Vec<RetainedNode>,
    children: HashMap<Place, RetainedId>,
    /// Some of these, at a place of their own: looking into the table costs more than all else.
    recent: Vec<Option<(Place, RetainedId)>>,
    most: usize,
}

impl Joined {
    /// Where a block of this kind belongs that a block of `above` dominates: with it if they are alike, as
    /// in a list; else with the nearest of its kind, once there are two on the path, as in
    /// a tree whose levels alternate.
    fn place(&mut self, above: RetainedId, kind: RetainedKind, pointer: Option<u32>) -> RetainedId {
        let mut nearest = None;
        let mut at = above;
        while let Some(node) = self.nodes.get(at as usize) {
            if node.kind == RetainedKind::Others || (node.kind == kind && at == above) {
                return at;
            }
            if node.kind == kind
                && let Some(nearest) = nearest.replace(at)
            {
                return nearest;
            }
            if at == RetainedTree::PROGRAM || matches!(node.kind, RetainedKind::Holder(_)) {
                break;
            }
            at = node.parent;
        }
        if self.nodes.len() >= self.most && !self.children.contains_key(&(above, kind, pointer)) {
            return self.child(above, RetainedKind::Others, None);
        }
        self.child(above, kind, pointer)
    }

    /// Whether a node is one block near a holder: what its pointers lead to has nothing to do with each other.
    fn is_single(&self, node: RetainedId) -> bool {
        let mut at = node;
        for _ in 0..DEEPEST_SINGLE {
            match self.nodes.get(at as usize) {
                Some(node) if matches!(node.kind, RetainedKind::Holder(_)) => return true,
                Some(node) if node.blocks == 1 => at = node.parent,
                _ => return false,
            }
        }
        false
    }

    fn child(&mut self, above: RetainedId, kind: RetainedKind, pointer: Option<u32>) -> RetainedId {
        let place = (above, kind, pointer);
        let number = match kind {
            RetainedKind::Holder(number) | RetainedKind::Blocks(number) => number,
            RetainedKind::Others => 0,
        };
        let slot = above.wrapping_mul(61).wrapping_add(number) as usize % RECENT;
        if let Some(Some((known, id))) = self.recent.get(slot)
            && *known == place
        {
            return *id;
        }
        let next = self.nodes.len() as RetainedId;
        let id = *self.children.entry(place).or_insert(next);
        if let Some(recent) = self.recent.get_mut(slot) {
            *recent = Some((place, id));
        }
        if id == next {
            self.nodes.push(RetainedNode {
                kind,
                parent: above,
                pointer,
                blocks: 0,
                heads: 0,
                bytes: 0,
                retained: 0,
                outside: OutsideBytes::default(),
            });
        }
        id
    }
}
