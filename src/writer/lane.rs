//! One lane's state in the trace, and its allocations.
//!
//! A lane's records are relative to those before them: a time and a stack stay
//! until they change. Here they become events with absolute times, whole stacks
//! and ids.

use std::slice::Iter;

use heaptap_trace::{Block, DomainSink, ElidableFrames, SmallAlloc, Source, WriteError};

use crate::queue::{BlockId, LEFT_OUT, Part, Sample};
use crate::sys::prefetch::prefetch;
use crate::writer::block_ids::{BlockIds, KnownBlock};
use crate::writer::context::Context;
use crate::writer::lane_stack::{LaneStack, common_outermost};

/// How many bytes ahead words are prefetched: another core has written them.
/// Bench: `benches/writer.rs`.
const PREFETCH_DISTANCE: usize = 64 * size_of::<u64>();

/// Bytes of a cache line. Most samples span more than one.
const CACHE_LINE: usize = 64;

/// What the trace file knows of one lane.
pub(super) struct Lane {
    pub(super) stack: LaneStack,
    pub(super) block_ids: BlockIds,
    /// Microseconds since the epoch, of the last event or later: the times of a
    /// domain never decrease.
    pub(super) time: u64,
    /// Of a series: no allocation of the lane that is still to come has a lower id in the part.
    pub(super) next_in_part: u64,
}

impl Lane {
    /// The lane `number` in a file that begins at this time.
    pub(super) fn new(number: u16, start_time: u64) -> Lane {
        Lane {
            stack: LaneStack::default(),
            block_ids: BlockIds::from(BlockId::new(number, 0)),
            time: start_time,
            next_in_part: 0,
        }
    }

    /// Begins a new file, which knows nothing of the stacks and blocks so far.
    pub(super) fn begin_file(&mut self, start_time: u64) {
        self.block_ids = BlockIds::from(self.block_ids.next());
        self.begin_part(start_time);
    }

    /// Begins the next part of a series, in which blocks keep their ids.
    pub(super) fn begin_part(&mut self, start_time: u64) {
        self.stack.forget_written();
        self.time = self.time.max(start_time);
    }

    /// The following events happened `ticks` after the session's start.
    #[inline(always)]
    pub(super) fn set_time(&mut self, ticks: u64, context: &mut impl Context) {
        self.time = self.time.max(context.micros(ticks));
    }

    /// Writes a sample and those that follow it, and returns the words behind
    /// them. Samples come in long runs, each with its whole stack. Within a run
    /// the words of the last sample serve as the stack that the file has, and
    /// [`LaneStack`] is updated only at the end.
    #[inline(never)]
    pub(super) fn samples<'a>(
        &mut self,
        first: Sample<'a>,
        mut words: Iter<'a, u64>,
        domain: &mut impl DomainSink,
        context: &mut impl Context,
    ) -> Result<Iter<'a, u64>, WriteError> {
        let mut written = first.inner_first;
        self.set_time(first.ticks(), context);
        self.stack.replace(written);
        self.small_alloc(domain, first.length(), context)?;
        while self.stack.is_fully_written() {
            let mut allocs = std::iter::from_fn(|| {
                let ahead = words.as_slice().as_ptr().addr() + PREFETCH_DISTANCE;
                prefetch(ahead);
                prefetch(ahead + CACHE_LINE);
                let sample = Sample::decode(&mut words)?;
                self.set_time(sample.ticks(), context);
                let same = common_outermost(written, sample.inner_first);
                let inner_first = sample.inner_first.get(..sample.inner_first.len() - same)?;
                written = sample.inner_first;
                Some(SmallAlloc {
                    time: self.time,
                    length: sample.length(),
                    common_prefix: same as u64,
                    inner_first,
                })
            });
            let (ids, unusual) = domain.alloc_batch(&mut allocs);
            if ids.is_empty() && unusual.is_none() {
                break;
            }
            self.block_ids.add_all(ids);
            let same = unusual.map_or(written.len(), |alloc| alloc.common_prefix as usize);
            self.stack.set_written(written, same);
            let Some(SmallAlloc { length, .. }) = unusual else { break };
            self.small_alloc(domain, length, context)?;
        }
        Ok(words)
    }

    /// Writes the allocation of a minor block with one sample.
    #[inline(always)]
    pub(super) fn small_alloc(
        &mut self,
        domain: &mut impl DomainSink,
        length: u64,
        context: &mut impl Context,
    ) -> Result<(), WriteError> {
        let block = Block { length, samples: 1, source: Source::Minor };
        self.alloc(domain, block, Part::NONE, context)
    }

    /// Writes the allocation of a block under the lane's stack.
    #[inline(always)]
    pub(super) fn alloc(
        &mut self,
        domain: &mut impl DomainSink,
        block: Block,
        part: Part,
        context: &mut impl Context,
    ) -> Result<(), WriteError> {
        let id = self.write_alloc(domain, block, part, context)?;
        self.block_ids.add(id);
        Ok(())
    }

    /// The same without noting the block's id, which is returned.
    #[inline(always)]
    pub(super) fn write_alloc(
        &mut self,
        domain: &mut impl DomainSink,
        block: Block,
        part: Part,
        context: &mut impl Context,
    ) -> Result<u64, WriteError> {
        self.set_part(part, context);
        let (common_prefix, new) = self.stack.backtrace();
        let frames = ElidableFrames { common_prefix, new, left_out: LEFT_OUT };
        let (id, left_out) = domain.alloc_elided(self.time, block, frames, context)?;
        self.stack.backtrace_written(left_out);
        Ok(id)
    }

    /// Sets which part of a combined allocation is allocated under the lane's stack, or a block of
    /// which kind.
    #[inline(always)]
    pub(super) fn set_part(&mut self, part: Part, context: &mut impl Context) {
        if part == Part::NONE {
            self.stack.forget_part();
        } else if let Some(innermost) = self.stack.innermost() {
            self.stack.set_part_code(innermost, context.part_code(innermost, part));
        }
    }
}

/// All lanes but the one whose records are being read. Its records may name
/// blocks of the others.
pub(super) struct OtherLanes<'a> {
    before: &'a [Lane],
    behind: &'a [Lane],
}

impl<'a> OtherLanes<'a> {
    /// The lane with this number, and the others.
    pub(super) fn split(
        lanes: &'a mut [Lane],
        number: u16,
    ) -> Option<(&'a mut Lane, OtherLanes<'a>)> {
        let (before, rest) = lanes.split_at_mut_checked(usize::from(number))?;
        let (lane, behind) = rest.split_first_mut()?;
        Some((lane, OtherLanes { before, behind }))
    }

    /// What the file knows of a block of any lane. No block of a lane that has not
    /// been read is known yet.
    #[cold]
    pub(super) fn find(&self, lane: &Lane, block: BlockId) -> KnownBlock {
        let mut lanes = self.before.iter().chain([lane]).chain(self.behind);
        let owner = lanes.nth(usize::from(block.lane()));
        owner.map_or(KnownBlock::NotYet, |lane| lane.block_ids.find(block))
    }
}
