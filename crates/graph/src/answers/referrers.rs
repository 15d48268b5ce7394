//! What points to blocks of a label.

use std::collections::BTreeMap;

use super::analysis::HeapAnalysis;
use crate::dominators::{FlowGraph, Node};
use crate::holders::HolderId;
use crate::labels::LabelId;
use crate::retained::RetainedLabel;

/// Pointers of one origin to blocks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Referrer {
    /// Blocks of a label, or a holder.
    pub from: RetainedLabel,
    /// How many pointers.
    pub pointers: u64,
}

impl HeapAnalysis {
    /// What points to the blocks of a label, most pointers first. Only what is alive counts.
    pub fn referrers(&self, label: LabelId) -> Vec<Referrer> {
        let flow = FlowGraph::new(&self.graph, &self.holders);
        let is_target =
            |node: u32| (node as usize) < self.graph.blocks() && self.label(node) == label;
        let mut counts: BTreeMap<RetainedLabel, u64> = BTreeMap::new();
        for position in 0..self.dominators.len() as u32 {
            let (node, from) = match self.dominators.node(position) {
                Node::Block(block) => (block, RetainedLabel::Blocks(self.label(block))),
                Node::Holder(holder) => (self.holders.node(holder), RetainedLabel::Holder(holder)),
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
        let labels = self.retained.path(node).into_iter().rev();
        labels.filter_map(|id| self.retained.node(id)).find_map(|node| match node.label {
            RetainedLabel::Holder(holder) => Some(holder),
            _ => None,
        })
    }
}
