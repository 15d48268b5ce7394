//! What the questions share.

use crate::dominators::DominatorTree;
use crate::graph::HeapGraph;
use crate::holders::{HolderShare, HolderTree};
use crate::labels::{LabelId, Labels};
use crate::retained::RetainedTree;

/// A graph with its holders, dominators and labels.
#[derive(Debug)]
pub struct HeapAnalysis {
    /// The graph.
    pub graph: HeapGraph,
    /// What holds the roots.
    pub holders: HolderTree,
    /// What each holder reaches first.
    pub shares: Vec<HolderShare>,
    /// What retains what.
    pub dominators: DominatorTree,
    /// What blocks are called.
    pub labels: Labels,
    /// The dominators with blocks that are alike joined.
    pub retained: RetainedTree,
}

impl HeapAnalysis {
    /// More nodes help no reader.
    const MOST_JOINED: usize = 1 << 20;

    /// Analyses a graph. `None` if it has too many pointers for numbers of 32 bits.
    pub fn new(graph: HeapGraph) -> Option<HeapAnalysis> {
        let holders = HolderTree::new(&graph)?;
        let dominators = DominatorTree::new(&graph, &holders)?;
        let shares = holders.shares(&graph);
        let labels = Labels::new(&graph);
        let retained = RetainedTree::new(
            &dominators,
            HeapAnalysis::MOST_JOINED,
            |block| graph.bytes(block),
            |block| labels.of(&graph, block),
        );
        Some(HeapAnalysis { graph, holders, shares, dominators, labels, retained })
    }

    /// The label of a block.
    pub fn label(&self, block: u32) -> LabelId {
        self.labels.of(&self.graph, block)
    }

    /// The bytes that are reachable, with headers.
    pub fn reachable_bytes(&self) -> u64 {
        self.dominators.retained(DominatorTree::PROGRAM)
    }
}
