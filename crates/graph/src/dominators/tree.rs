//! The dominator tree, and what each node retains.

use super::ancestors::Ancestors;
use super::depth_first::DepthFirst;
use super::flow::FlowGraph;
use super::numbers::{NONE, Numbers, Rows};
use super::own_variables::Positions;
use super::semi_nca::immediate_dominators;
use crate::graph::{HeapGraph, OutsideBytes};
use crate::holders::{HolderId, HolderName, HolderTree};

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
    /// Blocks that were given to a variable though all that dominates them is its module, ascending.
    given: Vec<u32>,
    /// Bytes by position.
    retained: Vec<u64>,
    /// Bytes outside the heap by position; empty if no block has any.
    outside: Vec<OutsideBytes>,
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
        let blocks = graph.blocks() as u32;
        let mut positions = Positions { node, dominator, position };
        let given = positions.give_to_variables(holders, blocks);
        let Positions { node, dominator, position } = positions;
        let bytes = |position| flow.bytes(node.get(position));
        let mut tree = DominatorTree {
            blocks,
            retained: (0..node.len() as u32).map(bytes).collect(),
            position,
            node,
            dominator,
            given,
            outside: Vec::new(),
        };
        tree.add_outside(graph, holders);
        tree.sum_up();
        Some(tree)
    }

    /// Memory outside the heap is retained by what dominates all blocks that keep it.
    fn add_outside(&mut self, graph: &HeapGraph, holders: &HolderTree) {
        if graph.areas().is_empty() {
            return;
        }
        let mut outside = vec![OutsideBytes::default(); self.len()];
        let ancestors = Ancestors::new(&self.dominator);
        let mut keepers = Vec::new();
        for area in graph.area_keepers().chunk_by(|one, next| one.0 == next.0) {
            keepers.clear();
            keepers.extend(area.iter().filter_map(|pair| self.position(Node::Block(pair.1))));
            let common = keepers.iter().copied().reduce(|one, other| ancestors.common(one, other));
            if let (Some(common), Some(&(area, _))) = (common, area.first())
                && let Some(sum) =
                    outside.get_mut(self.retainer(common, &keepers, holders) as usize)
            {
                *sum = sum.plus(graph.area_bytes(area));
            }
        }
        self.outside = outside;
    }

    /// As with blocks, a module and its variables are one holder: of what only a module dominates, the first
    /// of the blocks to which its variables point.
    fn retainer(&self, common: u32, keepers: &[u32], holders: &HolderTree) -> u32 {
        let is_module = |position: u32| match self.node(position) {
            Node::Holder(holder) => matches!(holders.name(holder), HolderName::Module(_)),
            Node::Block(_) => false,
        };
        let is_of_variable = |keeper: &u32| {
            let above = self.dominator(*keeper);
            matches!(self.node(above), Node::Holder(_)) && self.dominator(above) == common
        };
        let own = keepers.iter().copied().filter(is_of_variable).min();
        own.filter(|_| is_module(common)).unwrap_or(common)
    }

    /// Adds what each node retains to its dominator, from the last to the first.
    fn sum_up(&mut self) {
        sum_up(&mut self.retained, &self.dominator, u64::saturating_add);
        sum_up(&mut self.outside, &self.dominator, OutsideBytes::plus);
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

    /// Whether several variables of a module hold a block. Then its dominator is one of them, but the block stays without
    /// that one.
    pub fn is_shared_in_module(&self, block: u32) -> bool {
        self.given.binary_search(&block).is_ok()
    }

    /// The bytes that would be freed, with headers.
    pub fn retained(&self, position: u32) -> u64 {
        self.retained.get(position as usize).copied().unwrap_or_default()
    }

    /// The bytes outside the heap that would be freed.
    pub fn retained_outside(&self, position: u32) -> OutsideBytes {
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

/// Adds each position's own to its dominator's, from the last to the first.
fn sum_up<T: Copy + Default>(table: &mut [T], dominator: &Numbers, plus: fn(T, T) -> T) {
    for position in (1..table.len()).rev() {
        let own = table.get(position).copied().unwrap_or_default();
        if let Some(sum) = table.get_mut(dominator.get(position as u32) as usize) {
            *sum = plus(*sum, own);
        }
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
