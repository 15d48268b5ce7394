//! Reads records while a series is written.
//!
//! As [`TraceFile::apply_all`](crate::writer::trace_file::TraceFile::apply_all) does for a plain trace, but block by
//! block: each allocation and each end changes what is alive.

use heaptap_trace::{Block, DomainSink, End, Source, WriteError};

use super::Series;
use crate::queue::{BlockId, BlockRun, Part, Record};
use crate::writer::block_ids::KnownBlock;
use crate::writer::context::Context;
use crate::writer::lane::{Lane, OtherLanes};

/// A lane of the series while its records are read.
pub(crate) struct SeriesLane<'a, D> {
    pub(crate) number: u16,
    pub(crate) lane: &'a mut Lane,
    pub(crate) others: OtherLanes<'a>,
    pub(crate) domain: D,
    pub(crate) series: &'a mut Series,
}

impl<D: DomainSink> SeriesLane<'_, D> {
    /// Writes the records in the lane's `words`: see
    /// [`TraceFile::apply_all`](crate::writer::trace_file::TraceFile::apply_all).
    pub(crate) fn apply_all(
        &mut self,
        words: &[u64],
        context: &mut impl Context,
    ) -> Result<usize, WriteError> {
        let mut rest = words.iter();
        while let Some(record) = Record::decode(&mut rest) {
            match record {
                Record::Sample(sample) => {
                    self.lane.set_time(sample.ticks(), context);
                    self.lane.stack.replace(sample.inner_first);
                    self.small_alloc(sample.length(), context)?;
                }
                Record::Time(ticks) => self.lane.set_time(ticks, context),
                Record::Frames { keep, new } => self.lane.stack.change(keep, new),
                Record::RepeatFrame { times } => self.lane.stack.repeat(times),
                Record::Stack { inner_first } => self.lane.stack.replace(inner_first),
                Record::SmallAlloc { length } => self.small_alloc(length, context)?,
                Record::Alloc { source, part, samples, length } => {
                    let samples = samples.clamp(1, length.saturating_add(1));
                    self.alloc(Block { length, samples, source }, part, context)?;
                }
                Record::Rate(bits) => {
                    let rate = f64::from_bits(bits);
                    if rate > 0.0 && rate <= 1.0 {
                        self.series.set_lane_rate(self.number, rate);
                    }
                }
                Record::End(end, run) => {
                    if run.first.lane() == BlockId::TAGGED {
                        run.blocks().for_each(|block| context.tagged_ended(block.number()));
                    } else if self.others.find(self.lane, run.last()) == KnownBlock::NotYet {
                        return Ok(words.len() - rest.len() - record.len());
                    } else {
                        self.end(end, run, context)?;
                    }
                }
            }
            self.series.flush_full()?;
        }
        Ok(words.len())
    }

    fn small_alloc(&mut self, length: u64, context: &mut impl Context) -> Result<(), WriteError> {
        let block = Block { length, samples: 1, source: Source::Minor };
        self.alloc(block, Part::NONE, context)
    }

    fn alloc(
        &mut self,
        block: Block,
        part: Part,
        context: &mut impl Context,
    ) -> Result<(), WriteError> {
        let (lane, number) = (&mut *self.lane, self.number);
        if let Some(rate) = self.series.other_rate(number) {
            lane.set_part(part, context);
            let birth = (lane.time, number, block);
            let (frames, position) = (lane.stack.frames(), lane.next_in_part);
            let id = self.series.stray(rate, birth, frames, position, context);
            lane.block_ids.add(id);
            return Ok(());
        }
        let id = lane.write_alloc(&mut self.domain, block, part, context)?;
        let id = self.series.id_of(id);
        lane.block_ids.add(id);
        lane.next_in_part = id + 1;
        self.series.born(id, lane.time, number, block, lane.stack.frames());
        Ok(())
    }

    /// Writes the ends of blocks, each to where the block is known.
    fn end(
        &mut self,
        end: End,
        run: BlockRun,
        context: &mut impl Context,
    ) -> Result<(), WriteError> {
        let (time, position) = (self.lane.time, self.lane.next_in_part);
        let mut in_part = 0..0;
        for block in run.blocks() {
            let KnownBlock::Id(id) = self.others.find(self.lane, block) else { continue };
            self.series.ended(end, id, time, self.number, position);
            if !self.series.is_in_part(id) {
                continue;
            }
            if in_part.end != id {
                self.write_ends(end, std::mem::replace(&mut in_part, id..id), context)?;
            }
            in_part.end = id + 1;
        }
        self.write_ends(end, in_part, context)
    }

    fn write_ends(
        &mut self,
        end: End,
        ids: std::ops::Range<u64>,
        context: &mut impl Context,
    ) -> Result<(), WriteError> {
        if ids.is_empty() {
            return Ok(());
        }
        let ids = self.series.ids_in_part(&ids);
        self.domain.end_batch(end, self.lane.time, ids, context)
    }
}
