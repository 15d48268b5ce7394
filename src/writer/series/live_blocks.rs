//! What is alive, with its stacks: what the next part of a series has to begin with.
//!
//! A sampled block takes some 100 bytes while it is alive. Stacks share their outer frames: a
//! call tree has one node for each different one, and is rebuilt of what is still needed when a
//! part begins. So memory depends on what is alive and on the stacks of one part.

use std::collections::HashMap;

use heaptap_trace::{Block, Source};

/// A block that is alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LiveBlock {
    /// Microseconds since the epoch.
    pub(super) birth: u64,
    /// The same, or 0 before the block is promoted.
    pub(super) promotion: u64,
    pub(super) length: u64,
    pub(super) samples: u64,
    /// The innermost node of its stack.
    pub(super) node: u32,
    /// The number of the rate at which it was sampled.
    pub(super) rate: u32,
    pub(super) domain: u16,
    pub(super) source: Source,
}

/// All stacks of live blocks, and of some that are not any more.
#[derive(Default)]
pub(super) struct CallTree {
    /// The outer node and the code of each node but 0, which is the empty stack.
    nodes: Vec<(u32, u64)>,
    numbers: HashMap<(u32, u64), u32>,
}

impl CallTree {
    fn child(&mut self, outer: u32, code: u64) -> u32 {
        let next = self.nodes.len() as u32 + 1;
        let number = *self.numbers.entry((outer, code)).or_insert(next);
        if number == next {
            self.nodes.push((outer, code));
        }
        number
    }

    /// A node's outer node and code; `None` of the empty stack.
    pub(super) fn node(&self, node: u32) -> Option<(u32, u64)> {
        self.nodes.get((node as usize).checked_sub(1)?).copied()
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Keeps the nodes above these, and renumbers them: a node still comes after the one
    /// outside it.
    fn compact<'a>(&mut self, needed: impl Iterator<Item = &'a mut u32>) {
        const UNUSED: u32 = 0;
        let old = std::mem::take(self);
        let mut new = vec![UNUSED; old.nodes.len() + 1];
        let mut path = Vec::new();
        for needed in needed {
            path.clear();
            let mut at = *needed;
            while at != 0 && new.get(at as usize) == Some(&UNUSED) {
                path.push(at);
                at = old.node(at).map_or(0, |(outer, _)| outer);
            }
            for &node in path.iter().rev() {
                if let Some((outer, code)) = old.node(node)
                    && let Some(&outer) = new.get(outer as usize)
                {
                    let number = self.child(outer, code);
                    if let Some(place) = new.get_mut(node as usize) {
                        *place = number;
                    }
                }
            }
            *needed = new.get(*needed as usize).copied().unwrap_or(0);
        }
    }
}

/// The last stack of a lane, as nodes.
#[derive(Default)]
struct LanePath {
    frames: Vec<u64>,
    nodes: Vec<u32>,
}

/// The blocks that are alive, by their ids in the series.
#[derive(Default)]
pub(super) struct LiveBlocks {
    pub(super) tree: CallTree,
    blocks: HashMap<u64, LiveBlock>,
    /// By lane.
    paths: Vec<LanePath>,
    /// No other file follows: only the stacks are noted.
    is_of_one_file: bool,
}

/// An allocation under a stack, the outermost frame first.
pub(super) struct Birth<'a> {
    pub(super) id: u64,
    pub(super) time: u64,
    pub(super) lane: u16,
    pub(super) block: Block,
    pub(super) frames: &'a [u64],
    pub(super) rate: u32,
}

impl LiveBlocks {
    pub(super) fn of_one_file() -> LiveBlocks {
        LiveBlocks { is_of_one_file: true, ..LiveBlocks::default() }
    }

    pub(super) fn is_of_one_file(&self) -> bool {
        self.is_of_one_file
    }

    pub(super) fn born(&mut self, birth: &Birth<'_>) -> LiveBlock {
        let &Birth { id, time, lane, block, frames, rate } = birth;
        let node = self.node_of(lane, frames);
        let Block { length, samples, source } = block;
        let alive = LiveBlock {
            birth: time,
            promotion: 0,
            length,
            samples,
            node,
            rate,
            domain: lane,
            source,
        };
        if !self.is_of_one_file {
            self.blocks.insert(id, alive);
        }
        alive
    }

