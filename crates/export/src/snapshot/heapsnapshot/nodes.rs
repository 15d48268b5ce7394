//! The nodes and edges of a snapshot as Chrome shows them.

use heaptap_graph::{HeapGraph, HolderTree, Node, RetainedId, RetainedKind, RetainedTree};

use super::string;
use crate::snapshot::SnapshotInput;
use crate::snapshot::stacks::own_outside;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NodeKind {
    Holder,
    Block,
    /// Memory outside the heap.
    Outside,
}

/// A row of the table of nodes. `name` is a number of a string.
pub(super) struct NodeRow {
    pub(super) kind: NodeKind,
    pub(super) name: u64,
    pub(super) bytes: u64,
}

/// What an edge is, with its index or the number of its name.
#[derive(Clone, Copy)]
pub(super) enum EdgeKind {
    Element(u64),
    Property(u64),
    Internal(u64),
    Weak(u64),
}

/// Nodes by number; 0 is the program.
pub(super) trait NodeSource {
    fn len(&self) -> usize;

    fn node(&self, node: u64) -> NodeRow;

    /// Enumerates the edges of a node and their targets, always in the same order.
    fn edges(&self, node: u64, edge: &mut dyn FnMut(EdgeKind, u64));

    /// The bytes of areas outside the heap; 0 for one that is not written.
    fn areas(&self) -> &[u64];

    /// Enumerates the areas that a node keeps, always in the same order.
    fn areas_of(&self, node: u64, area: &mut dyn FnMut(u64));

    /// The strings from [`string::NAMES`] on.
    fn names(&self) -> Box<dyn Iterator<Item = String> + '_>;
}

/// Every node that is alive. The number of a node is its position in the dominator tree. Names
/// are those of holders, then those of kinds.
pub(super) struct WholeNodes<'a> {
    input: &'a SnapshotInput<'a>,
    /// Ephemerons and data that is alive through them, ascending.
    data: Vec<(u32, u32)>,
    /// Ephemerons and what they refer to weakly, with the number of the edge's name; ascending.
    weak: Vec<(u32, u32, u64)>,
    /// The bytes of areas outside the heap that a block keeps which is alive.
    areas: Vec<u64>,
}

impl<'a> WholeNodes<'a> {
    pub(super) fn new(input: &'a SnapshotInput<'a>) -> WholeNodes<'a> {
        let data = input.graph.live_ephemeron_data();
        let mut weak = Vec::new();
        for (block, of_block, keys) in input.graph.ephemerons() {
            weak.extend(keys.iter().map(|key| (block, *key, string::KEY)));
            let not_alive = |target: &u32| data.binary_search(&(block, *target)).is_err();
            let of_block = of_block.filter(not_alive);
            weak.extend(of_block.map(|target| (block, target, string::DATA)));
        }
        weak.sort_unstable();
        let mut areas = vec![0; input.graph.areas().len()];
        for &(block, area) in input.graph.kept_areas() {
            if input.tree.position(Node::Block(block)).is_some() {
                areas[area as usize] = input.graph.area_bytes(area).allocated;
            }
        }
        WholeNodes { input, data, weak, areas }
    }

    fn holder_edges(&self, holder: u32, edge: &mut dyn FnMut(EdgeKind, u64)) {
        let SnapshotInput { holders, tree, .. } = self.input;
        for child in holders.children(holder) {
            if let Some(target) = tree.position(Node::Holder(child)) {
                edge(EdgeKind::Property(string::NAMES + u64::from(child)), target.into());
            }
        }
        for (index, block) in (0..).zip(holders.root_blocks(holder)) {
            if let Some(target) = tree.position(Node::Block(block)) {
                edge(EdgeKind::Element(index), target.into());
            }
        }
    }

    fn block_edges(&self, block: u32, edge: &mut dyn FnMut(EdgeKind, u64)) {
        let SnapshotInput { graph, tree, .. } = self.input;
        let mut lead = |kind, target| {
            if let Some(target) = tree.position(Node::Block(target)) {
                edge(kind, target.into());
            }
        };
        let fields = graph.fields(block);
        for (index, target) in graph.targets(block).iter().enumerate() {
            let field = fields.get(index).filter(|field| **field != HeapGraph::NO_FIELD);
            let slot = EdgeKind::Internal(string::SLOT);
            lead(field.map_or(slot, |field| EdgeKind::Element((*field).into())), *target);
        }
        let from = self.data.partition_point(|pair| pair.0 < block);
        for &(_, target) in self.data[from..].iter().take_while(|pair| pair.0 == block) {
            lead(EdgeKind::Internal(string::DATA), target);
        }
        let from = self.weak.partition_point(|entry| entry.0 < block);
        for &(_, target, name) in self.weak[from..].iter().take_while(|entry| entry.0 == block) {
            lead(EdgeKind::Weak(name), target);
        }
    }
}

