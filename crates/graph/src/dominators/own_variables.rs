//! A module and its variables are one holder.
//!
//! A variable of a module inside a module is in the static data twice: as a field of its own, and in the block of
//! the inner module. So is what two names stand for. All paths to such a block pass the module, and no single
//! variable, and by the rule no variable would retain it. Here the first variable of the module that
//! points to the block itself is its dominator.

use super::numbers::Numbers;
use crate::holders::{HolderName, HolderTree};

/// The numbers of a dominator tree, by position.
pub(super) struct Positions {
    pub(super) node: Numbers,
    pub(super) dominator: Numbers,
    /// From a node to its position.
    pub(super) position: Numbers,
}

impl Positions {
    /// Gives blocks that only their module dominates to the variable that points to them. Returns these blocks, ascending.
    pub(super) fn give_to_variables(&mut self, holders: &HolderTree, blocks: u32) -> Vec<u32> {
        let moves = self.moves(holders);
        let is_before = |&(variable, block): &(u32, u32)| {
            self.position.get(variable) < self.position.get(block)
        };
        if !moves.iter().all(is_before) {
            self.put_holders_first(blocks, holders.len());
        }
        for &(variable, block) in &moves {
            let (variable, block) = (self.position.get(variable), self.position.get(block));
            self.dominator.set(block, variable);
        }
        moves.into_iter().map(|(_, block)| block).collect()
    }

    /// Variables and blocks, as nodes; each block once, ascending.
    fn moves(&self, holders: &HolderTree) -> Vec<(u32, u32)> {
        let mut moves = Vec::new();
        let is_variable = |id: &u32| matches!(holders.name(*id), HolderName::Variable { .. });
        for variable in holders.ids().filter(is_variable) {
            let module = self.position.get(holders.node(holders.parent(variable)));
            for block in holders.root_blocks(variable) {
                if self.dominator.get(self.position.get(block)) == module {
                    moves.push((block, holders.node(variable)));
                }
            }
        }
        // The first variable comes first.
        moves.sort_unstable();
        moves.dedup_by_key(|pair| pair.0);
        moves.into_iter().map(|(block, variable)| (variable, block)).collect()
    }

    /// Numbers holders before blocks, each in their order, so that a dominator still has a lower position.
    fn put_holders_first(&mut self, blocks: u32, holders: usize) {
        let count = self.node.len();
        let (mut next_holder, mut next_block) = (0, holders as u32);
        let mut renumbered = Numbers::new(count, 0);
        for old in 0..count as u32 {
            let next =
                if self.node.get(old) >= blocks { &mut next_holder } else { &mut next_block };
            renumbered.set(old, *next);
            *next += 1;
        }
        let (mut node, mut dominator) = (Numbers::new(count, 0), Numbers::new(count, 0));
        for old in 0..count as u32 {
            let new = renumbered.get(old);
            node.set(new, self.node.get(old));
            dominator.set(new, renumbered.get(self.dominator.get(old)));
            self.position.set(self.node.get(old), new);
        }
        self.node = node;
        self.dominator = dominator;
    }
}
