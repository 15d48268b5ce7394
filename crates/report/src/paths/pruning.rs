//! How a tree that has reached its bound loses its lightest nodes.

use hashbrown::HashTable;

use super::{LIGHT, NONE, NodeLinks, Paths, ROOT, hash_of};

/// The new numbers of all paths, after the lightest were dropped.
#[derive(Debug)]
pub struct PathMoves {
    /// For each old number the new one.
    pub(crate) to: Vec<u32>,
    /// How many paths there are now.
    pub(crate) count: usize,
}

/// The sizes at which a tree is pruned.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) nodes: usize,
    pub(crate) paths: usize,
}

impl Bounds {
    /// 70 MB of nodes, up to 54 of index, and 112 of paths and their counts. While the tree grows or is
    /// pruned, some of that exists twice.
    pub(crate) const USUAL: Bounds = Bounds { nodes: 3_500_000, paths: 1_000_000 };

    /// If the flows of paths are tracked over time, in 64 slices of 8 bytes each.
    pub(crate) const WITH_FLOWS: Bounds = Bounds { nodes: 2_000_000, paths: 250_000 };
}

impl Paths {
    /// Samples allocated at each node or below it.
    fn weights(&self) -> Vec<u64> {
        let mut weights = vec![0_u64; self.links.len()];
        for (&node, &allocated) in self.nodes.iter().zip(&self.allocated) {
            weights[node as usize] = weights[node as usize].saturating_add(allocated);
        }
        // The number of a parent is below those of its children.
        for node in (1..weights.len()).rev() {
            let parent = self.links[node].parent as usize;
            weights[parent] = weights[parent].saturating_add(weights[node]);
        }
        weights
    }

    /// Drops the lightest nodes, at least half of all but those that the table of blocks needs, and
    /// numbers the paths anew. Of a path that is dropped, its innermost frame stays, and its innermost
    /// frame of own code.
    pub(crate) fn prune(&mut self, is_own: impl Fn(u32) -> bool) -> PathMoves {
        let own = self.own_nodes(|| is_own);
        let weights = self.weights();
        // Where the table needs more than is kept, no figure is taken from its callers, so none stay for it.
        let table = self.table.take();
        let table = table.and_then(|table| Some((table.needed_nodes(self)?, table)));
        let (needed, mut table) = table.unzip();
        let needed = needed.unwrap_or_default();
        let is_needed = |node: usize| needed.get(node).copied().unwrap_or(false);
        let mut ordered = weights.clone();
        let keep = self.links.len() / 2;
        let rank = ordered.len().saturating_sub(keep + 1);
        let (_, &mut lightest, _) = ordered.select_nth_unstable(rank);
        drop(ordered);
        self.missing += lightest;
        let mut tree = Paths::new(self.most);
        tree.missing = self.missing;
        // The old index is dropped before the new one is allocated, which has room up to
        // the next pruning.
        let room = self.links.len();
        let indexed = self.index.len();
        self.index = HashTable::new();
        tree.index.reserve(indexed, |step| hash_of(&self.hash, step.parent, step.frame));
        tree.links.reserve(room);
        let mut moved = vec![NONE; self.links.len()];
        moved[ROOT as usize] = ROOT;
        for (node, &NodeLinks { parent, frame, .. }) in self.links.iter().enumerate().skip(1) {
            let parent = moved[parent as usize];
            let stays = weights[node] > lightest || is_needed(node) || frame == LIGHT;
            if parent != NONE && (stays || tree.frame(parent) == LIGHT) {
                moved[node] = tree.add_child(parent, frame);
            }
        }
        let paths = self.nodes.iter().zip(&self.allocated).map(|(&node, &allocated)| {
            let to = match moved[node as usize] {
                NONE => {
                    let light = tree.child(ROOT, LIGHT);
                    let above = match own[node as usize] {
                        ROOT => light,
                        own if own == node => light,
                        own => tree.child(light, self.frame(own)),
                    };
                    tree.child(above, self.frame(node))
                }
                to => to,
            };
            let path = tree.path(to);
            tree.allocate(path, allocated);
            path
        });
        let to: Vec<u32> = paths.collect();
        // Innermost frames are never dropped. If they alone fill the tree, it must grow,
        // or it would be pruned for each of them.
        tree.most.nodes = tree.most.nodes.max(tree.links.len() / 2 * 3);
        tree.most.paths = tree.most.paths.max(tree.nodes.len() / 2 * 3);
        if let Some(table) = &mut table {
            table.move_paths(&to, tree.nodes.len());
        }
        tree.table_lacks_callers = table.is_none();
        tree.table = table;
        let moves = PathMoves { to, count: tree.nodes.len() };
        *self = tree;
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thinning::scramble;

    /// A frame of own code.
    const OWN: u32 = 2000;

    #[test]
    fn a_full_tree_keeps_what_is_heavy_and_all_innermost_frames() {
        let mut paths = Paths::new(Bounds { nodes: 1000, paths: 1000 });
        let mut leaves = [0_u64; 10];
        let mut heavy = 0;
        for turn in 0..20_000_u64 {
            if paths.is_full() {
                paths.prune(|frame| frame == OWN);
                assert!(paths.len() <= 600, "{} nodes left", paths.len());
            }
            let leaf = turn % 10;
            leaves[leaf as usize] += 1;
            // Half of everything has the same callers.
            let caller = if turn % 2 == 0 { 1000 } else { scramble(turn) % 900 };
            heavy += u64::from(turn % 2 == 0);
            // Own code between them stays with its leaf.
            let middle = paths.child(ROOT, caller as u32);
            let middle = if leaf < 5 { paths.child(middle, OWN) } else { middle };
            let node = paths.child(middle, leaf as u32);
            let path = paths.path(node);
            paths.allocate(path, 1);
        }
        let mut found = [0_u64; 10];
        for (path, allocated) in paths.allocated.iter().enumerate() {
            let node = paths.node(path as u32);
            let leaf = paths.frame(node) as usize;
            found[leaf] += allocated;
            assert_eq!(paths.frame(paths.parent(node)) == OWN, leaf < 5);
        }
        assert_eq!(found, leaves);
        let callers = paths.child(ROOT, 1000);
        let weight = paths.weights()[callers as usize];
        assert!(weight <= heavy && weight + paths.missing() >= heavy, "{weight} of {heavy}");
        assert!(paths.missing() < heavy / 10);
    }
}