impl NodeSource for WholeNodes<'_> {
    fn len(&self) -> usize {
        self.input.tree.len()
    }

    fn node(&self, node: u64) -> NodeRow {
        let SnapshotInput { graph, holders, tree, kinds, .. } = self.input;
        match tree.node(node as u32) {
            Node::Holder(HolderTree::PROGRAM) => holder_row(string::GC_ROOTS),
            Node::Holder(holder) => holder_row(string::NAMES + u64::from(holder)),
            Node::Block(block) => NodeRow {
                kind: NodeKind::Block,
                name: string::NAMES + holders.len() as u64 + u64::from(kinds.of(graph, block)),
                bytes: graph.bytes(block),
            },
        }
    }

    fn areas(&self) -> &[u64] {
        &self.areas
    }

    fn areas_of(&self, node: u64, area: &mut dyn FnMut(u64)) {
        if let Node::Block(block) = self.input.tree.node(node as u32) {
            self.input.graph.areas_of(block).for_each(|kept| area(kept.into()));
        }
    }

    fn edges(&self, node: u64, edge: &mut dyn FnMut(EdgeKind, u64)) {
        match self.input.tree.node(node as u32) {
            Node::Holder(holder) => self.holder_edges(holder, edge),
            Node::Block(block) => self.block_edges(block, edge),
        }
    }

    fn names(&self) -> Box<dyn Iterator<Item = String> + '_> {
        let input = self.input;
        let holders = input.holders.ids().map(|holder| input.holder_name(holder));
        let kinds = (0..input.kinds.len() as u32).map(|kind| input.kind_name(kind));
        Box::new(holders.chain(kinds))
    }
}

fn holder_row(name: u64) -> NodeRow {
    NodeRow { kind: NodeKind::Holder, name, bytes: 0 }
}

/// Blocks that are alike and held alike as one node, below what dominates them. Each node has a
/// name, which counts its blocks.
pub(super) struct JoinedNodes<'a> {
    input: &'a SnapshotInput<'a>,
    tree: RetainedTree,
    children: Vec<Vec<RetainedId>>,
    /// Bytes outside the heap of each node without those below it.
    areas: Vec<u64>,
}

impl<'a> JoinedNodes<'a> {
    pub(super) fn new(input: &'a SnapshotInput<'a>) -> JoinedNodes<'a> {
        let tree = input.retained_tree();
        let children = tree.children();
        let areas = own_outside(&tree);
        JoinedNodes { input, tree, children, areas }
    }
}

impl NodeSource for JoinedNodes<'_> {
    fn len(&self) -> usize {
        self.tree.nodes().len()
    }

    fn node(&self, node: u64) -> NodeRow {
        let found = &self.tree.nodes()[node as usize];
        let is_holder = matches!(found.kind, RetainedKind::Holder(_));
        NodeRow {
            kind: if is_holder { NodeKind::Holder } else { NodeKind::Block },
            name: if node == 0 { string::GC_ROOTS } else { string::NAMES + node },
            bytes: found.bytes,
        }
    }

    fn areas(&self) -> &[u64] {
        &self.areas
    }

    fn areas_of(&self, node: u64, area: &mut dyn FnMut(u64)) {
        area(node);
    }

    fn edges(&self, node: u64, edge: &mut dyn FnMut(EdgeKind, u64)) {
        for (index, child) in (0..).zip(&self.children[node as usize]) {
            edge(EdgeKind::Element(index), (*child).into());
        }
    }

    fn names(&self) -> Box<dyn Iterator<Item = String> + '_> {
        Box::new(self.tree.nodes().iter().map(|node| {
            let name = self.input.retained_name(node.kind);
            if node.blocks > 1 { format!("{name} ×{}", node.blocks) } else { name }
        }))
    }
}
