//! One reading of a trace, from which everything that is reported follows.
//!
//! Events come in the order of time. What is kept is bounded: the living objects
//! ([`crate::live`]), the call paths ([`crate::paths`]), the time line and the
//! names of the trace; together less than 450 MB whatever the trace.

mod living;
mod walks;

use std::rc::Rc;

use heaptap_trace::{Allocation, Event, EventKind, LocationTable, Source, TraceInfo};

use crate::aggregate::Aggregate;
use crate::estimate::Scale;
use crate::flows::Flows;
use crate::growth::Growth;
use crate::lifespans::Lifespans;
use crate::lifetimes::Lifetimes;
use crate::live::{self, Live};
use crate::paths::{Bounds, Paths};
use crate::peak::Peak;
use crate::select::Selection;
use crate::timeline::Timeline;

use walks::Walks;

/// What of a stack is kept, and so what a path is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The innermost frame: all that a table of sites needs.
    #[default]
    Innermost,
    /// All of it.
    Whole,
    /// The label under which it was allocated.
    Label,
    /// The domain in which it was allocated, and nothing of the stack.
    Domain,
}

/// What to gather.
#[derive(Clone, Default)]
pub struct Options {
    /// Which blocks count.
    pub selection: Selection,
    /// If the selection says how long blocks live: what a first reading found.
    pub lifespans: Option<Rc<Lifespans>>,
    /// What of their stacks is kept.
    pub depth: Depth,
    /// The time at which to note what is alive, in microseconds since the start.
    pub at: Option<u64>,
    /// What to follow of each path over time.
    pub follow: Follow,
}

/// What is followed of each path over time. It makes the tree's bounds smaller.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Follow {
    /// Nothing.
    #[default]
    Nothing,
    /// Its live size: for leaks.
    LiveSize,
    /// What comes and what goes: for time lines.
    Flows,
}

/// A reading under way.
pub struct Gather {
    options: Options,
    scale: Scale,
    start: u64,
    end: u64,
    walks: Walks,
    paths: Paths,
    live: Live,
    peak: Peak,
    timeline: Timeline,
    lifetimes: Lifetimes,
    growth: Growth,
    flows: Flows,
    at_is_due: bool,
    at_level: u32,
    /// How many samples a sample's object has, on average over samples: objects
    /// that are dropped together make more noise than samples alone.
    cluster: f64,
    allocated: u64,
    young: u64,
    promoted: u64,
    events: u64,
}

impl Gather {
    /// Begins with what the trace says of itself.
    pub fn new(info: &TraceInfo, options: Options) -> Self {
        let most = match options.follow {
            Follow::Nothing => Bounds::USUAL,
            Follow::LiveSize | Follow::Flows => Bounds::FOLLOWED,
        };
        Gather::bounded(info, options, live::MOST, most)
    }

    /// The same with bounds of one's own on objects and paths.
    pub(crate) fn bounded(
        info: &TraceInfo,
        options: Options,
        most_live: usize,
        most_paths: Bounds,
    ) -> Self {
        let word_bytes = f64::from(info.word_size / 8);
        Gather {
            at_is_due: options.at.is_some(),
            options,
            scale: Scale { rate: info.sample_rate, word_bytes },
            start: info.start_time,
            end: 0,
            walks: Walks::default(),
            paths: Paths::new(most_paths),
            live: Live::new(most_live),
            peak: Peak::default(),
            timeline: Timeline::new(),
            lifetimes: Lifetimes::new(),
            growth: Growth::new(),
            flows: Flows::new(),
            at_level: 0,
            cluster: 1.0,
            allocated: 0,
            young: 0,
            promoted: 0,
            events: 0,
        }
    }

    /// Takes the next event, in the order of time.
    pub fn event(&mut self, event: &Event<'_>, table: &LocationTable) {
        let time = event.time.saturating_sub(self.start);
        self.events += 1;
        if time > self.end {
            self.pass_time(time);
        }
        match event.kind {
            EventKind::Alloc(allocation) => {
                self.allocate(time, event.domain, &allocation, table);
            }
            EventKind::Promote(id) => self.promote(id),
            EventKind::Collect(id) => self.collect(time, id),
        }
    }

