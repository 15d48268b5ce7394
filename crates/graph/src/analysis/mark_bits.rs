//! Up to 32 markings at once, a bit of each block for each of them.
//!
//! A table asks for what each of its rows reaches. Marking for one row after the other
//! would visit what they share again for each. Here a block passes all its bits on together: in sweeps
//! over the depth-first order, in which most pointers lead forward, and then, for the few blocks that
//! gained bits after their turn, from a stack. A block is visited at most once for each
//! bit it gains, and usually once or twice in all.

use super::heap_analysis::HeapAnalysis;
use crate::dominators::{FlowGraph, Node};
use crate::graph::{BitSet, Reach, Watchers};
use crate::kinds::KindId;

/// How many rows are marked for at once.
const SETS_AT_ONCE: usize = u32::BITS as usize;

/// Sweeps over all blocks before the stack takes over.
const SWEEPS: usize = 4;

impl HeapAnalysis {
    /// What is reachable from each of these sets of blocks, with the blocks. Only what is alive counts.
    pub(super) fn reachable_from_each(&self, sets: &[Vec<u32>]) -> Vec<Reach> {
        let spread = Reaching { analysis: self, watchers: Watchers::new(&self.graph) };
        let mut reaches = Vec::with_capacity(sets.len());
        for sets in sets.chunks(SETS_AT_ONCE) {
            let mut mark_bits = MarkBits::new(self);
            for (bit, set) in sets.iter().enumerate() {
                set.iter().for_each(|block| _ = mark_bits.give(*block, 1 << bit));
            }
            mark_bits.spread(&spread);
            reaches.extend(mark_bits.reaches().into_iter().take(sets.len()));
        }
        reaches
    }

    /// The bytes that would be freed without the blocks of each of these kinds: those that the program does
    /// not reach without passing one of them.
    pub fn freed_without(&self, kinds: &[KindId]) -> Vec<u64> {
        let mut freed = Vec::with_capacity(kinds.len());
        for kinds in kinds.chunks(SETS_AT_ONCE) {
            let spread = Without::new(self, kinds);
            let mut mark_bits = MarkBits::new(self);
            for (_, block) in self.graph.roots() {
                mark_bits.give(block, u32::MAX);
            }
            mark_bits.spread(&spread);
            // The blocks themselves were reached, and would be gone.
            for (block, bits) in (0..).zip(&mut mark_bits.marks) {
                *bits &= !spread.taken(block);
            }
            let kept = mark_bits.reaches().into_iter().take(kinds.len());
            freed.extend(kept.map(|kept| self.reachable_bytes().saturating_sub(kept.bytes)));
        }
        freed
    }
}

/// Along which pointers bits spread.
trait Spread {
    /// Those of its bits that a block passes on.
    fn passed(&self, block: u32, bits: u32) -> u32;

    /// The blocks that get them, in two parts.
    fn successors(&self, block: u32) -> (&[u32], &[u32]);

    /// Blocks that get bits because of this one and others together.
    fn together(&self, marks: &[u32], block: u32) -> Vec<(u32, u32)>;
}

/// As a collector marks: the data of an ephemeron gets a bit once the ephemeron and all of its keys
/// have it.
struct Reaching<'a> {
    analysis: &'a HeapAnalysis,
    watchers: Watchers,
}

impl Spread for Reaching<'_> {
    fn passed(&self, _: u32, bits: u32) -> u32 {
        bits
    }

    fn successors(&self, block: u32) -> (&[u32], &[u32]) {
        (self.analysis.graph.targets(block), &[])
    }

    fn together(&self, marks: &[u32], block: u32) -> Vec<(u32, u32)> {
        if !self.watchers.is_watched(block) {
            return Vec::new();
        }
        let bits_of = |block: u32| marks.get(block as usize).copied().unwrap_or_default();
        let data_of = |ephemeron| {
            let (block, data, keys) = self.analysis.graph.ephemeron(ephemeron)?;
            let all = keys.iter().fold(bits_of(block), |bits, key| bits & bits_of(*key));
            Some((data?, all))
        };
        self.watchers.of(block).filter_map(data_of).collect()
    }
}

