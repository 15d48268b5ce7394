//! One pass over the events of a trace, from which every report follows.
//!
//! Events come in the order of time. [`Aggregator::aggregate`] can be called at
//! any moment: it brings the aggregate up to date, lends it, and more events may
//! follow. Some figures are therefore kept lazily, and settled only then: the
//! counts at the last peak, the slice of time that is not over, the survivors.
//!
//! Memory is bounded: live objects ([`crate::live`]), call paths
//! ([`crate::paths`]), the time line and the names of the trace take less than
//! 450 MB together, whatever the trace.

mod last_stacks;
mod lifecycle;
#[cfg(test)]
pub(crate) mod tests;

use std::rc::Rc;

use heaptap_trace::{Allocation, Event, EventKind, LocationTable, Source, TraceInfo};

use crate::aggregate::{Aggregate, Survivor};
use crate::estimate::Scale;
use crate::lifespans::Lifespans;
use crate::live::{self, LiveObjects};
use crate::paths::Bounds;
use crate::select::Selection;

use last_stacks::LastStacks;

/// How much of a stack is kept, and so what a path is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The innermost frame: all that a table of sites needs.
    #[default]
    Innermost,
    /// Every frame.
    Whole,
    /// The label under which the block was allocated.
    Label,
    /// The domain in which the block was allocated, and no frame.
    Domain,
    /// Where the block was allocated: [`Source`], and no frame.
    Source,
}

/// What to aggregate.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The blocks that count.
    pub selection: Selection,
    /// The result of a first pass, if the selection restricts lifetimes.
    pub lifespans: Option<Rc<Lifespans>>,
    /// How much of each stack is kept.
    pub depth: Depth,
    /// The time at which to record what is alive, in microseconds since the start.
    pub at: Option<u64>,
    /// What to follow of each path over time.
    pub follow: Follow,
}

/// What is followed of each path over time. Anything but `Nothing` lowers the
/// bounds of the call tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// Nothing.
    #[default]
    Nothing,
    /// The live size: for leaks.
    LiveSize,
    /// Allocations and collections: for time lines.
    Flows,
}

/// Aggregates the events of a trace.
pub struct Aggregator {
    options: Options,
    /// Up to date but for the figures that [`Aggregator::settle`] brings in.
    aggregate: Aggregate,
    /// The time at which the trace starts.
    start: u64,
    last_stacks: LastStacks,
    live: LiveObjects,
    /// The time `options.at` has not passed yet.
    at_is_due: bool,
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
        Aggregator {
            at_is_due: options.at.is_some(),
            options,
            aggregate: Aggregate::new(scale, most_paths),
            start: info.start_time,
            last_stacks: LastStacks::default(),
            live: LiveObjects::new(most_live),
        }
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event<'_>, table: &LocationTable) {
        let time = event.time.saturating_sub(self.start);
        self.aggregate.events += 1;
        if time > self.aggregate.end {
            self.pass_time(time);
        }
        match event.kind {
            EventKind::Alloc(allocation) => self.allocate(AllocationEvent {
                time,
                domain: event.domain,
                allocation: &allocation,
                table,
            }),
            EventKind::Promote(id) => self.promote(id),
            EventKind::Collect(id) => self.collect(time, id),
            // A kind that no report counts.
            _ => {}
        }
    }

    /// Called before the first event at a time later than that of the last event.
    fn pass_time(&mut self, time: u64) {
        if self.at_is_due && self.options.at.is_some_and(|at| time > at) {
            self.record_live();
            self.at_is_due = false;
        }
        let Aggregate { growth, flows, paths, end, .. } = &mut self.aggregate;
        match self.options.follow {
            Follow::LiveSize if growth.is_due(time) => {
                let live = paths.counts.iter().map(|c| u32::try_from(c.live).unwrap_or(u32::MAX));
                growth.take(time, || live.clone().collect());
            }
            Follow::Flows if flows.is_due(time) => flows.take(time, &paths.counts),
            _ => {}
        }
        *end = time;
    }

    /// Records what is alive now as what is alive at `options.at`.
    fn record_live(&mut self) {
        self.aggregate.at_level = self.live.level();
        for counts in &mut self.aggregate.paths.counts {
            counts.at = counts.live;
        }
    }

    fn allocate(&mut self, event: AllocationEvent<'_>) {
        if self.aggregate.paths.is_full() {
            self.prune();
        }
        let AllocationEvent { time, domain, allocation, .. } = event;
        let Aggregate { frames, paths, scale, timeline, .. } = &mut self.aggregate;
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
        let counts = &mut paths.counts[path as usize];
        counts.allocated = counts.allocated.saturating_add(samples);
        // A block of n words and a header has λ(n + 1) samples on average.
        counts.blocks += samples as f64 / ((allocation.length as f64 + 1.0) * scale.rate);
        let bucket = timeline.at(time);
        bucket.allocated = bucket.allocated.saturating_add(samples);
        self.aggregate.allocated = self.aggregate.allocated.saturating_add(samples);
        let of_source = match allocation.source {
            Source::Minor => Some(&mut self.aggregate.young),
            Source::External => Some(&mut self.aggregate.external),
            Source::Major => None,
        };
        if let Some(sum) = of_source {
            *sum = sum.saturating_add(samples);
        }
        if self.live.is_full() {
            self.thin();
        }
        if self.live.follows(allocation.id, samples) {
            self.born(time, path, allocation, samples);
        }
    }

    /// Drops the lightest paths when there are too many.
    fn prune(&mut self) {
        let Aggregate { paths, peak, growth, flows, .. } = &mut self.aggregate;
        paths.settle(peak.number());
        let moved = paths.prune();
        self.live.move_paths(&moved);
        growth.move_paths(&moved, paths.counts.len());
        flows.move_paths(&moved, paths.counts.len());
        self.last_stacks.forget();
    }

    /// Everything up to the last event: what [`Aggregator::finish`] would return
    /// if the trace ended here. Takes time in proportion to the live objects and
    /// the paths. More events may follow.
    pub fn aggregate(&mut self) -> &Aggregate {
        self.settle();
        &self.aggregate
    }

    /// The aggregate after the last event.
    pub fn finish(mut self) -> Aggregate {
        self.settle();
        self.aggregate.frames.drop_index();
        self.aggregate
    }

    /// Brings the lazy figures up to date. Each of them is set, not added to, so
    /// that it comes out the same however often this is called.
    fn settle(&mut self) {
        // More events may have that very time, so it stays due.
        if self.at_is_due && self.options.at.is_some_and(|at| at <= self.aggregate.end) {
            self.record_live();
        }
        let aggregate = &mut self.aggregate;
        aggregate.level = self.live.level();
        aggregate.paths.settle(aggregate.peak.number());
        if self.options.follow == Follow::Flows {
            aggregate.flows.settle(&aggregate.paths.counts);
        }
        aggregate.survivors.clear();
        let (mut survived, mut young) = (0_u64, 0_u64);
        for (_, object) in self.live.iter() {
            let samples = object.samples() << self.live.level_of(object.samples());
            survived = survived.saturating_add(samples);
            if !object.is_old() {
                young = young.saturating_add(samples);
            }
            if self.options.follow == Follow::LiveSize {
                let samples = u32::try_from(samples).unwrap_or(u32::MAX);
                aggregate.survivors.push(Survivor {
                    birth: object.time(),
                    path: object.path(),
                    samples,
                });
            }
        }
        aggregate.live_young = young;
        aggregate.lifetimes.set_survivors(survived);
    }
}