    fn node_of(&mut self, lane: u16, frames: &[u64]) -> u32 {
        let lane = usize::from(lane);
        if self.paths.len() <= lane {
            self.paths.resize_with(lane + 1, LanePath::default);
        }
        let Some(path) = self.paths.get_mut(lane) else { return 0 };
        let same = path.frames.iter().zip(frames).take_while(|(one, other)| one == other).count();
        path.frames.truncate(same);
        path.nodes.truncate(same);
        let mut node = path.nodes.last().copied().unwrap_or(0);
        for &frame in frames.get(same..).unwrap_or_default() {
            node = self.tree.child(node, frame);
            path.frames.push(frame);
            path.nodes.push(node);
        }
        node
    }

    pub(super) fn promoted(&mut self, id: u64, time: u64) {
        if let Some(block) = self.blocks.get_mut(&id)
            && block.promotion == 0
        {
            block.promotion = time;
        }
    }

    pub(super) fn died(&mut self, id: u64) {
        self.blocks.remove(&id);
    }

    pub(super) fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Forgets the stacks that no block has any more.
    pub(super) fn compact(&mut self) {
        self.paths.clear();
        self.tree.compact(self.blocks.values_mut().map(|block| &mut block.node));
    }

    /// All of them with their ids, in the order of their births.
    pub(super) fn by_birth(&self) -> Vec<(u64, LiveBlock)> {
        let mut blocks: Vec<_> = self.blocks.iter().map(|(&id, &block)| (id, block)).collect();
        blocks.sort_unstable_by_key(|&(id, block)| (block.birth, id));
        blocks
    }

    /// Changes the number of each rate.
    pub(super) fn renumber_rates(&mut self, mut number: impl FnMut(u32) -> u32) {
        self.blocks.values_mut().for_each(|block| block.rate = number(block.rate));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(tree: &CallTree, mut node: u32) -> Vec<u64> {
        let mut frames = Vec::new();
        while let Some((outer, code)) = tree.node(node) {
            assert!(outer < node);
            frames.push(code);
            node = outer;
        }
        frames.reverse();
        frames
    }

    #[test]
    fn stacks_stay_what_they_are_when_others_are_forgotten() {
        let mut live = LiveBlocks::default();
        let mut expected = HashMap::new();
        for id in 0..2000_u64 {
            let depth = 1 + id % 7;
            let frames: Vec<u64> = (0..depth).map(|at| 100 * at + (id / 3) % (at + 2)).collect();
            let block = Block { length: 3, samples: 1, source: Source::Minor };
            let lane = (id % 3) as u16;
            live.born(&Birth { id, time: id / 2, lane, block, frames: &frames, rate: 0 });
            expected.insert(id, frames);
            if id % 5 != 0 {
                live.died(id - id % 5);
                expected.remove(&(id - id % 5));
            }
            if id % 400 == 399 {
                let before = live.tree.len();
                live.compact();
                assert!(live.tree.len() <= before);
            }
        }
        let found = live.by_birth();
        assert_eq!(found.len(), expected.len());
        assert!(found.windows(2).all(|pair| pair[0].1.birth <= pair[1].1.birth));
        for (id, block) in found {
            assert_eq!(stack(&live.tree, block.node), expected[&id], "block {id}");
        }
        (0..2000).for_each(|id| live.died(id));
        live.compact();
        assert_eq!((live.len(), live.tree.len()), (0, 0));
    }

    #[test]
    fn a_block_is_promoted_once() {
        let mut live = LiveBlocks::default();
        let block = Block { length: 3, samples: 1, source: Source::Minor };
        live.born(&Birth { id: 7, time: 10, lane: 0, block, frames: &[], rate: 0 });
        live.promoted(7, 20);
        live.promoted(7, 30);
        live.promoted(8, 30);
        let [(7, LiveBlock { birth: 10, promotion: 20, node: 0, .. })] = live.by_birth()[..] else {
            panic!("one block")
        };
    }
}
