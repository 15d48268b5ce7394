//! The paths that the table of blocks needs: those of its rows, which are not dropped when the
//! tree is pruned. So what is selected by callers can be counted from the table, however rare a
//! path is.
//!
//! The table drops half of its rows whenever it has too many, by a hash of their ids
//! ([`crate::thinning`]). So how long a block stays in it is known when the block is allocated,
//! and nothing needs to be asked of the table, which may be filled by another thread.

use crate::paths::Paths;
use crate::thinning::last_level;

/// As many levels as there are.
const LEVELS: usize = 128;

/// The most nodes that are kept for the table: 90 MB of them.
const MOST_NODES: usize = 4_500_000;

/// Up to which level of thinning each path has a row in the table.
#[derive(Clone)]
pub(crate) struct TablePaths {
    /// The most rows of the table.
    most: usize,
    /// The most nodes for them.
    most_nodes: usize,
    /// How many blocks stay up to each level.
    blocks: [u64; LEVELS],
    /// For each path the level after the last at which it has a row; 0 if it has none.
    until: Vec<u8>,
}

impl TablePaths {
    /// Those of a table of at most so many rows.
    pub(crate) fn new(most: usize) -> Self {
        TablePaths { most, most_nodes: MOST_NODES, blocks: [0; LEVELS], until: Vec::new() }
    }

    /// A block of this path is allocated.
    #[inline]
    pub(crate) fn add(&mut self, path: u32, id: u64, samples: u64) {
        let last = last_level(id, samples).min(LEVELS as u32 - 1);
        self.blocks[last as usize] += 1;
        if path as usize >= self.until.len() {
            self.until.resize(path as usize + 1, 0);
        }
        let until = &mut self.until[path as usize];
        *until = (*until).max(last as u8 + 1);
    }

    /// The level at which the table is now.
    fn level(&self) -> usize {
        let mut rows = 0;
        let too_many = |&level: &usize| {
            rows += self.blocks[level];
            rows > self.most as u64
        };
        (0..LEVELS).rev().find(too_many).map_or(0, |level| level + 1)
    }

    /// Whether each node of a tree leads to a row of the table. `None` if these are too many to be kept.
    pub(super) fn needed_nodes(&self, paths: &Paths) -> Option<Vec<bool>> {
        let level = self.level();
        let mut needed = vec![false; paths.links.len()];
        for (&node, &until) in paths.nodes.iter().zip(&self.until) {
            needed[node as usize] = usize::from(until) > level;
        }
        // The number of a parent is below those of its children.
        for node in (1..needed.len()).rev() {
            needed[paths.links[node].parent as usize] |= needed[node];
        }
        let count = needed.iter().filter(|&&needed| needed).count();
        (count <= self.most_nodes).then_some(needed)
    }

    /// Renumbers paths. Those that become one have the rows of all.
    pub(super) fn move_paths(&mut self, to: &[u32], count: usize) {
        let mut until = vec![0_u8; count];
        for (&of_path, &to) in self.until.iter().zip(to) {
            let into = &mut until[to as usize];
            *into = (*into).max(of_path);
        }
        self.until = until;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::{Bounds, LIGHT, ROOT};
    use crate::thinning::{is_tracked, scramble};

    /// Adds blocks of as many paths, each with a caller of its own, to a small tree. Returns the
    /// paths as they are numbered at the end.
    fn blocks(paths: &mut Paths, count: u64) -> Vec<u32> {
        let mut of_blocks: Vec<u32> = Vec::new();
        for id in 0..count {
            if paths.is_full() {
                let moves = paths.prune(|_| false);
                of_blocks.iter_mut().for_each(|path| *path = moves.to[*path as usize]);
            }
            let caller = paths.child(ROOT, 100 + id as u32);
            let node = paths.child(caller, (scramble(id) % 5) as u32);
            let path = paths.path(node);
            paths.allocate_block(path, id, 1, 1);
            of_blocks.push(path);
        }
        of_blocks
    }

    fn has_callers(paths: &Paths, path: u32) -> bool {
        let caller = paths.parent(paths.node(path));
        caller != ROOT && paths.frame(paths.parent(caller)) != LIGHT && paths.frame(caller) != LIGHT
    }

    #[test]
    fn what_has_a_row_in_the_table_keeps_its_callers() {
        let mut paths = Paths::new(Bounds { nodes: 1500, paths: 1500 });
        paths.keep_for_table(200);
        let of_blocks = blocks(&mut paths, 10_000);
        // The level of a table that was filled one by one.
        let mut level = 0;
        let rows = |until: u64, level| (0..until).filter(move |&id| is_tracked(id, 1, level));
        (0..10_000).for_each(|until| {
            while rows(until + 1, level).count() > 200 {
                level += 1;
            }
        });
        assert!(level >= 5 && !paths.table_lacks_callers());
        assert!(rows(10_000, level).all(|id| has_callers(&paths, of_blocks[id as usize])));
        let kept = (0..10_000).filter(|&id| has_callers(&paths, of_blocks[id])).count();
        assert!(kept < 5_000, "{kept} paths were kept");
    }

    #[test]
    fn a_table_whose_paths_are_too_long_says_so() {
        let mut paths = Paths::new(Bounds { nodes: 1500, paths: 1500 });
        paths.keep_for_table(5_000);
        let rows = |paths: &mut Paths| paths.table.as_mut().map(|table| table.most_nodes = 400);
        rows(&mut paths);
        blocks(&mut paths, 10_000);
        assert!(paths.table_lacks_callers() && paths.len() < 5_000);
    }
}
