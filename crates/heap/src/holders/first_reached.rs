//! Shares the reachable blocks out among the holders.

use super::tree::{HolderId, HolderTree};
use crate::graph::{HeapGraph, Marking, Reach, Watchers};

impl HolderTree {
    /// What each holder reaches and no holder before it does, in the order of the tree. These add up to
    /// all that is reachable, and a holder has the sum of those below it.
    pub fn shares(&self, graph: &HeapGraph) -> Vec<Reach> {
        let watchers = Watchers::new(graph);
        let mut marking = Marking::new(graph, &watchers);
        let mut shares = vec![Reach::default(); self.len()];
        for holder in self.ids() {
            let reach = marking.mark(self.root_blocks(holder));
            if let Some(share) = shares.get_mut(holder as usize) {
                *share = reach;
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
