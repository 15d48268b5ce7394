//! The blocks of a trace as rows, each when its life is known: for tables with every block.
//!
//! [`crate::BlockTable`] is bounded and thinned; here no block is left out. A block is passed on
//! when it is collected, those that stay alive at the end, so that only those that are alive are
//! in memory. The call tree is bounded as everywhere. Where other reports drop the lightest paths
//! of a full tree, here its stacks are passed on and a new tree is begun: ids of stacks have the
//! number of their tree in the high half.

use std::mem;

use heaptap_trace::{Code, Event, EventKind, LocationTable, Source, TraceInfo};

use crate::aggregate::{Frame, frame_of};
use crate::blocks::NEVER;
use crate::depth::Depth;
use crate::frames::Frames;
use crate::ids::IdMap;
use crate::options::Options;
use crate::paths::{Bounds, Node, Paths, ROOT};
use crate::resolver::{ResolvedEvent, ResolvedKind, Resolver, TreeMut};

/// The most blocks that may be alive at once: 545 MB, and half as much again while the table grows.
const MOST_ALIVE: usize = (1 << 23) / 8 * 7;

/// The life of a block. Times are microseconds since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLife {
    /// The block's id.
    pub id: u64,
    /// When it was allocated, modulo 2⁶⁴: a block that was alive when the trace started was
    /// allocated before.
    pub birth: u64,
    /// When it moved to the old generation, in the same way.
    pub promotion: Option<u64>,
    /// When it was collected; in a damaged trace, also when another block took its id.
    pub death: Option<u64>,
    /// Words, without the header.
    pub length: u64,
    /// Samples in it.
    pub samples: u64,
    /// The id of its stack.
    pub stack: u64,
    /// The outermost frame of its stack, which may be a label.
    pub outermost: Option<Code>,
    /// The domain in which it was allocated.
    pub domain: u16,
    /// Where it was allocated.
    pub source: Source,
}

/// A block that is alive. Its id is the key.
#[derive(Clone, Copy)]
struct AliveBlock {
    birth: u64,
    /// [`NEVER`] before.
    promotion: u64,
    length: u64,
    samples: u64,
    stack: u64,
    /// 0, which is no code, if there is none.
    outermost: Code,
    domain: u16,
    source: Source,
}

impl AliveBlock {
    fn life(&self, id: u64, death: Option<u64>) -> BlockLife {
        let &AliveBlock { birth, promotion, length, samples, stack, outermost, domain, source } =
            self;
        BlockLife {
            id,
            birth,
            promotion: Some(promotion).filter(|&time| time != NEVER),
            death,
            length,
            samples,
            stack,
            outermost: Some(outermost).filter(|&code| code != 0),
            domain,
            source,
        }
    }
}

/// What takes the rows.
pub trait BlockSink {
    /// Why a row was not taken.
    type Error;

    /// Takes a block, with the locations that are known so far.
    fn block(&mut self, life: &BlockLife, table: &LocationTable) -> Result<(), Self::Error>;

    /// Takes a stack. It comes once, and may come after blocks that have it.
    fn stack(
        &mut self,
        id: u64,
        stack: WholeStack<'_>,
        table: &LocationTable,
    ) -> Result<(), Self::Error>;
}

/// A stack of any depth.
#[derive(Clone, Copy, Debug)]
pub struct WholeStack<'a> {
    /// The outermost frame first.
    pub frames: &'a [Frame],
    /// How many of them the stack before has too; 0 of the first of a call tree.
    pub common: usize,
}

/// Why a trace has no rows.
#[derive(Debug)]
pub enum BlockRowsError<E> {
    /// More blocks are alive at once than can be tracked.
    TooManyAlive,
    /// A row was not taken.
    Sink(E),
}

/// Tracks the blocks that a selection takes.
pub struct BlockLives {
    resolver: Resolver,
    frames: Frames,
    paths: Paths,
    /// The number of the call tree.
    tree: u32,
    alive: IdMap<AliveBlock>,
    most_alive: usize,
    most_paths: Bounds,
}

impl BlockLives {
    /// For the events of the trace that `info` describes. Of the options, only the selection and
    /// the lifespans count.
    pub fn new(info: &TraceInfo, options: Options) -> Self {
        BlockLives::bounded(info, options, MOST_ALIVE, Bounds::USUAL)
    }

    fn bounded(info: &TraceInfo, options: Options, most_alive: usize, most_paths: Bounds) -> Self {
        let options = Options { depth: Depth::Whole, ..options };
        BlockLives {
            resolver: Resolver::new(options, info.start_time, u64::from(info.word_size / 8)),
            frames: Frames::default(),
            paths: Paths::new(most_paths),
            tree: 0,
            alive: IdMap::default(),
            most_alive,
            most_paths,
        }
    }

