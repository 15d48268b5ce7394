//! Values that are never collected because their own finalisers hold them.
//!
//! `Gc.finalise f v` keeps `f` alive as long as `v` is. If `f` reaches `v`, or a value whose finaliser
//! does, none of them is ever unreachable: the finaliser never runs. With an edge from
//! each value to its function, such values and functions are in one component.

use heaptap_heap::FinaliserKind;

use super::components::components;
use super::heap_analysis::HeapAnalysis;
use crate::dominators::Node;

/// A value and its finaliser, of which neither ever goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FinaliserCycle {
    /// The value's block.
    pub value: u32,
    /// The function's block.
    pub function: u32,
    /// The bytes that the value retains.
    pub retained: u64,
    /// Bytes outside the heap that it retains.
    pub outside: u64,
}

impl HeapAnalysis {
    /// The cycles, those that retain most first.
    pub fn finaliser_cycles(&self) -> Vec<FinaliserCycle> {
        let mut calls: Vec<(u32, u32)> = self
            .graph
            .finalisers()
            .iter()
            .filter(|finaliser| finaliser.kind == FinaliserKind::First)
            .filter_map(|finaliser| Some((finaliser.value?, finaliser.function?)))
            .collect();
        if calls.is_empty() {
            return Vec::new();
        }
        calls.sort_unstable();
        calls.dedup();
        let blocks = self.graph.blocks() as u32;
        let component = components(blocks, |block, index| {
            let targets = self.graph.targets(block);
            let index = index as usize;
            targets.get(index).copied().or_else(|| {
                let from = calls.partition_point(|call| call.0 < block);
                let call = calls.get(from + index.checked_sub(targets.len())?)?;
                (call.0 == block).then_some(call.1)
            })
        });
        let of = |block: u32| component.get(block as usize);
        let mut cycles: Vec<FinaliserCycle> = calls
            .iter()
            .filter(|(value, function)| of(*value) == of(*function))
            .map(|&(value, function)| {
                let position = self.dominators.position(Node::Block(value));
                let retained = position.map_or(0, |position| self.dominators.retained(position));
                let outside = position
                    .map(|position| self.dominators.retained_outside(position).allocated)
                    .unwrap_or_default();
                FinaliserCycle { value, function, retained, outside }
            })
            .collect();
        cycles.sort_by_key(|cycle| std::cmp::Reverse((cycle.retained, cycle.outside)));
        cycles
    }
}
