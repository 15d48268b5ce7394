//! The dominator tree, and what each node retains.

use super::depth_first::DepthFirst;
use super::flow::FlowGraph;
use super::numbers::{NONE, Numbers, Rows};
use super::semi_nca::immediate_dominators;
use crate::graph::HeapGraph;
use crate::holders::{HolderId, HolderTree};

/// A node of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Node {
    /// A block, by its number in the graph.
    Block(u32),
    /// A holder.
    Holder(HolderId),
}

/// The dominator tree of what is alive. Nodes have positions, from 0 for the program; a node's
/// dominator has a lower position.
#[derive(Debug)]
pub struct DominatorTree {
    blocks: u32,
    /// From a node of the flow graph to its position.
    position: Numbers,
    /// From a position to its node.
    node: Numbers,
    dominator: Numbers,
    /// Bytes by position.
    retained: Vec<u64>,
    /// Bytes outside the heap by position; empty if no block has any.
    outside: Vec<u64>,
}

impl DominatorTree {
    /// The position of the program.
    pub const PROGRAM: u32 = 0;

    /// Finds the dominators. `None` if there are more than 2^32 - 2 pointers.
    pub fn new(graph: &HeapGraph, holders: &HolderTree) -> Option<DominatorTree> {
        let flow = FlowGraph::new(graph, holders);
        let order = DepthFirst::new(&flow);
        let predecessors = order.predecessors(&flow)?;
        let DepthFirst { number, node, parent } = order;
        // It can be made again, and memory is at its most while dominators are found.
        drop(number);
        let dominator = immediate_dominators(parent, predecessors);
        let mut position = Numbers::new(flow.nodes(), NONE);
        for number in 0..node.len() as u32 {
            position.set(node.get(number), number);
        }
        let bytes = |position| flow.bytes(node.get(position));
        let mut tree = DominatorTree {
            blocks: graph.blocks() as u32,
            retained: (0..node.len() as u32).map(bytes).collect(),
            position,
            node,
            dominator,
            outside: Vec::new(),
        };
        tree.add_outside(graph);
        tree.sum_up();
        Some(tree)
    }

    fn add_outside(&mut self, graph: &HeapGraph) {
        if graph.customs().iter().all(|custom| custom.outside_bytes == 0) {
            return;
        }
        self.outside = vec![0; self.len()];
        for custom in graph.customs() {
            if let Some(position) = self.position(Node::Block(custom.block))
                && let Some(bytes) = self.outside.get_mut(position as usize)
            {
                *bytes = bytes.saturating_add(custom.outside_bytes);
            }
        }
    }

    /// Adds what each node retains to its dominator, from the last to the first.
    fn sum_up(&mut self) {
        for table in [&mut self.retained, &mut self.outside] {
            for position in (1..table.len()).rev() {
                let own = table.get(position).copied().unwrap_or_default();
                let dominator = self.dominator.get(position as u32) as usize;
                if let Some(sum) = table.get_mut(dominator) {
                    *sum = sum.saturating_add(own);
                }
            }
        }
    }

    /// How many nodes are alive: holders and blocks.
    pub fn len(&self) -> usize {
        self.node.len()
    }

    /// False: there is always the program.
    pub fn is_empty(&self) -> bool {
        self.node.len() == 0
    }

    /// The position of a node; `None` if it is garbage.
    pub fn position(&self, node: Node) -> Option<u32> {
        let number = match node {
            Node::Block(block) => block,
            Node::Holder(holder) => self.blocks.checked_add(holder)?,
        };
        Some(self.position.get(number)).filter(|position| *position != NONE)
    }

    /// The node at a position.
    pub fn node(&self, position: u32) -> Node {
        let number = self.node.get(position);
        number.checked_sub(self.blocks).map_or(Node::Block(number), Node::Holder)
    }

    /// The position of the dominator; the program is its own.
    pub fn dominator(&self, position: u32) -> u32 {
        self.dominator.get(position)
    }

    /// The bytes that would be freed, with headers.
    pub fn retained(&self, position: u32) -> u64 {
        self.retained.get(position as usize).copied().unwrap_or_default()
    }

    /// The bytes outside the heap that would be freed.
    pub fn retained_outside(&self, position: u32) -> u64 {
        self.outside.get(position as usize).copied().unwrap_or_default()
    }

    /// What a holder retains; 0 if all it holds is held by others too.
    pub fn retained_by(&self, holder: HolderId) -> u64 {
        self.position(Node::Holder(holder)).map_or(0, |position| self.retained(position))
    }

    /// The nodes that each node dominates directly.
    pub fn children(&self) -> DominatorChildren {
        let rows = Rows::new(self.len(), |pair| {
            for position in 1..self.len() as u32 {
                pair(self.dominator(position), position);
            }
        });
        DominatorChildren { rows: rows.unwrap_or_default() }
    }
}

/// The children of each node of a [`DominatorTree`].
#[derive(Debug)]
pub struct DominatorChildren {
    rows: Rows,
}

impl DominatorChildren {
    /// The positions of those that a node dominates directly, ascending.
    pub fn of(&self, position: u32) -> &[u32] {
        self.rows.row(position)
    }
}