    /// Takes the next event, in the order of time.
    pub fn event<S: BlockSink>(
        &mut self,
        event: &Event<'_>,
        table: &LocationTable,
        sink: &mut S,
    ) -> Result<(), BlockRowsError<S::Error>> {
        if self.paths.is_full() {
            self.pass_stacks(table, sink)?;
        }
        let BlockLives { resolver, frames, paths, .. } = self;
        let resolved = resolver.resolve(TreeMut { frames, paths }, event, table, 0);
        let (id, time) = (resolved.id, resolved.time);
        match resolved.kind {
            ResolvedKind::Alloc(source) => {
                if self.alive.len() >= self.most_alive {
                    return Err(BlockRowsError::TooManyAlive);
                }
                let alive = self.born(&resolved, outermost(event), source);
                if let Some(other) = self.alive.insert(id, alive) {
                    pass(&other.life(id, Some(time)), table, sink)?;
                }
            }
            ResolvedKind::Promote => {
                if let Some(alive) = self.alive.get_mut(&id)
                    && alive.source == Source::Minor
                {
                    alive.promotion = if alive.promotion == NEVER { time } else { alive.promotion };
                }
            }
            ResolvedKind::Collect => {
                if let Some(alive) = self.alive.remove(&id) {
                    pass(&alive.life(id, Some(time)), table, sink)?;
                }
            }
            ResolvedKind::Other => {}
        }
        Ok(())
    }

    fn born(&self, event: &ResolvedEvent, outermost: Code, source: Source) -> AliveBlock {
        let &ResolvedEvent { time, length, samples, path, domain, .. } = event;
        AliveBlock {
            birth: time,
            promotion: NEVER,
            length,
            samples: samples.count(),
            stack: u64::from(self.tree) << 32 | u64::from(path),
            outermost,
            domain,
            source,
        }
    }

    /// After the last event: passes on what is alive, in the order of ids, and the stacks.
    pub fn finish<S: BlockSink>(
        mut self,
        table: &LocationTable,
        sink: &mut S,
    ) -> Result<(), BlockRowsError<S::Error>> {
        let mut ids: Vec<u64> = self.alive.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            if let Some(alive) = self.alive.remove(&id) {
                pass(&alive.life(id, None), table, sink)?;
            }
        }
        self.pass_stacks(table, sink)
    }

    /// Passes on all stacks, and begins another tree.
    fn pass_stacks<S: BlockSink>(
        &mut self,
        table: &LocationTable,
        sink: &mut S,
    ) -> Result<(), BlockRowsError<S::Error>> {
        self.resolver.forget_stacks();
        let frames = mem::take(&mut self.frames);
        let paths = mem::replace(&mut self.paths, Paths::new(self.most_paths));
        let mut walk = StackWalk::new(&paths);
        for path in 0..paths.count() as u32 {
            let common = walk.go_to(&paths, paths.node(path));
            walk.frames.truncate(common);
            let new = walk.nodes.get(common..).unwrap_or(&[]);
            walk.frames.extend(new.iter().map(|&node| frame_of(&frames, &paths, node)));
            let id = u64::from(self.tree) << 32 | u64::from(path);
            let stack = WholeStack { frames: &walk.frames, common };
            sink.stack(id, stack, table).map_err(BlockRowsError::Sink)?;
        }
        self.tree += 1;
        Ok(())
    }
}

/// Goes from stack to stack. One that differs from the last in a few frames takes only these,
/// however deep it is.
struct StackWalk {
    /// The number of frames down to each node.
    depths: Vec<u32>,
    /// The nodes of the stack, the outermost first, and their frames.
    nodes: Vec<Node>,
    frames: Vec<Frame>,
}

impl StackWalk {
    fn new(paths: &Paths) -> StackWalk {
        let mut depths = vec![0_u32; paths.len()];
        for node in 1..paths.len() {
            // A node comes after the one above it.
            depths[node] = depths[paths.parent(node as u32) as usize] + 1;
        }
        StackWalk { depths, nodes: Vec::new(), frames: Vec::new() }
    }

    /// Makes the nodes those above this one. Returns how many of them stay.
    fn go_to(&mut self, paths: &Paths, node: Node) -> usize {
        let depth = self.depths[node as usize] as usize;
        let mut common = self.nodes.len().min(depth);
        self.nodes.resize(depth, ROOT);
        let (mut node, mut at) = (node, depth);
        while at > 0 && !(at <= common && self.nodes[at - 1] == node) {
            common = common.min(at - 1);
            self.nodes[at - 1] = node;
            node = paths.parent(node);
            at -= 1;
        }
        common
    }
}

