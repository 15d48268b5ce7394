//! Ephemerons whose keys are alive only through the data of others.
//!
//! The collector looks at the ephemerons again for each link of such a chain. A block that is
//! the data of one ephemeron, or that this data retains, is the key of the next.

use std::collections::HashMap;

use super::heap_analysis::HeapAnalysis;
use crate::dominators::Node;

/// A chain of ephemerons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EphemeronChain {
    /// How many there are.
    pub length: u64,
    /// The block of the first.
    pub first: u32,
    /// The block of the last.
    pub last: u32,
    /// The bytes that the data of the first retains.
    pub retained: u64,
}

/// How far above a key its ephemeron's data is looked for.
const FARTHEST: usize = 16;

impl HeapAnalysis {
    /// The longest chain, if there is one of at least `shortest` ephemerons.
    pub fn ephemeron_chain(&self, shortest: u64) -> Option<EphemeronChain> {
        let alive = |block: u32| self.dominators.position(Node::Block(block)).is_some();
        let nodes: Vec<(u32, u32, &[u32])> = self
            .graph
            .ephemerons()
            .filter_map(|(block, data, keys)| Some((block, data?, keys)))
            .filter(|(block, data, keys)| {
                alive(*block) && alive(*data) && keys.iter().all(|key| alive(*key))
            })
            .collect();
        let mut by_data: HashMap<u32, u32> = HashMap::new();
        for (index, node) in (0..).zip(&nodes) {
            by_data.insert(node.1, index);
        }
        // The ephemeron before each; keys of several are followed to the first that has one.
        let before: Vec<Option<u32>> = nodes
            .iter()
            .enumerate()
            .map(|(index, node)| {
                let held = node.2.iter().find_map(|key| self.holding_data(*key, &by_data));
                held.filter(|before| *before as usize != index)
            })
            .collect();
        let (length, last) = longest(&before)?;
        let mut first = last;
        for _ in 1..length {
            first = before.get(first as usize).copied().flatten()?;
        }
        let (first, last) = (nodes.get(first as usize)?, nodes.get(last as usize)?);
        let position = self.dominators.position(Node::Block(first.1))?;
        let retained = self.dominators.retained(position);
        let chain = EphemeronChain { length, first: first.0, last: last.0, retained };
        (length >= shortest.max(2)).then_some(chain)
    }

    /// The ephemeron whose data is a block, or retains it closely.
    fn holding_data(&self, block: u32, by_data: &HashMap<u32, u32>) -> Option<u32> {
        let mut position = self.dominators.position(Node::Block(block))?;
        for _ in 0..FARTHEST {
            let Node::Block(block) = self.dominators.node(position) else { return None };
            if let Some(ephemeron) = by_data.get(&block) {
                return Some(*ephemeron);
            }
            position = self.dominators.dominator(position);
        }
        None
    }
}

/// The length of the longest chain of predecessors and the one that it ends with. Cycles, which
/// dominance does not have, are cut.
fn longest(before: &[Option<u32>]) -> Option<(u64, u32)> {
    let mut lengths = vec![0u64; before.len()];
    for start in 0..before.len() as u32 {
        let mut path = Vec::new();
        let mut at = Some(start);
        let mut known = 0;
        while let Some(index) = at {
            let Some(length) = lengths.get_mut(index as usize) else { break };
            if *length > 0 {
                known = *length;
                break;
            }
            // Marks it as on the path.
            *length = 1;
            path.push(index);
            at = before.get(index as usize).copied().flatten();
        }
        for index in path.into_iter().rev() {
            known += 1;
            if let Some(length) = lengths.get_mut(index as usize) {
                *length = known;
            }
        }
    }
    let (last, length) = (0..).zip(&lengths).max_by_key(|(_, length)| **length)?;
    Some((*length, last))
}
