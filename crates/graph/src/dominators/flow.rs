//! The graph of holders and blocks.

use crate::graph::{BitSet, HeapGraph};
use crate::holders::HolderTree;

/// Nodes are blocks by their numbers, and after them the holders. Its edges are those along which the
/// program keeps blocks alive.
pub(crate) struct FlowGraph<'a> {
    pub(crate) graph: &'a HeapGraph,
    pub(crate) holders: &'a HolderTree,
    /// Blocks of ephemerons whose data is alive through them.
    has_data: BitSet,
    /// These ephemerons by block, and their data in the same order.
    ephemerons: Vec<u32>,
    data: Vec<u32>,
}

impl<'a> FlowGraph<'a> {
    pub(crate) fn new(graph: &'a HeapGraph, holders: &'a HolderTree) -> FlowGraph<'a> {
        let mut has_data = BitSet::new(graph.blocks());
        let (ephemerons, data): (Vec<u32>, Vec<u32>) =
            graph.live_ephemeron_data().into_iter().unzip();
        for block in &ephemerons {
            has_data.insert(*block);
        }
        FlowGraph { graph, holders, has_data, ephemerons, data }
    }

    /// How many nodes there are, with those that are not reachable.
    pub(crate) fn nodes(&self) -> usize {
        self.graph.blocks() + self.holders.len()
    }

    /// The node that reaches all others.
    pub(crate) fn program(&self) -> u32 {
        self.holders.node(HolderTree::PROGRAM)
    }

    /// The nodes that a node keeps alive, in two parts.
    #[inline]
    pub(crate) fn successors(&self, node: u32) -> (&[u32], &[u32]) {
        if let Some(holder) = self.holders.holder(node) {
            return (self.holders.successors(holder), &[]);
        }
        let targets = self.graph.targets(node);
        if !self.has_data.contains(node) {
            return (targets, &[]);
        }
        let from = self.ephemerons.partition_point(|block| *block < node);
        let to = self.ephemerons.partition_point(|block| *block <= node);
        (targets, self.data.get(from..to).unwrap_or_default())
    }

    /// The successor with this index.
    #[inline]
    pub(crate) fn successor(&self, node: u32, index: u32) -> Option<u32> {
        let (first, second) = self.successors(node);
        let index = index as usize;
        first.get(index).or_else(|| second.get(index.checked_sub(first.len())?)).copied()
    }

    /// What a block takes; 0 for a holder.
    pub(crate) fn bytes(&self, node: u32) -> u64 {
        if self.holders.holder(node).is_some() { 0 } else { self.graph.bytes(node) }
    }
}