/// The outermost frame of an allocation, or 0.
fn outermost(event: &Event<'_>) -> Code {
    match event.kind {
        EventKind::Alloc(allocation) => allocation.backtrace.frames.first().copied().unwrap_or(0),
        _ => 0,
    }
}

fn pass<S: BlockSink>(
    life: &BlockLife,
    table: &LocationTable,
    sink: &mut S,
) -> Result<(), BlockRowsError<S::Error>> {
    sink.block(life, table).map_err(BlockRowsError::Sink)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::convert::Infallible;

    use heaptap_trace::{Allocation, Backtrace};

    use super::*;
    use crate::aggregator::tests::info;

    #[derive(Default)]
    struct Rows {
        blocks: Vec<BlockLife>,
        stacks: HashMap<u64, Vec<Frame>>,
        /// The last stack.
        last: Vec<Frame>,
    }

    impl BlockSink for Rows {
        type Error = Infallible;

        fn block(&mut self, life: &BlockLife, _: &LocationTable) -> Result<(), Infallible> {
            self.blocks.push(*life);
            Ok(())
        }

        fn stack(
            &mut self,
            id: u64,
            stack: WholeStack<'_>,
            _: &LocationTable,
        ) -> Result<(), Infallible> {
            let common =
                stack.frames.iter().zip(&self.last).take_while(|(one, other)| one == other);
            // Another tree begins anew.
            let is_first = id.trailing_zeros() >= 32;
            assert_eq!(stack.common, if is_first { 0 } else { common.count() }, "stack {id}");
            self.last = stack.frames.to_vec();
            let inner_first = stack.frames.iter().rev().copied().collect();
            assert!(self.stacks.insert(id, inner_first).is_none(), "stack {id} came twice");
            Ok(())
        }
    }

    fn alloc(id: u64, frames: &[Code]) -> EventKind<'_> {
        let backtrace = Backtrace { frames, common_prefix: 0, new: frames };
        EventKind::Alloc(Allocation { id, length: 3, samples: 2, source: Source::Minor, backtrace })
    }

    fn rows(events: &[EventKind<'_>], most_alive: usize, most_paths: Bounds) -> Option<Rows> {
        let (mut rows, table) = (Rows::default(), LocationTable::default());
        let info = info(1.0);
        let mut lives = BlockLives::bounded(&info, Options::default(), most_alive, most_paths);
        for (time, &kind) in events.iter().enumerate() {
            let event = Event { time: info.start_time + time as u64, domain: 0, kind };
            lives.event(&event, &table, &mut rows).ok()?;
        }
        lives.finish(&table, &mut rows).ok()?;
        Some(rows)
    }

    #[test]
    fn a_block_comes_when_it_dies_or_at_the_end() {
        let events = [
            alloc(0, &[1, 2]),
            alloc(1, &[1, 3]),
            EventKind::Promote(0),
            EventKind::Promote(0),
            EventKind::Collect(1),
            EventKind::Collect(7),
            alloc(0, &[]),
        ];
        let found = rows(&events, 10, Bounds::USUAL).unwrap();
        let lives: Vec<_> =
            found.blocks.iter().map(|b| (b.id, b.birth, b.promotion, b.death)).collect();
        // The id of block 0 is used again.
        assert_eq!(lives, [(1, 1, None, Some(4)), (0, 0, Some(2), Some(6)), (0, 6, None, None)]);
        let stack = |block: usize| &found.stacks[&found.blocks[block].stack][..];
        assert_eq!(stack(0), [Frame::Code(3), Frame::Code(1)]);
        assert_eq!(stack(1), [Frame::Code(2), Frame::Code(1)]);
        assert_eq!(stack(2), [Frame::Nowhere]);
        let outermost: Vec<_> = found.blocks.iter().map(|block| block.outermost).collect();
        assert_eq!(outermost, [Some(1), Some(1), None]);
        assert!(rows(&events, 1, Bounds::USUAL).is_none(), "two are alive at once");
        assert_eq!(size_of::<(u64, AliveBlock)>(), 64);
    }

    #[test]
    fn stacks_of_a_full_tree_are_kept() {
        let stacks: Vec<[Code; 3]> = (0..100).map(|n| [1, 2 + n % 7, 20 + n % 13]).collect();
        let events: Vec<_> = (0..).zip(&stacks).map(|(id, frames)| alloc(id, frames)).collect();
        let found = rows(&events, 1000, Bounds { nodes: 20, paths: 1000 }).unwrap();
        assert_eq!(found.blocks.len(), 100);
        for block in &found.blocks {
            let frames = stacks[block.id as usize].iter().rev().map(|&code| Frame::Code(code));
            assert!(frames.eq(found.stacks[&block.stack].iter().copied()), "block {}", block.id);
        }
        assert!(found.blocks.iter().any(|block| block.stack >> 32 > 2), "the tree was never full");
    }
}
