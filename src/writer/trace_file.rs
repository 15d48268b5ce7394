//! One trace file: records in, packets out.

use std::sync::Arc;

use heaptap_trace::{
    Block, Completion, DomainSink as _, LiveSink, Locate, TraceFormat, TraceInfo, WriteError,
};

use crate::queue::{BlockId, Record};
use crate::writer::block_ids::KnownBlock;
use crate::writer::context::Context;
use crate::writer::lane::{Lane, OtherLanes};
use crate::writer::output::TraceOutput;
use crate::writer::series::{Series, SeriesLane};

/// Reads the runtime's parameters. `None` while the runtime has not set them.
pub(crate) type ReadParams = Arc<dyn Fn() -> Option<Vec<u8>> + Send + Sync>;

/// A trace file that is about to begin.
pub(crate) struct NewFile<W> {
    pub(crate) out: W,
    pub(crate) info: TraceInfo,
    /// Replaces the parameters in `info`, once it returns some.
    pub(crate) late_params: Option<ReadParams>,
}

impl<W> NewFile<W> {
    /// Completes the trace info. False if the runtime has not set its parameters yet.
    pub(crate) fn complete_info(&mut self) -> bool {
        let Some(read) = &self.late_params else { return true };
        let Some(params) = read() else { return false };
        self.info.runtime_params = params;
        true
    }
}

/// Blocks in a trace file.
pub(crate) struct IdentifiedBlocks {
    /// When the file begins, in microseconds since the epoch.
    pub(crate) start_time: u64,
    /// The id that the file has given to each, or the series of which it is a part; `None` if it
    /// has none.
    pub(crate) ids: Vec<Option<u64>>,
}

/// A trace file that is being written.
pub(crate) struct TraceFile<S> {
    sink: S,
    format: TraceFormat,
    /// By number; those that no record was read of may be missing at the end.
    lanes: Vec<Lane>,
    /// What its first packet says.
    info: TraceInfo,
    /// The series of which it is a part.
    pub(crate) series: Option<Box<Series>>,
}

impl<S: LiveSink> TraceFile<S> {
    pub(crate) fn new(
        format: TraceFormat,
        first: NewFile<S::Output>,
        series: Option<Box<Series>>,
    ) -> Result<Self, WriteError> {
        let sink = S::begin(first.out, format, &first.info)?;
        Ok(TraceFile { sink, format, lanes: Vec::new(), info: first.info, series })
    }

    /// Continues in a new file. That of a plain trace knows nothing of the blocks so far; the next
    /// part of a series has begun with them. Returns the old one, which the caller ends.
    pub(crate) fn rotate(&mut self, new: NewFile<S::Output>) -> Result<S, WriteError> {
        let sink = S::begin(new.out, self.format, &new.info)?;
        self.info = new.info;
        self.begin_lanes();
        Ok(std::mem::replace(&mut self.sink, sink))
    }

    /// The file becomes a part of this series, which has just begun.
    pub(crate) fn begin_series(&mut self, series: Box<Series>) {
        let free_id = self.sink.free_id();
        for lane in &mut self.lanes {
            lane.next_in_part = lane.next_in_part.max(free_id);
        }
        self.series = Some(series);
    }

    /// How many ids the file has used, or passed over.
    pub(crate) fn free_id(&self) -> u64 {
        self.sink.free_id()
    }

    /// Whether it can have a sidecar.
    pub(crate) fn is_file(&mut self) -> bool
    where
        S::Output: TraceOutput,
    {
        self.sink.output_mut().is_file()
    }

    /// Whether somebody has truncated the file. What is written to it is then dropped.
    pub(crate) fn was_truncated(&mut self) -> bool
    where
        S::Output: TraceOutput,
    {
        self.sink.output_mut().was_truncated()
    }

    /// Begins a trace in the same file, after it was truncated: as in a new file.
    pub(crate) fn restart(&mut self, start_time: u64) -> Result<(), WriteError>
    where
        S::Output: TraceOutput,
    {
        self.sink.output_mut().restart()?;
        self.info.start_time = start_time;
        if let Some(series) = &mut self.series {
            series.restarted(self.sink.free_id());
        }
        self.sink.restart(&self.info)?;
        self.begin_lanes();
        Ok(())
    }

    fn begin_lanes(&mut self) {
        for lane in &mut self.lanes {
            match self.series {
                Some(_) => lane.begin_part(self.info.start_time),
                None => lane.begin_file(self.info.start_time),
            }
        }
    }

