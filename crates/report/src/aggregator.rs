//! One pass over the events of a trace, from which every report follows.
//!
//! Events come in the order of time. [`Aggregator::aggregate`] can be called at
//! any moment: it brings the aggregate up to date, lends it, and more events may
//! follow. Counting itself is the job of [`crate::tally`].
//!
//! Memory is bounded: live objects ([`crate::live`]), call paths
//! ([`crate::paths`]), the time line and the names of the trace take less than
//! 450 MB together, whatever the trace.

mod last_stacks;
mod lifecycle;
#[cfg(test)]
pub(crate) mod tests;

use heaptap_trace::{Allocation, Event, EventKind, LocationTable, TraceInfo};

use crate::aggregate::Aggregate;
use crate::blocks::recorder::Recorder;
use crate::blocks::{BlockRow, BlockTable, NEVER};
use crate::classes::Classes;
use crate::estimate::Scale;
use crate::live::{self, LiveObjects};
use crate::options::Options;
use crate::paths::Bounds;
use crate::tally::{Birth, Follow, Tally};

use last_stacks::LastStacks;

/// Aggregates the events of a trace.
pub struct Aggregator {
    options: Options,
    tally: Tally,
    /// The time at which the trace starts.
    start: u64,
    last_stacks: LastStacks,
    live: LiveObjects,
    /// Records the table of blocks, if one is wanted.
    recorder: Option<Recorder>,
}

/// An allocation event, with the locations that are known at that point.
#[derive(Clone, Copy)]
struct AllocationEvent<'a> {
    /// Microseconds since the start of the trace.
    time: u64,
    domain: u16,
    allocation: &'a Allocation<'a>,
    table: &'a LocationTable,
}

impl Aggregator {
    /// An aggregator for the events of the trace that `info` describes.
    pub fn new(info: &TraceInfo, options: Options) -> Self {
        let most_paths = match options.follow {
            Follow::Nothing => Bounds::USUAL,
            Follow::LiveSize | Follow::Flows => Bounds::FOLLOWED,
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
        let word_bytes = f64::from(info.word_size / 8);
        let scale = Scale { rate: info.sample_rate, word_bytes };
        let mut aggregate = Aggregate::new(scale, most_paths);
        if options.most_blocks > 0 {
            aggregate.classes = Classes::kept();
        }
        Aggregator {
            tally: Tally::new(aggregate, options.follow, options.at),
            recorder: (options.most_blocks > 0).then(|| Recorder::new(options.most_blocks)),
            options,
            start: info.start_time,
            last_stacks: LastStacks::default(),
            live: LiveObjects::new(most_live),
        }
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event<'_>, table: &LocationTable) {
        let time = event.time.saturating_sub(self.start);
        self.tally.aggregate.events += 1;
        self.tally.advance(time, self.live.level());
        match event.kind {
            EventKind::Alloc(allocation) => self.allocate(AllocationEvent {
                time,
                domain: event.domain,
                allocation: &allocation,
                table,
            }),
            EventKind::Promote(id) => self.promote(time, id),
            EventKind::Collect(id) => self.collect(time, id),
            // A kind that no report counts.
            _ => {}
        }
    }

    fn allocate(&mut self, event: AllocationEvent<'_>) {
        if self.tally.aggregate.paths.is_full() {
            self.prune();
        }
        let AllocationEvent { time, domain, allocation, .. } = event;
        let Aggregate { frames, paths, scale, classes, .. } = &mut self.tally.aggregate;
        let (node, marks) = self.last_stacks.walk(frames, paths, &self.options, event);
        let bytes = allocation.length.saturating_mul(scale.word_bytes as u64);
        let Options { selection, lifespans, .. } = &self.options;
        if !selection.accepts(marks)
            || !selection.accepts_block(time, bytes, domain, allocation.source)
            || lifespans.as_ref().is_some_and(|chosen| !chosen.contains(allocation.id))
        {
            return;
        }
        let samples = allocation.samples.min(live::MOST_SAMPLES);
        let path = paths.path(node);
        let &Allocation { length, source, .. } = allocation;
        let class = classes.number(domain, source);
        let born = Birth { time, path, samples, length, source, class };
        self.tally.allocate(born);
        if let Some(recorder) = &mut self.recorder {
            let (id, birth) = (allocation.id, time);
            let (promotion, death) = (NEVER, NEVER);
            recorder.born(BlockRow {
                id,
                birth,
                promotion,
                death,
                length,
                samples,
                path,
                domain,
                source,
                ended: false,
            });
        }
        if self.live.is_full() {
            self.thin();
        }
        if self.live.follows(allocation.id, samples) {
            self.born(&born, allocation.id);
        }
    }

    /// Drops the lightest paths when there are too many.
    fn prune(&mut self) {
        let Aggregate { paths, peak, growth, flows, .. } = &mut self.tally.aggregate;
        paths.settle(peak.number());
        let moved = paths.prune();
        self.live.move_paths(&moved);
        if let Some(recorder) = &mut self.recorder {
            recorder.move_paths(&moved);
        }
        growth.move_paths(&moved, paths.counts.len());
        flows.move_paths(&moved, paths.counts.len());
        self.last_stacks.forget();
    }

    /// Everything up to the last event: what [`Aggregator::finish`] would return
    /// if the trace ended here. Takes time in proportion to the live objects and
    /// the paths. More events may follow.
    pub fn aggregate(&mut self) -> &Aggregate {
        self.settle();
        &self.tally.aggregate
    }

    /// The aggregate after the last event.
    pub fn finish(self) -> Aggregate {
        self.finish_with_blocks().0
    }

    /// The same with the table of blocks, which is empty unless
    /// [`Options::most_blocks`] asks for one.
    pub fn finish_with_blocks(mut self) -> (Aggregate, BlockTable) {
        self.settle();
        self.tally.aggregate.frames.drop_index();
        let blocks = self.recorder.map(Recorder::finish).unwrap_or_default();
        (self.tally.aggregate, blocks)
    }

    fn settle(&mut self) {
        self.tally.settle(self.live.iter(), self.live.level());
    }
}
