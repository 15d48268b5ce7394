//! How the program reaches a block.

use super::analysis::HeapAnalysis;
use crate::dominators::{FlowGraph, NONE, Node, Numbers, Rows};
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

impl HeapAnalysis {
    /// What holds a block. `None` if nothing does.
    pub fn held_by(&self, block: u32) -> Option<HeldBy> {
        let position = self.dominators.position(Node::Block(block))?;
        let flow = FlowGraph::new(&self.graph, &self.holders);
        Some(HeldBy {
            shortest: self.shortest(&flow, block),
            dominators: self.dominator_path(position),
            holders: self.all_holders(&flow, block),
        })
    }

    fn dominator_path(&self, position: u32) -> Vec<Node> {
        let mut path = vec![self.dominators.node(position)];
        let mut at = position;
        while at != 0 {
            at = self.dominators.dominator(at);
            path.push(self.dominators.node(at));
        }
        path.pop();
        path.reverse();
        path
    }

    fn node(&self, number: u32) -> Node {
        self.holders.holder(number).map_or(Node::Block(number), Node::Holder)
    }

    /// Breadth first from the holders, so that holders above each other do not count.
    fn shortest(&self, flow: &FlowGraph<'_>, block: u32) -> Vec<Node> {
        let mut from = Numbers::new(flow.nodes(), NONE);
        let mut queue: Vec<u32> = self.holders.ids().map(|id| self.holders.node(id)).collect();
        for holder in &queue {
            from.set(*holder, *holder);
        }
        let mut next = 0;
        while let Some(&node) = queue.get(next) {
            next += 1;
            let (first, second) = flow.successors(node);
            for &target in first.iter().chain(second) {
                if from.get(target) == NONE {
                    from.set(target, node);
                    queue.push(target);
                }
            }
            if from.get(block) != NONE {
                break;
            }
        }
        let mut path = vec![self.node(block)];
        let mut at = block;
        while from.get(at) != at && from.get(at) != NONE {
            at = from.get(at);
            path.push(self.node(at));
        }
        path.reverse();
        path
    }

    /// Backwards from the block.
    fn all_holders(&self, flow: &FlowGraph<'_>, block: u32) -> Vec<HolderId> {
        let nodes = flow.nodes();
        let alive = |node: u32| self.dominators.position(self.node(node)).is_some();
        let rows = Rows::new(nodes, |pair| {
            for node in (0..nodes as u32).filter(|node| alive(*node)) {
                let (first, second) = flow.successors(node);
                first.iter().chain(second).for_each(|target| pair(*target, node));
            }
        });
        let Some(predecessors) = rows else { return Vec::new() };
        let mut seen = crate::graph::BitSet::new(nodes);
        seen.insert(block);
        let (mut open, mut holders) = (vec![block], Vec::new());
        while let Some(node) = open.pop() {
            for &before in predecessors.row(node) {
                match self.holders.holder(before) {
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
