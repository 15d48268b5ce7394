//! Where memory piles up.
//!
//! An accumulation is a node of the joined tree with many blocks below one with few: the elements of a table,
//! a list, a tree or a cache. The highest on a path is reported: what is below it comes
//! with it.

use super::chains::EphemeronChain;
use super::cycles::FinaliserCycle;
use super::heap_analysis::HeapAnalysis;
use crate::holders::HolderId;
use crate::retained::{RetainedId, RetainedKind, RetainedNode};

/// How the blocks of an accumulation hang together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrangement {
    /// Linked to each other: a list, a tree, a queue.
    Linked,
    /// Held side by side by the blocks above: an array or a record.
    SideBySide,
    /// Many short chains: a hash table.
    Buckets,
}

/// Many like blocks below one holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accumulation {
    /// The blocks.
    pub node: RetainedId,
    /// The holder above them; `None` if several share them.
    pub holder: Option<HolderId>,
    /// How many blocks.
    pub elements: u64,
    /// How they hang together.
    pub arrangement: Arrangement,
    /// The bytes that they and all below retain.
    pub retained: u64,
    /// The same outside the heap.
    pub outside: u64,
}

/// Much memory outside the heap, held by few bytes in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutsideMemory {
    /// The blocks that hold it.
    pub node: RetainedId,
    /// The holder above them.
    pub holder: Option<HolderId>,
    /// How many blocks.
    pub blocks: u64,
    /// The bytes outside the heap.
    pub outside: u64,
    /// The bytes in the heap.
    pub bytes: u64,
}

/// What deserves a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspects {
    /// The biggest first.
    pub accumulations: Vec<Accumulation>,
    /// Values that are never collected.
    pub cycles: Vec<FinaliserCycle>,
    /// Ephemerons that hang on each other.
    pub chain: Option<EphemeronChain>,
    /// Memory outside the heap.
    pub outside: Vec<OutsideMemory>,
}

impl Suspects {
    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.accumulations.is_empty()
            && self.cycles.is_empty()
            && self.chain.is_none()
            && self.outside.is_empty()
    }
}

/// Fewer blocks are no accumulation.
const LEAST_ELEMENTS: u64 = 1000;
/// An accumulation has this many times the blocks of what is above it.
const LEAST_RATIO: u64 = 50;
/// Less memory is nothing to look for.
const LEAST_BYTES: u64 = 1 << 20;
/// The least part of all memory: one in so many.
const LEAST_PART: u64 = 10;
/// A shorter chain of ephemerons costs the collector little.
const LEAST_CHAIN: u64 = 100;

impl HeapAnalysis {
    /// What deserves a look.
    pub fn suspects(&self) -> Suspects {
        Suspects {
            accumulations: self.accumulations(),
            cycles: self.finaliser_cycles(),
            chain: self.ephemeron_chain(LEAST_CHAIN),
            outside: self.outside_memory(),
        }
    }

    /// The most bytes that are no suspect.
    fn threshold(&self, all: u64) -> u64 {
        (all / LEAST_PART).max(LEAST_BYTES)
    }

    fn accumulations(&self) -> Vec<Accumulation> {
        let threshold = self.threshold(self.reachable_bytes());
        let nodes = self.retained.nodes();
        let mut below = vec![false; nodes.len()];
        let mut found = Vec::new();
        for (id, node) in (0..).zip(nodes) {
            let is_below = below.get(node.parent as usize).copied().unwrap_or(false);
            let is_found = !is_below && node.retained >= threshold && self.piles_up(node);
            if let Some(place) = below.get_mut(id as usize) {
                *place = is_below || is_found;
            }
            if is_found {
                found.push(self.accumulation(id, node));
            }
        }
        found.sort_by_key(|accumulation| std::cmp::Reverse(accumulation.retained));
        found
    }

    fn piles_up(&self, node: &RetainedNode) -> bool {
        let above = self.retained.node(node.parent).map_or(0, |above| above.blocks);
        matches!(node.kind, RetainedKind::Blocks(_))
            && node.blocks >= LEAST_ELEMENTS
            && node.blocks / LEAST_RATIO >= above
    }

    fn accumulation(&self, id: RetainedId, node: &RetainedNode) -> Accumulation {
        let length = node.blocks / node.heads.max(1);
        let arrangement = if node.heads == node.blocks {
            Arrangement::SideBySide
        } else if length >= LEAST_RATIO || node.heads < 8 {
            Arrangement::Linked
        } else {
            Arrangement::Buckets
        };
        Accumulation {
            node: id,
            holder: self.holder_of(id),
            elements: node.blocks,
            arrangement,
            retained: node.retained,
            outside: node.outside.allocated,
        }
    }

    /// The lowest nodes with much memory outside the heap.
    fn outside_memory(&self) -> Vec<OutsideMemory> {
        let nodes = self.retained.nodes();
        let total = nodes.first().map_or(0, |program| program.outside.allocated);
        let threshold = self.threshold(total.saturating_add(self.reachable_bytes()));
        let mut has_below = vec![false; nodes.len()];
        let mut found = Vec::new();
        for (id, node) in (0..nodes.len() as RetainedId).zip(nodes).rev() {
            if node.outside.allocated < threshold {
                continue;
            }
            let is_lowest = !has_below.get(id as usize).copied().unwrap_or(false);
            if let Some(place) = has_below.get_mut(node.parent as usize) {
                *place = true;
            }
            if is_lowest && matches!(node.kind, RetainedKind::Blocks(_)) {
                let (blocks, outside, bytes) = (node.blocks, node.outside.allocated, node.bytes);
                let holder = self.holder_of(id);
                found.push(OutsideMemory { node: id, holder, blocks, outside, bytes });
            }
        }
        found.sort_by_key(|memory| std::cmp::Reverse(memory.outside));
        found
    }
}
