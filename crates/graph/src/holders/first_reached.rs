//! Shares the reachable blocks out among the holders.

use std::collections::HashSet;

use super::tree::{HolderId, HolderName, HolderTree};
use crate::graph::{HeapGraph, Marking, OutsideBytes, Reach, Watchers};

/// The most pointers of a block that are compared with a module's variables: modules have fewer values.
const MOST_FIELDS: usize = 1 << 12;

/// What a holder reaches and no holder before it does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// In the heap.
    pub reach: Reach,
    /// Outside the heap.
    pub outside: OutsideBytes,
}

impl Share {
    /// The sum.
    pub fn plus(self, other: Share) -> Share {
        Share { reach: self.reach.plus(other.reach), outside: self.outside.plus(other.outside) }
    }
}

impl HolderTree {
    /// What each holder reaches and no holder before it does, in the order of the tree. In a module, variables that
    /// lead to others of the module, as modules inside it do, come last. These add up to
    /// all that is reachable, and a holder has the sum of those below it.
    pub fn shares(&self, graph: &HeapGraph) -> Vec<Share> {
        let watchers = Watchers::new(graph);
        let mut marking = Marking::new(graph, &watchers);
        let mut shares = vec![Share::default(); self.len()];
        for holder in self.marking_order(graph) {
            let before = marking.outside();
            let reach = marking.mark(self.root_blocks(holder));
            if let Some(share) = shares.get_mut(holder as usize) {
                *share = Share { reach, outside: marking.outside().minus(before) };
            }
        }
        // A parent comes before its children.
        for holder in self.ids().skip(1).collect::<Vec<_>>().into_iter().rev() {
            let own = shares.get(holder as usize).copied().unwrap_or_default();
            if let Some(share) = shares.get_mut(self.parent(holder) as usize) {
                *share = share.plus(own);
            }
        }
        shares
    }

    /// All holders; those of a module's variables last whose blocks point to those of other variables.
    fn marking_order(&self, graph: &HeapGraph) -> Vec<HolderId> {
        let mut order: Vec<HolderId> = self.ids().collect();
        let of_variables = |one: &HolderId, next: &HolderId| {
            self.parent(*one) == self.parent(*next) && self.module(*one) == self.module(*next)
        };
        for run in order.chunk_by_mut(of_variables) {
            if run.len() > 1 && run.first().is_some_and(|first| self.module(*first).is_some()) {
                let roots = run.iter().flat_map(|variable| self.root_blocks(*variable));
                let roots: HashSet<u32> = roots.collect();
                run.sort_by_key(|variable| {
                    self.root_blocks(*variable).any(|block| {
                        let targets = graph.targets(block).iter();
                        targets.take(MOST_FIELDS).any(|to| *to != block && roots.contains(to))
                    })
                });
            }
        }
        order
    }

    /// The module of a variable.
    fn module(&self, holder: HolderId) -> Option<u32> {
        match self.name(holder) {
            HolderName::Variable { module, .. } => Some(module),
            _ => None,
        }
    }

    /// Everything that a holder reaches.
    pub fn reachable(&self, graph: &HeapGraph, holder: HolderId) -> Reach {
        let watchers = Watchers::new(graph);
        Marking::new(graph, &watchers).mark(self.all_root_blocks(holder).into_iter())
    }

    /// What two holders both reach.
    pub fn shared(&self, graph: &HeapGraph, one: HolderId, other: HolderId) -> Reach {
        let watchers = Watchers::new(graph);
        let mark = |holder| {
            let mut marking = Marking::new(graph, &watchers);
            marking.mark(self.all_root_blocks(holder).into_iter());
            marking
        };
        let (one, other) = (mark(one), mark(other));
        let blocks = 0..graph.blocks() as u32;
        let both = blocks.filter(|block| one.is_marked(*block) && other.is_marked(*block));
        both.fold(Reach::default(), |sum, block| sum.plus(Reach::of(graph, block)))
    }

    /// The blocks that the roots of a holder and of those below it point to.
    pub(crate) fn all_root_blocks(&self, holder: HolderId) -> Vec<u32> {
        let mut blocks = Vec::new();
        let mut below = vec![holder];
        while let Some(holder) = below.pop() {
            blocks.extend(self.root_blocks(holder));
            below.extend(self.successors(holder).iter().filter_map(|node| self.holder(*node)));
        }
        blocks
    }
}
