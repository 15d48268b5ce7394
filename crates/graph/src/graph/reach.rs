//! What is reachable from which roots.
//!
//! Marking as a collector does it: from the roots along the pointers. The data of an ephemeron is
//! marked once the ephemeron and all of its keys are. Each ephemeron counts what it still waits for, so
//! marking takes time in proportion to blocks, pointers and keys, however
//! ephemerons depend on each other. What finalisers hold are roots of their own kind;
//! the values of finalisers that run last are not held.

use heaptap_heap::RootKind;

use super::areas::OutsideBytes;
use super::bit_set::BitSet;
use super::heap_graph::{EphemeronNode, HeapGraph};

/// Blocks and their words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// How many blocks.
    pub blocks: u64,
    /// Their words, without headers.
    pub words: u64,
    /// Their bytes, with headers.
    pub bytes: u64,
}

impl Reach {
    /// Of one block.
    pub(crate) fn of(graph: &HeapGraph, block: u32) -> Reach {
        Reach { blocks: 1, words: graph.words(block), bytes: graph.bytes(block) }
    }

    /// The sum.
    pub fn plus(self, other: Reach) -> Reach {
        Reach {
            blocks: self.blocks.saturating_add(other.blocks),
            words: self.words.saturating_add(other.words),
            bytes: self.bytes.saturating_add(other.bytes),
        }
    }

    /// Without a part of it.
    pub fn minus(self, part: Reach) -> Reach {
        Reach {
            blocks: self.blocks.saturating_sub(part.blocks),
            words: self.words.saturating_sub(part.words),
            bytes: self.bytes.saturating_sub(part.bytes),
        }
    }
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
                || self.roots().filter(move |root| root.0.kind() == kind).map(|root| root.1);
            let roots = of_kind().count() as u64;
            if roots == 0 {
                continue;
            }
            let first_reached = marking.mark(of_kind());
            let reachable = Marking::new(self, &watchers).mark(of_kind());
            kinds.push(KindReach { kind, roots, reachable, first_reached });
        }
        let blocks = 0..self.blocks() as u32;
        let all = blocks.fold(Reach::default(), |sum, block| sum.plus(Reach::of(self, block)));
        Reachability { all, reachable: marking.reach, kinds }
    }

    /// Ephemerons and their data, ascending: those whose data is alive through them, because the
    /// ephemeron and all its keys are alive.
    pub fn live_ephemeron_data(&self) -> Vec<(u32, u32)> {
        if self.ephemerons.is_empty() {
            return Vec::new();
        }
        let watchers = Watchers::new(self);
        let mut marking = Marking::new(self, &watchers);
        marking.mark(self.roots().map(|root| root.1));
        marking.ephemeron_edges()
    }
}

/// Which ephemerons wait for a block to be marked.
pub(crate) struct Watchers {
    /// Block and ephemeron, ascending, each pair once.
    pairs: Vec<(u32, u32)>,
    /// For how many blocks each ephemeron waits.
    counts: Vec<u32>,
    /// Whether a block is waited for or keeps memory outside the heap, a bit each.
    watched: BitSet,
}

impl Watchers {
    pub(crate) fn new(graph: &HeapGraph) -> Watchers {
        let mut pairs = Vec::new();
        for (index, ephemeron) in (0..).zip(&graph.ephemerons) {
            let &EphemeronNode { block, data, .. } = ephemeron;
            if data.is_none() {
                continue;
            }
            pairs.push((block, index));
            pairs.extend(graph.keys(ephemeron).iter().map(|key| (*key, index)));
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
        for &(block, _) in graph.kept_areas() {
            watched.insert(block);
        }
        Watchers { pairs, counts, watched }
    }

    /// False if no ephemeron waits for a block, and the block keeps no memory outside the heap.
    pub(crate) fn is_watched(&self, block: u32) -> bool {
        self.watched.contains(block)
    }

    /// The ephemerons that wait for a block.
    pub(crate) fn of(&self, block: u32) -> impl Iterator<Item = u32> {
        let from = self.pairs.partition_point(|pair| pair.0 < block);
        let pairs = self.pairs.get(from..).unwrap_or_default();
        pairs.iter().take_while(move |pair| pair.0 == block).map(|pair| pair.1)
    }
}

/// Blocks that were found to be reachable.
pub(crate) struct Marking<'a> {
    graph: &'a HeapGraph,
    watchers: &'a Watchers,
    /// For how many blocks each ephemeron still waits.
    waiting: Vec<u32>,
    marked: BitSet,
    /// Marked blocks whose pointers have not been followed.
    stack: Vec<u32>,
    reach: Reach,
    /// Areas outside the heap that marked blocks keep.
    areas: BitSet,
    outside: OutsideBytes,
}

impl<'a> Marking<'a> {
    pub(crate) fn new(graph: &'a HeapGraph, watchers: &'a Watchers) -> Marking<'a> {
        Marking {
            graph,
            watchers,
            waiting: watchers.counts.clone(),
            marked: BitSet::new(graph.blocks()),
            stack: Vec::new(),
            reach: Reach::default(),
            areas: BitSet::new(graph.areas().len()),
            outside: OutsideBytes::default(),
        }
    }

    /// What the marked blocks keep outside the heap.
    pub(crate) fn outside(&self) -> OutsideBytes {
        self.outside
    }

    /// Marks what is reachable from these roots; returns what was not marked before.
    pub(crate) fn mark(&mut self, roots: impl Iterator<Item = u32>) -> Reach {
        let before = self.reach;
        for root in roots {
            self.visit(root);
            while let Some(block) = self.stack.pop() {
                for &target in self.graph.targets(block) {
                    self.visit(target);
                }
            }
        }
        self.reach.minus(before)
    }

    pub(crate) fn is_marked(&self, block: u32) -> bool {
        self.marked.contains(block)
    }

    /// The pointers from ephemerons to their data that hold: the ephemeron and all its keys are
    /// marked.
    fn ephemeron_edges(&self) -> Vec<(u32, u32)> {
        let nodes = self.graph.ephemerons.iter().zip(&self.waiting);
        let mut edges: Vec<_> = nodes
            .filter(|(_, waiting)| **waiting == 0)
            .filter_map(|(node, _)| Some((node.block, node.data?)))
            .collect();
        edges.sort_unstable();
        edges
    }

    fn visit(&mut self, block: u32) {
        if !self.marked.insert(block) {
            return;
        }
        self.reach = self.reach.plus(Reach::of(self.graph, block));
        self.stack.push(block);
        if !self.watchers.is_watched(block) {
            return;
        }
        // What becomes alive through an ephemeron; it may complete further ones.
        let mut alive = vec![block];
        while let Some(block) = alive.pop() {
            for area in self.graph.areas_of(block) {
                if self.areas.insert(area) {
                    self.outside = self.outside.plus(self.graph.area_bytes(area));
                }
            }
            for ephemeron in self.watchers.of(block) {
                let Some(waiting) = self.waiting.get_mut(ephemeron as usize) else { continue };
                *waiting -= 1;
                let data = self.graph.ephemerons.get(ephemeron as usize).and_then(|node| node.data);
                if *waiting == 0
                    && let Some(data) = data
                    && self.marked.insert(data)
                {
                    self.reach = self.reach.plus(Reach::of(self.graph, data));
                    self.stack.push(data);
                    alive.push(data);
                }
            }
        }
    }
}