    /// Writes the records in a lane's `words`, and returns how many words were
    /// read: fewer than all if a record names a block whose allocation, on
    /// another lane, has not been read yet.
    #[inline(never)]
    pub(crate) fn apply_all(
        &mut self,
        number: u16,
        words: &[u64],
        context: &mut impl Context,
    ) -> Result<usize, WriteError> {
        self.add_lanes(number);
        let Some((lane, others)) = OtherLanes::split(&mut self.lanes, number) else {
            return Ok(0);
        };
        let mut domain = self.sink.domain(number);
        if let Some(series) = &mut self.series {
            return SeriesLane { number, lane, others, domain, series }.apply_all(words, context);
        }
        let mut rest = words.iter();
        while let Some(record) = Record::decode(&mut rest) {
            match record {
                Record::Sample(sample) => {
                    rest = lane.samples(sample, rest, &mut domain, context)?;
                }
                Record::Time(ticks) => lane.set_time(ticks, context),
                Record::Frames { keep, new } => lane.stack.change(keep, new),
                Record::RepeatFrame { times } => lane.stack.repeat(times),
                Record::Stack { inner_first } => lane.stack.replace(inner_first),
                // One rate so far, which is the file's.
                Record::Rate(_) => {}
                Record::SmallAlloc { length } => lane.small_alloc(&mut domain, length, context)?,
                Record::Alloc { source, part, samples, length } => {
                    let samples = samples.clamp(1, length.saturating_add(1));
                    lane.alloc(&mut domain, Block { length, samples, source }, part, context)?;
                }
                Record::End(end, run) => {
                    if let Some(ids) = lane.block_ids.find_recent(run) {
                        domain.end_batch(end, lane.time, ids, context)?;
                        continue;
                    }
                    if run.first.lane() == BlockId::TAGGED {
                        run.blocks().for_each(|block| context.tagged_ended(block.number()));
                        continue;
                    }
                    if others.find(lane, run.last()) == KnownBlock::NotYet {
                        return Ok(words.len() - rest.len() - record.len());
                    }
                    for block in run.blocks() {
                        if let KnownBlock::Id(id) = others.find(lane, block) {
                            domain.end_batch(end, lane.time, id..id + 1, context)?;
                        }
                    }
                }
            }
        }
        debug_assert!(rest.as_slice().is_empty(), "words that are no record");
        Ok(words.len())
    }

    /// The rate of the file.
    pub(crate) fn rate(&self) -> f64 {
        self.info.sample_rate
    }

    /// Which blocks of the file these are, or of the series.
    pub(crate) fn identify(&self, blocks: &[BlockId]) -> IdentifiedBlocks {
        let ids = blocks.iter().map(|&block| self.id(block)).collect();
        IdentifiedBlocks { start_time: self.info.start_time, ids }
    }

    fn id(&self, block: BlockId) -> Option<u64> {
        let lane = self.lanes.get(usize::from(block.lane()))?;
        match lane.block_ids.find(block) {
            KnownBlock::Id(id) => Some(id),
            KnownBlock::Earlier | KnownBlock::NotYet => None,
        }
    }

    /// When the file begins, in microseconds since the epoch.
    pub(crate) fn start_time(&self) -> u64 {
        self.info.start_time
    }

    /// Adds the lanes up to this one.
    fn add_lanes(&mut self, number: u16) {
        for new in self.lanes.len()..=usize::from(number) {
            self.lanes.push(Lane::new(new as u16, self.info.start_time));
        }
    }

    /// Sets whether the trace is complete.
    pub(crate) fn set_completion(&mut self, completion: Completion)
    where
        S::Output: TraceOutput,
    {
        self.sink.output_mut().set_completion(completion);
    }

    /// Writes everything that was encoded so far.
    pub(crate) fn flush(&mut self, locate: &mut impl Locate) -> Result<(), WriteError> {
        self.sink.flush(locate)?;
        self.series.as_mut().map_or(Ok(()), |series| series.flush())?;
        Ok(())
    }

    /// Ends the file, which covers its program until this time, in microseconds since the epoch:
    /// nothing may be written afterwards.
    pub(crate) fn end(&mut self, time: u64, locate: &mut impl Locate) -> Result<(), WriteError> {
        self.sink.end(time, locate)?;
        self.series.as_mut().map_or(Ok(()), |series| series.end_part(time))?;
        Ok(())
    }
}

#[cfg(test)]
#[path = "trace_file_tests.rs"]
mod tests;
