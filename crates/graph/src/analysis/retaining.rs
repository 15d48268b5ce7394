//! For each block, the lowest holder that retains it.

use crate::dominators::{DominatorTree, Node};
use crate::holders::{HolderId, HolderTree};

/// The lowest holder above each block in the dominator tree: each block that is alive has exactly one.
pub struct RetainingHolders<'a> {
    dominators: &'a DominatorTree,
    /// By position in the tree.
    holders: Vec<HolderId>,
}

impl<'a> RetainingHolders<'a> {
    /// Goes over the whole tree.
    pub fn new(dominators: &'a DominatorTree) -> RetainingHolders<'a> {
        let mut holders: Vec<HolderId> = Vec::with_capacity(dominators.len());
        for position in 0..dominators.len() as u32 {
            let above = || holders.get(dominators.dominator(position) as usize).copied();
            // A dominator comes first.
            holders.push(match dominators.node(position) {
                Node::Holder(holder) => holder,
                Node::Block(_) => above().unwrap_or(HolderTree::PROGRAM),
            });
        }
        RetainingHolders { dominators, holders }
    }

    /// The holder of a block; `None` if the block is garbage.
    pub fn of(&self, block: u32) -> Option<HolderId> {
        let position = self.dominators.position(Node::Block(block))?;
        self.holders.get(position as usize).copied()
    }
}
