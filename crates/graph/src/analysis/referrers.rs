//! What points to blocks of a kind.

use std::collections::BTreeMap;

use super::heap_analysis::HeapAnalysis;
use crate::dominators::{FlowGraph, Node};
use crate::holders::HolderId;
use crate::kinds::KindId;
use crate::retained::RetainedKind;

/// Pointers of one origin to blocks of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// Blocks of a kind, or a holder.
    pub from: RetainedKind,
    /// How many pointers.
    pub pointers: u64,
}

impl HeapAnalysis {
    /// What points to the blocks of a kind, most pointers first. Only what is alive counts.
    pub fn referrers(&self, kind: KindId) -> Vec<Referrer> {
        let flow = FlowGraph::new(&self.graph, &self.holders);
        let is_target =
            |node: u32| (node as usize) < self.graph.blocks() && self.kind(node) == kind;
        let mut counts: BTreeMap<RetainedKind, u64> = BTreeMap::new();
        for position in 0..self.dominators.len() as u32 {
            let (node, from) = match self.dominators.node(position) {
                Node::Block(block) => (block, RetainedKind::Blocks(self.kind(block))),
                Node::Holder(holder) => (self.holders.node(holder), RetainedKind::Holder(holder)),
            };
            let (first, second) = flow.successors(node);
            let pointers = first.iter().chain(second).filter(|target| is_target(**target)).count();
            if pointers > 0 {
                *counts.entry(from).or_default() += pointers as u64;
            }
        }
        let mut referrers: Vec<Referrer> =
            counts.into_iter().map(|(from, pointers)| Referrer { from, pointers }).collect();
        referrers.sort_by_key(|referrer| std::cmp::Reverse(referrer.pointers));
        referrers
    }

    /// The holder of a node of the joined tree: the last one above it.
    pub fn holder_of(&self, node: crate::retained::RetainedId) -> Option<HolderId> {
        let kinds = self.retained.path(node).into_iter().rev();
        kinds.filter_map(|id| self.retained.node(id)).find_map(|node| match node.kind {
            RetainedKind::Holder(holder) => Some(holder),
            _ => None,
        })
    }
}
