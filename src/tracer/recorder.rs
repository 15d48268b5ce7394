//! From a sampled block to records in the mutator's lane.
//!
//! Runs on mutators, inside hooks: no malloc, no lock, and no system call except
//! to wait for the writer thread when that is the policy (see [`LaneWriter`]).
//!
//! Only allocations can be dropped, and then before the block gets a number.
//! The promotion or collection of a recorded block is never lost: when there is
//! no room for it, it is held back, in order, and recorded later.

use std::sync::Arc;
use std::time::{Duration, Instant};

use heaptap_trace::Source;

use crate::blocks::{AddressTable, Fate, Generation, Generations, TrackedId};
use crate::queue::{AllocWords, BlockId, EndWord, Part, Record};
use crate::stack::FrameTables;
use crate::tracer::backtraces::{Backtraces, StackTop};
use crate::tracer::failure::Failure;
use crate::tracer::hook::HookContext;
use crate::tracer::lane_writer::{LaneWriter, WAIT_STEP};
use crate::tracer::options::Tracking;

/// A block in which samples fell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampledBlock {
    pub(crate) source: Source,
    /// Where the runtime sees it.
    pub(crate) address: usize,
    /// Header included.
    pub(crate) words: usize,
    /// How many of its words were sampled.
    pub(crate) samples: u64,
    pub(crate) tracked: Tracked,
    /// Its part of a combined allocation, where parts have locations of their own; its kind
    /// elsewhere.
    pub(crate) part: Part,
}

/// How a block is tracked after its allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tracked {
    /// By reports that name its address.
    ByAddress,
    /// By sweeps of the young blocks.
    Young,
    /// By sweeps of the major blocks.
    Major,
}

impl Tracked {
    /// How blocks from this source are tracked by default.
    pub(crate) fn by_default(source: Source, tracking: Tracking) -> Tracked {
        match (source, tracking) {
            (Source::External, _) | (_, Tracking::Addresses) => Tracked::ByAddress,
            (Source::Minor, Tracking::Sweeps) => Tracked::Young,
            (Source::Major, Tracking::Sweeps) => Tracked::Major,
        }
    }
}

/// The recording half of a mutator.
pub(crate) struct Recorder {
    pub(crate) tables: Arc<FrameTables>,
    /// The session's blocks that are tracked by address.
    pub(crate) by_address: Arc<AddressTable>,
    /// Whether the words of a block include a header.
    pub(crate) has_headers: bool,
    /// How young blocks are tracked.
    pub(crate) young_tracked: Tracked,
    pub(crate) backtraces: Backtraces,
    pub(crate) blocks: Generations,
    /// Blocks that carry a tag; `None` before the first.
    pub(crate) tags: Option<Generations>,
    pub(crate) lane: LaneWriter,
    /// The number of the next recorded block of this lane.
    pub(crate) number: u64,
    /// The bits of the rate at which the next blocks were sampled.
    pub(crate) rate: u64,
    /// Those of the rate that the writer knows of this lane; 0 if it knows none.
    pub(crate) known_rate: u64,
}

impl Recorder {
    /// Records the allocation of a sampled block, and tracks it from now on.
    pub(crate) fn record_alloc(
        &mut self,
        hook: &mut HookContext,
        block: &SampledBlock,
    ) -> Result<(), Failure> {
        self.record(hook, *block)
    }

    /// The same for a block in the young heap. Nearly all sampled blocks are, so
    /// they have a copy of the code in which the source is a constant. Bench:
    /// `benches/cost` (hooks).
    #[inline(never)]
    pub(crate) fn record_young_alloc(
        &mut self,
        hook: &mut HookContext,
        address: usize,
        words: usize,
        samples: u64,
        part: Part,
    ) -> Result<(), Failure> {
        let tracked = self.young_tracked;
        let source = Source::Minor;
        self.record(hook, SampledBlock { source, address, words, samples, tracked, part })
    }

    #[inline(always)]
    fn record(&mut self, hook: &mut HookContext, block: SampledBlock) -> Result<(), Failure> {
        self.lane.counters.samples.add(block.samples);
        if self.try_record(hook, block).is_none() {
            self.lane.counters.dropped.add(1);
            return Err(Failure::Lost);
        }
        self.lane.counters.allocations.add(1);
        Ok(())
    }

    #[inline(always)]
    fn try_record(&mut self, hook: &mut HookContext, block: SampledBlock) -> Option<()> {
        self.record_pending_ends(hook);
        let number = self.number;
        if !self.blocks.reserve(1) || number >= BlockId::MAX_NUMBER {
            return None;
        }
        if self.rate != self.known_rate {
            self.record_rate(hook)?;
        }
        // The format knows blocks with one word of header, or none.
        let header = usize::from(self.has_headers);
        let length = match block.source {
            Source::Minor | Source::Major => block.words.saturating_sub(header),
            Source::External => block.words,
        };
        let SampledBlock { source, part, samples, .. } = block;
        let alloc = AllocWords::new(source, part, samples, length as u64);
        if hook.stack_recorded {
            self.lane.put(hook, [], Some(alloc))?;
        } else {
            let top = self.backtraces.stack_top();
            if self.record_with_small_stack(hook, top, alloc).is_none() {
                self.record_with_stack(hook, top, alloc)?;
            }
        }
        self.number = number + 1;
        let id = BlockId::new(self.lane.producer.lane(), number);
        self.track(block, TrackedId::new(id, source));
        Some(())
    }

