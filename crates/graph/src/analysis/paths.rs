//! How the program reaches a block.

use std::collections::VecDeque;

use super::heap_analysis::HeapAnalysis;
use crate::dominators::{FlowGraph, NONE, Node, Numbers, Rows};
use crate::graph::BitSet;
use crate::holders::{HolderId, HolderTree};

/// What holds a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldBy {
    /// A shortest path from a holder to the block, with both.
    pub shortest: Vec<Node>,
    /// The nodes without which the block would go, from the holder down.
    pub dominators: Vec<Node>,
    /// Every last holder from which the block is reachable.
    pub holders: Vec<HolderId>,
}

/// Finds what holds blocks. What the questions have in common is computed once.
pub struct PathFinder<'a> {
    analysis: &'a HeapAnalysis,
    /// The node before each on a shortest path from a holder; a holder's own is itself.
    before: Numbers,
    /// The nodes that point to each node, of those that are alive.
    predecessors: Rows,
}

impl<'a> PathFinder<'a> {
    /// Prepares for questions about a heap.
    pub fn new(analysis: &'a HeapAnalysis) -> PathFinder<'a> {
        let flow = FlowGraph::new(&analysis.graph, &analysis.holders);
        PathFinder {
            analysis,
            before: shortest_paths(analysis, &flow),
            predecessors: predecessors(analysis, &flow),
        }
    }

    /// What holds a block. `None` if nothing does.
    pub fn held_by(&self, block: u32) -> Option<HeldBy> {
        let position = self.analysis.dominators.position(Node::Block(block))?;
        Some(HeldBy {
            shortest: self.shortest(block),
            dominators: self.dominator_path(position),
            holders: self.all_holders(block),
        })
    }

    fn dominator_path(&self, position: u32) -> Vec<Node> {
        let dominators = &self.analysis.dominators;
        let mut path = vec![dominators.node(position)];
        let mut at = position;
        while at != 0 {
            let below = dominators.node(at);
            at = dominators.dominator(at);
            // The block stays without the variable that has it, if others of the module hold it too.
            if matches!(below, Node::Block(block) if dominators.is_shared_in_module(block)) {
                at = dominators.dominator(at);
            }
            path.push(dominators.node(at));
        }
        path.pop();
        path.reverse();
        path
    }

    fn shortest(&self, block: u32) -> Vec<Node> {
        let mut path = vec![node(self.analysis, block)];
        let mut at = block;
        while self.before.get(at) != at && self.before.get(at) != NONE {
            at = self.before.get(at);
            path.push(node(self.analysis, at));
        }
        path.reverse();
        path
    }

    /// Backwards from the block.
    fn all_holders(&self, block: u32) -> Vec<HolderId> {
        let tree = &self.analysis.holders;
        let mut seen = BitSet::new(self.analysis.graph.blocks());
        seen.insert(block);
        let (mut open, mut holders) = (vec![block], Vec::new());
        while let Some(node) = open.pop() {
            for &before in self.predecessors.row(node) {
                match tree.holder(before) {
                    Some(holder) => holders.push(holder),
                    None if seen.insert(before) => open.push(before),
                    None => {}
                }
            }
        }
        holders.sort_unstable();
        holders.dedup();
        holders.retain(|holder| *holder != HolderTree::PROGRAM);
        holders
    }
}

fn node(analysis: &HeapAnalysis, number: u32) -> Node {
    analysis.holders.holder(number).map_or(Node::Block(number), Node::Holder)
}

/// Breadth first from the holders, so that holders above each other do not count.
fn shortest_paths(analysis: &HeapAnalysis, flow: &FlowGraph<'_>) -> Numbers {
    let mut before = Numbers::new(flow.nodes(), NONE);
    let mut queue: VecDeque<u32> =
        analysis.holders.ids().map(|id| analysis.holders.node(id)).collect();
    for holder in &queue {
        before.set(*holder, *holder);
    }
    while let Some(node) = queue.pop_front() {
        let (first, second) = flow.successors(node);
        for &target in first.iter().chain(second) {
            if before.get(target) == NONE {
                before.set(target, node);
                queue.push_back(target);
            }
        }
    }
    before
}

/// No rows, hence no holders, if there are too many pointers; the dominators have failed before.
fn predecessors(analysis: &HeapAnalysis, flow: &FlowGraph<'_>) -> Rows {
    let is_alive = |number: u32| analysis.dominators.position(node(analysis, number)).is_some();
    let rows = Rows::new(flow.nodes(), |pair| {
        for number in (0..flow.nodes() as u32).filter(|number| is_alive(*number)) {
            let (first, second) = flow.successors(number);
            first.iter().chain(second).for_each(|target| pair(*target, number));
        }
    });
    rows.unwrap_or_default()
}
