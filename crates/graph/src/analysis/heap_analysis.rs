//! What the questions share.

use std::panic::resume_unwind;
use std::sync::OnceLock;
use std::thread;

use super::kind_row::KindRow;
use crate::dominators::{DominatorTree, Node};
use crate::graph::{HeapGraph, OutsideBytes, Reach};
use crate::holders::{HolderTree, Share};
use crate::kinds::{KindId, Kinds};
use crate::retained::RetainedTree;

/// A graph with its holders, dominators and kinds.
#[derive(Debug)]
pub struct HeapAnalysis {
    /// The graph.
    pub graph: HeapGraph,
    /// What holds the roots.
    pub holders: HolderTree,
    /// What each holder reaches first.
    pub shares: Vec<Share>,
    /// What retains what.
    pub dominators: DominatorTree,
    /// What blocks are called.
    pub kinds: Kinds,
    /// The dominators with blocks that are alike joined.
    pub retained: RetainedTree,
    /// Counted when they are asked for.
    pub(super) kind_rows: OnceLock<Vec<KindRow>>,
}

impl HeapAnalysis {
    /// More nodes help no reader.
    const MOST_JOINED: usize = 1 << 20;

    /// Analyses a graph. `None` if it has too many pointers for numbers of 32 bits.
    pub fn new(graph: HeapGraph) -> Option<HeapAnalysis> {
        let holders = HolderTree::new(&graph)?;
        let (dominators, shares) = thread::scope(|scope| {
            let shares = scope.spawn(|| holders.shares(&graph));
            let dominators = DominatorTree::new(&graph, &holders);
            (dominators, shares.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        let dominators = dominators?;
        let kinds = Kinds::new(&graph);
        let retained = RetainedTree::new(
            &dominators,
            HeapAnalysis::MOST_JOINED,
            |block| graph.bytes(block),
            |block| kinds.of(&graph, block),
            |from, to| kinds.pointer_of_record(&graph, from, to),
        );
        Some(HeapAnalysis {
            graph,
            holders,
            shares,
            dominators,
            kinds,
            retained,
            kind_rows: OnceLock::new(),
        })
    }

    /// The kind of a block.
    pub fn kind(&self, block: u32) -> KindId {
        self.kinds.of(&self.graph, block)
    }

    /// The bytes that would be freed without a block; 0 if it is garbage.
    pub fn retained_by(&self, block: u32) -> u64 {
        let position = self.dominators.position(Node::Block(block));
        position.map_or(0, |position| self.dominators.retained(position))
    }

    /// Of the blocks of each of these kinds that are alive, the one that retains most.
    pub fn biggest_of(&self, kinds: &[KindId]) -> Vec<Option<u32>> {
        let mut biggest: Vec<Option<(u64, u32)>> = vec![None; self.kinds.len()];
        for position in 0..self.dominators.len() as u32 {
            let Node::Block(block) = self.dominators.node(position) else { continue };
            if let Some(place) = biggest.get_mut(self.kind(block) as usize) {
                *place = (*place).max(Some((self.dominators.retained(position), block)));
            }
        }
        let of_kind = |kind: &KindId| Some(biggest.get(*kind as usize).copied()??.1);
        kinds.iter().map(of_kind).collect()
    }

    /// What is reachable.
    pub fn reachable(&self) -> Reach {
        self.shares.first().copied().unwrap_or_default().reach
    }

    /// What is kept outside the heap.
    pub fn outside(&self) -> OutsideBytes {
        self.dominators.retained_outside(DominatorTree::PROGRAM)
    }

    /// Everything in the snapshot, with garbage that has not been collected yet.
    pub fn all(&self) -> Reach {
        let blocks = 0..self.graph.blocks() as u32;
        blocks.fold(Reach::default(), |sum, block| sum.plus(Reach::of(&self.graph, block)))
    }

    /// The bytes that are reachable, with headers.
    pub fn reachable_bytes(&self) -> u64 {
        self.dominators.retained(DominatorTree::PROGRAM)
    }
}