    /// Before anything happens at a later time than before.
    fn pass_time(&mut self, time: u64) {
        if self.at_is_due && self.options.at.is_some_and(|at| time > at) {
            self.note_live();
        }
        match self.options.follow {
            Follow::LiveSize if self.growth.is_due(time) => {
                let counts = &self.paths.counts;
                let live = || counts.iter().map(|c| u32::try_from(c.live).unwrap_or(u32::MAX));
                self.growth.take(time, || live().collect());
            }
            Follow::Flows if self.flows.is_due(time) => self.flows.take(time, &self.paths.counts),
            _ => {}
        }
        self.end = time;
    }

    fn note_live(&mut self) {
        self.at_is_due = false;
        self.at_level = self.live.level();
        for counts in &mut self.paths.counts {
            counts.at = counts.live;
        }
    }

    fn allocate(
        &mut self,
        time: u64,
        domain: u16,
        allocation: &Allocation<'_>,
        table: &LocationTable,
    ) {
        if self.paths.is_full() {
            self.prune();
        }
        let (node, marks) =
            self.walks.walk(&mut self.paths, &self.options, table, (domain, allocation));
        let words = allocation.length.saturating_mul(self.scale.word_bytes as u64);
        let Options { selection, lifespans, .. } = &self.options;
        if !selection.accepts(marks)
            || !selection.accepts_block(time, words, domain)
            || lifespans.as_ref().is_some_and(|chosen| !chosen.contains(allocation.id))
        {
            return;
        }
        let samples = allocation.samples.min(live::MOST_SAMPLES);
        let path = self.paths.path(node);
        let counts = &mut self.paths.counts[path as usize];
        counts.allocated = counts.allocated.saturating_add(samples);
        // A block of n words and a header has λ(n + 1) samples on average.
        counts.blocks += samples as f64 / ((allocation.length as f64 + 1.0) * self.scale.rate);
        self.allocated = self.allocated.saturating_add(samples);
        if allocation.source == Source::Minor {
            self.young = self.young.saturating_add(samples);
        }
        let bucket = self.timeline.at(time);
        bucket.allocated = bucket.allocated.saturating_add(samples);
        if self.live.is_full() {
            self.thin();
        }
        if self.live.follows(allocation.id, samples) {
            self.born(time, path, allocation, samples);
        }
    }

    /// Too many paths.
    fn prune(&mut self) {
        self.paths.settle(self.peak.number());
        let moved = self.paths.prune();
        self.live.move_paths(&moved);
        self.growth.move_paths(&moved, self.paths.counts.len());
        self.flows.move_paths(&moved, self.paths.counts.len());
        self.walks.forget();
    }

    /// After the last event.
    pub fn finish(mut self) -> Aggregate {
        if self.at_is_due && self.options.at.is_some_and(|at| at <= self.end) {
            self.note_live();
        }
        self.paths.settle(self.peak.number());
        if self.options.follow == Follow::Flows {
            self.flows.end_slice(&self.paths.counts);
        }
        let mut survivors = Vec::new();
        for (_, object) in self.live.iter() {
            let level = self.live.level_of(object.samples());
            self.lifetimes.survived(object.samples() << level);
            if self.options.follow == Follow::LiveSize {
                let samples = u32::try_from(object.samples() << level).unwrap_or(u32::MAX);
                survivors.push((object.time(), object.path(), samples));
            }
        }
        Aggregate {
            scale: self.scale,
            events: self.events,
            end: self.end,
            allocated: self.allocated,
            young: self.young,
            promoted: self.promoted,
            level: self.live.level(),
            cluster: self.cluster,
            at_level: self.at_level,
            peak: self.peak,
            timeline: self.timeline,
            lifetimes: self.lifetimes,
            growth: self.growth,
            flows: self.flows,
            survivors,
            codes: self.walks.frames.into_codes(),
            paths: self.paths,
        }
    }
}