/// What stays alive without the blocks of a kind, a kind for each bit: these blocks keep their bit to
/// themselves.
struct Without<'a> {
    analysis: &'a HeapAnalysis,
    flow: FlowGraph<'a>,
    /// By kind: the bits that its blocks do not pass on.
    bits: Vec<u32>,
}

impl<'a> Without<'a> {
    fn new(analysis: &'a HeapAnalysis, kinds: &[KindId]) -> Self {
        let mut bits = vec![0; analysis.kinds.len()];
        for (bit, kind) in kinds.iter().enumerate() {
            if let Some(place) = bits.get_mut(*kind as usize) {
                *place |= 1 << bit;
            }
        }
        Without { analysis, flow: FlowGraph::new(&analysis.graph, &analysis.holders), bits }
    }

    /// The bits that a block does not pass on.
    fn taken(&self, block: u32) -> u32 {
        self.bits.get(self.analysis.kind(block) as usize).copied().unwrap_or_default()
    }
}

impl Spread for Without<'_> {
    fn passed(&self, block: u32, bits: u32) -> u32 {
        bits & !self.taken(block)
    }

    fn successors(&self, block: u32) -> (&[u32], &[u32]) {
        self.flow.successors(block)
    }

    fn together(&self, _: &[u32], _: u32) -> Vec<(u32, u32)> {
        Vec::new()
    }
}

/// Bits that spread through what is alive.
struct MarkBits<'a> {
    analysis: &'a HeapAnalysis,
    /// The bits of each block.
    marks: Vec<u32>,
    /// Blocks that have gained bits and not passed them on.
    open: BitSet,
    /// How many these are.
    open_count: usize,
}

impl<'a> MarkBits<'a> {
    fn new(analysis: &'a HeapAnalysis) -> Self {
        let blocks = analysis.graph.blocks();
        MarkBits { analysis, marks: vec![0; blocks], open: BitSet::new(blocks), open_count: 0 }
    }

    /// Gives bits to a block; returns whether it has become one that has to pass some on.
    fn give(&mut self, block: u32, bits: u32) -> bool {
        let Some(own) = self.marks.get_mut(block as usize) else { return false };
        if bits & !*own == 0 {
            return false;
        }
        *own |= bits;
        let is_new = self.open.insert(block);
        self.open_count += usize::from(is_new);
        is_new
    }

    /// Passes the bits of an open block on, and calls `opened` with the blocks that are open now.
    fn visit(&mut self, spread: &impl Spread, block: u32, mut opened: impl FnMut(u32)) {
        self.open.remove(block);
        self.open_count -= 1;
        let bits = self.marks.get(block as usize).copied().unwrap_or_default();
        let bits = spread.passed(block, bits);
        let (first, second) = spread.successors(block);
        let further = spread.together(&self.marks, block);
        let gifts = first.iter().chain(second).map(|target| (*target, bits)).chain(further);
        for (target, bits) in gifts {
            if self.give(target, bits) {
                opened(target);
            }
        }
    }

    /// Passes all bits on until nothing gains any.
    fn spread(&mut self, spread: &impl Spread) {
        for _ in 0..SWEEPS {
            for position in 0..self.analysis.dominators.len() as u32 {
                if self.open_count == 0 {
                    return;
                }
                if let Node::Block(block) = self.analysis.dominators.node(position)
                    && self.open.contains(block)
                {
                    self.visit(spread, block, |_| ());
                }
            }
        }
        let blocks = 0..self.analysis.graph.blocks() as u32;
        let mut stack: Vec<u32> = blocks.filter(|block| self.open.contains(*block)).collect();
        while let Some(block) = stack.pop() {
            self.visit(spread, block, |opened| stack.push(opened));
        }
    }

    /// What has each bit.
    fn reaches(&self) -> Vec<Reach> {
        let mut reaches = vec![Reach::default(); SETS_AT_ONCE];
        for (block, &marks) in (0..).zip(&self.marks) {
            let mut left = marks;
            while left != 0 {
                if let Some(reach) = reaches.get_mut(left.trailing_zeros() as usize) {
                    *reach = reach.plus(Reach::of(&self.analysis.graph, block));
                }
                left &= left - 1;
            }
        }
        reaches
    }
}
