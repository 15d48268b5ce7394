//! One pass over the events of a trace, from which every report follows.
//!
//! Events come in the order of time. [`Aggregator::aggregate`] can be called at
//! any moment: it brings the aggregate up to date, lends it, and more events may
//! follow.
//!
//! The pass has two halves: [`crate::EventResolver`] finds call paths, and
//! [`crate::EventCounter`] counts. [`Aggregator::split`] takes them apart, so that each can
//! run on a thread of its own. The figures are the same.
//!
//! Memory is bounded: live objects ([`crate::live`]), call paths
//! ([`crate::paths`]), the time line and the names of the trace take less than
//! 450 MB together, whatever the trace.

#[cfg(test)]
pub(crate) mod tests;

use std::mem;
use std::ops::Range;

use heaptap_trace::{Event, LocationTable, TraceInfo};

use crate::aggregate::Aggregate;
use crate::block_counter::{BlockCounter, OverTime};
use crate::blocks::BlockTable;
use crate::blocks::recorder::Recorder;
use crate::classes::Classes;
use crate::cohorts::Cohorts;
use crate::event_counter::EventCounter;
use crate::ids::IdMap;
use crate::live::{self, LiveObjects};
use crate::options::Options;
use crate::paths::{Bounds, Paths};
use crate::resolver::{EventResolver, Resolver, TreeMut};
use crate::trace_ending::TraceEnding;

/// Aggregates the events of a trace.
pub struct Aggregator {
    resolver: Resolver,
    /// With the call tree, in its aggregate.
    counter: EventCounter,
}

impl Aggregator {
    /// An aggregator for the events of the trace that `info` describes.
    pub fn new(info: &TraceInfo, options: Options) -> Self {
        let most_paths = match options.over_time {
            OverTime::Nothing | OverTime::LiveSize => Bounds::USUAL,
            OverTime::Flows => Bounds::WITH_FLOWS,
        };
        Aggregator::bounded(info, options, live::MOST, most_paths)
    }

    /// The same with other bounds on live objects and paths.
    pub(crate) fn bounded(
        info: &TraceInfo,
        options: Options,
        most_live: usize,
        most_paths: Bounds,
    ) -> Self {
        let word_bytes = info.word_size / 8;
        let rates = options.rates.clone();
        let scale = rates.scale(info.sample_rate, f64::from(word_bytes));
        let mut aggregate = Aggregate::new(scale, rates.clone(), most_paths);
        if options.most_blocks > 0 {
            aggregate.classes = Classes::kept(rates.are_several());
            aggregate.paths.keep_for_table(options.most_blocks);
        }
        aggregate.growth.cohorts = Cohorts::new(options.truths.clone());
        let promoted_path = aggregate.add_promoted_path(options.depth);
        let counter = EventCounter {
            block_counter: BlockCounter::new(aggregate, options.over_time, options.at),
            live: LiveObjects::new(most_live, rates.clone()),
            older: IdMap::default(),
            recorder: (options.most_blocks > 0).then(|| Recorder::new(options.most_blocks, rates)),
            promoted_path,
        };
        let resolver = Resolver::new(options, info.start_time, u64::from(word_bytes));
        Aggregator { resolver, counter }
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event<'_>, table: &LocationTable) {
        self.event_at(event, table, 0);
    }

    /// The same of a trace with several rates, where the last block was sampled at the one with this number:
    /// [`crate::Rates::number`].
    pub fn event_at(&mut self, event: &Event<'_>, table: &LocationTable, rate: u32) {
        let Aggregator { resolver, counter } = self;
        let Aggregate { frames, paths, .. } = &mut counter.block_counter.aggregate;
        if let Some(moves) = resolver.make_room(TreeMut { frames, paths }, event) {
            counter.move_paths(&moves);
        }
        let Aggregate { frames, paths, .. } = &mut counter.block_counter.aggregate;
        let resolved = resolver.resolve(TreeMut { frames, paths }, event, table, rate);
        counter.event(&resolved);
    }

    /// Takes the end of one of several traces: see [`EventCounter::end_trace`].
    pub fn end_trace(&mut self, ids: Range<u64>, ending: TraceEnding) {
        self.counter.end_trace(ids, ending);
    }

    /// The two halves, to go on with the next event. All that the first returns must
    /// reach the second, in that order.
    pub fn split(mut self) -> (EventResolver, EventCounter) {
        let Aggregate { frames, paths, .. } = &mut self.counter.block_counter.aggregate;
        let frames = mem::take(frames);
        let paths = mem::replace(paths, Paths::new(Bounds::USUAL));
        (EventResolver { resolver: self.resolver, frames, paths }, self.counter)
    }

    /// Puts the halves that [`Aggregator::split`] returned together again.
    pub fn join(resolver: EventResolver, mut counter: EventCounter) -> Self {
        let EventResolver { resolver, frames, paths } = resolver;
        counter.block_counter.aggregate.frames = frames;
        counter.block_counter.aggregate.paths = paths;
        Aggregator { resolver, counter }
    }

    /// Everything up to the last event: what [`Aggregator::finish`] would return
    /// if the trace ended here. Takes time in proportion to the live objects and
    /// the paths. More events may follow.
    pub fn aggregate(&mut self) -> &Aggregate {
        self.counter.settle();
        &self.counter.block_counter.aggregate
    }

    /// The same with the table of blocks so far, which is empty unless
    /// [`Options::most_blocks`] asks for one.
    pub fn aggregate_with_blocks(&mut self) -> (&Aggregate, &BlockTable) {
        self.counter.settle();
        (&self.counter.block_counter.aggregate, self.counter.blocks())
    }

    /// The aggregate after the last event.
    pub fn finish(self) -> Aggregate {
        self.finish_with_blocks().0
    }

    /// The same with the table of blocks, which is empty unless
    /// [`Options::most_blocks`] asks for one.
    pub fn finish_with_blocks(self) -> (Aggregate, BlockTable) {
        self.counter.finish()
    }
}