    /// Records the rate at which the following blocks were sampled.
    #[cold]
    fn record_rate(&mut self, hook: &mut HookContext) -> Option<()> {
        self.lane.put(hook, [Record::Rate(self.rate)], None)?;
        self.known_rate = self.rate;
        Some(())
    }

    #[inline(always)]
    fn track(&mut self, block: SampledBlock, id: TrackedId) {
        match block.tracked {
            Tracked::ByAddress => {
                // Without memory the block stays alive in the trace.
                self.by_address.add(block.address, id);
            }
            Tracked::Young => self.blocks.add_young(block.address, id),
            Tracked::Major => self.blocks.add_major(block.address, id),
        }
        self.count_blocks();
    }

    /// Records the time, a small stack and the allocation. `None`: the stack is
    /// not small, or there was no room; nothing was recorded.
    #[inline(always)]
    fn record_with_small_stack(
        &mut self,
        hook: &mut HookContext,
        top: StackTop,
        alloc: AllocWords,
    ) -> Option<()> {
        let Recorder { tables, backtraces, lane, .. } = self;
        if !backtraces.expects_small(top) {
            return None;
        }
        let mut room = lane.reserve_small_stack()?;
        let frames = backtraces.take_small(tables, top, room.codes()?)?;
        let words = room.fill(hook.ticks, frames, alloc)?;
        lane.commit_small_stack(hook, words);
        Some(())
    }

    /// Records the time, the changed part of the stack, and the allocation.
    #[inline(never)]
    fn record_with_stack(
        &mut self,
        hook: &mut HookContext,
        top: StackTop,
        alloc: AllocWords,
    ) -> Option<()> {
        let Recorder { tables, backtraces, lane, .. } = self;
        let backtrace = backtraces.take(tables, top, hook.registers);
        if let Err(not_recorded) = lane.put_backtrace(hook, &backtrace, alloc) {
            // The next backtrace must build on what the writer has, not on this
            // one.
            self.backtraces.rewind(not_recorded.frames);
            return None;
        }
        hook.stack_recorded = true;
        Some(())
    }

    /// Records the ends that were held back, as far as there is room.
    #[inline]
    fn record_pending_ends(&mut self, hook: &mut HookContext) {
        if !self.blocks.ends.is_empty() {
            self.lane.put_ends(hook, &mut self.blocks.ends);
        }
        if let Some(tags) = &mut self.tags
            && !tags.ends.is_empty()
        {
            self.lane.put_ends(hook, &mut tags.ends);
        }
    }

    /// Records the ends that were held back even if that means waiting for the
    /// writer thread: this may be the last chance. Not inside a hook.
    pub(crate) fn settle(&mut self, hook: &mut HookContext) {
        const LONGEST: Duration = Duration::from_secs(10);
        let start = Instant::now();
        self.record_pending_ends(hook);
        while self.has_pending_ends() && self.lane.state.is_live() && start.elapsed() < LONGEST {
            self.lane.producer.wait_for_buffer(WAIT_STEP);
            self.record_pending_ends(hook);
        }
    }

    fn has_pending_ends(&self) -> bool {
        !self.blocks.ends.is_empty() || self.tags.as_ref().is_some_and(|tags| !tags.ends.is_empty())
    }

    /// After a minor collection, or after marking or compaction: asks for the fate of the blocks
    /// of that generation.
    pub(crate) fn sweep(
        &mut self,
        hook: &mut HookContext,
        generation: Generation,
        mut fate: impl FnMut(usize) -> Fate,
    ) {
        let Recorder { blocks, tags, lane, .. } = self;
        blocks.sweep(generation, &mut fate, |ends| lane.put_ends(hook, ends));
        if let Some(tags) = tags {
            tags.sweep(generation, fate, |ends| lane.put_ends(hook, ends));
        }
        self.record_pending_ends(hook);
        self.count_blocks();
    }

    /// Records the promotion or collection of a block that is tracked by its
    /// address.
    pub(crate) fn record_end(&mut self, hook: &mut HookContext, end: EndWord) {
        self.blocks.ends.push(end);
        self.record_pending_ends(hook);
    }

    /// Adopts another mutator's blocks that carry a tag. Without memory they stay alive in the
    /// sidecar.
    pub(crate) fn adopt_tags(&mut self, other: &mut Generations) {
        if !other.is_empty()
            && let Some(tags) = self.tags_to_add_to()
        {
            tags.adopt(other);
        }
    }

    /// Where blocks that carry a tag go. `None` without memory.
    pub(crate) fn tags_to_add_to(&mut self) -> Option<&mut Generations> {
        if self.tags.is_none() {
            self.tags = Generations::new();
        }
        self.tags.as_mut()
    }

    /// Updates the published number of tracked blocks.
    pub(crate) fn count_blocks(&self) {
        self.lane.counters.live_blocks.set(self.blocks.len() as u64);
    }
}
