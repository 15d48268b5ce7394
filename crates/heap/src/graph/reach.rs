//! What is reachable from which roots.
//!
//! Marking as a collector does it: from the roots along the pointers. The data of an ephemeron is
//! marked once the ephemeron and all of its keys are. Each ephemeron counts what it still waits for, so
//! marking takes time in proportion to blocks, pointers and keys, however
//! ephemerons depend on each other. What finalisers hold are roots of their own kind;
//! the values of finalisers that run last are not held.

use super::heap_graph::{EphemeronNode, HeapGraph};
use crate::format::RootKind;

/// Blocks and their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// How many blocks.
    pub blocks: u64,
    /// Their words, without headers.
    pub words: u64,
}

/// What the roots of one kind reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KindReach {
    /// The kind.
    pub kind: RootKind,
    /// How many roots there are.
    pub roots: u64,
    /// What they reach.
    pub reachable: Reach,
    /// What they reach and the kinds before, in the order of [`RootKind::ALL`], do not. These add up to all that is
    /// reachable.
    pub first_reached: Reach,
}

/// What is reachable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reachability {
    /// Everything in the snapshot.
    pub all: Reach,
    /// From any root. The rest is garbage that has not been collected yet.
    pub reachable: Reach,
    /// By kind of root; kinds without roots are left out.
    pub kinds: Vec<KindReach>,
}

impl HeapGraph {
    /// Finds what is reachable.
    pub fn reachable(&self) -> Reachability {
        let watchers = Watchers::new(self);
        let mut marking = Marking::new(self, &watchers);
        let mut kinds = Vec::new();
        for kind in RootKind::ALL {
            let of_kind =
                || self.roots.iter().filter(move |root| root.0 == kind).map(|root| root.1);
            let roots = of_kind().count() as u64;
            if roots == 0 {
                continue;
            }
            let first_reached = marking.mark(of_kind());
            let reachable = Marking::new(self, &watchers).mark(of_kind());
            kinds.push(KindReach { kind, roots, reachable, first_reached });
        }
        let blocks = 0..self.blocks() as u32;
        let words = blocks.clone().map(|block| self.words(block)).fold(0, u64::saturating_add);
        let all = Reach { blocks: u64::from(blocks.end), words };
        Reachability { all, reachable: marking.reach, kinds }
    }
}

/// Which ephemerons wait for a block to be marked.
struct Watchers {
    /// Block and ephemeron, ascending, each pair once.
    pairs: Vec<(u32, u32)>,
    /// For how many blocks each ephemeron waits.
    counts: Vec<u32>,
    /// Whether a block is waited for, a bit each.
    watched: BitSet,
}

impl Watchers {
    fn new(graph: &HeapGraph) -> Watchers {
        let mut pairs = Vec::new();
        for (index, ephemeron) in (0..).zip(&graph.ephemerons) {
            let &EphemeronNode { block, data, keys_from, keys_to } = ephemeron;
            if data.is_none() {
                continue;
            }
            pairs.push((block, index));
            let keys = graph.ephemeron_keys.get(keys_from..keys_to).unwrap_or_default();
            pairs.extend(keys.iter().map(|key| (*key, index)));
        }
        pairs.sort_unstable();
        pairs.dedup();
        let mut counts = vec![0; graph.ephemerons.len()];
        let mut watched = BitSet::new(graph.blocks());
        for &(block, ephemeron) in &pairs {
            watched.insert(block);
            if let Some(count) = counts.get_mut(ephemeron as usize) {
                *count += 1;
            }
        }
        Watchers { pairs, counts, watched }
    }

    /// The ephemerons that wait for a block.
    fn of(&self, block: u32) -> impl Iterator<Item = u32> {
        let from = self.pairs.partition_point(|pair| pair.0 < block);
        let pairs = self.pairs.get(from..).unwrap_or_default();
        pairs.iter().take_while(move |pair| pair.0 == block).map(|pair| pair.1)
    }
}

struct Marking<'a> {
    graph: &'a HeapGraph,
    watchers: &'a Watchers,
    /// For how many blocks each ephemeron still waits.
    waiting: Vec<u32>,
    marked: BitSet,
    /// Marked blocks whose pointers have not been followed.
    stack: Vec<u32>,
    reach: Reach,
}

impl<'a> Marking<'a> {
    fn new(graph: &'a HeapGraph, watchers: &'a Watchers) -> Marking<'a> {
        Marking {
            graph,
            watchers,
            waiting: watchers.counts.clone(),
            marked: BitSet::new(graph.blocks()),
            stack: Vec::new(),
            reach: Reach::default(),
        }
    }

    /// Marks what is reachable from these roots; returns what was not marked before.
    fn mark(&mut self, roots: impl Iterator<Item = u32>) -> Reach {
        let before = self.reach;
        for root in roots {
            self.visit(root);
            while let Some(block) = self.stack.pop() {
                for &target in self.graph.targets(block) {
                    self.visit(target);
                }
            }
        }
        Reach { blocks: self.reach.blocks - before.blocks, words: self.reach.words - before.words }
    }

    fn visit(&mut self, block: u32) {
        if !self.marked.insert(block) {
            return;
        }
        self.reach.blocks += 1;
        self.reach.words = self.reach.words.saturating_add(self.graph.words(block));
        self.stack.push(block);
        if !self.watchers.watched.contains(block) {
            return;
        }
        // What becomes alive through an ephemeron; it may complete further ones.
        let mut alive = vec![block];
        while let Some(block) = alive.pop() {
            for ephemeron in self.watchers.of(block) {
                let Some(waiting) = self.waiting.get_mut(ephemeron as usize) else { continue };
                *waiting -= 1;
                let data = self.graph.ephemerons.get(ephemeron as usize).and_then(|node| node.data);
                if *waiting == 0
                    && let Some(data) = data
                    && self.marked.insert(data)
                {
                    self.reach.blocks += 1;
                    self.reach.words = self.reach.words.saturating_add(self.graph.words(data));
                    self.stack.push(data);
                    alive.push(data);
                }
            }
        }
    }
}

/// A set of blocks.
#[derive(Clone, Debug)]
struct BitSet {
    bits: Vec<u64>,
}

impl BitSet {
    fn new(blocks: usize) -> BitSet {
        BitSet { bits: vec![0; blocks.div_ceil(64)] }
    }

    fn contains(&self, block: u32) -> bool {
        let bits = self.bits.get(block as usize / 64).copied().unwrap_or_default();
        bits >> (block % 64) & 1 == 1
    }

    /// Returns whether it is new.
    fn insert(&mut self, block: u32) -> bool {
        let Some(bits) = self.bits.get_mut(block as usize / 64) else { return false };
        let bit = 1 << (block % 64);
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }
}
