//! One reading of a trace, from which everything that is reported follows.
//!
//! Events come in the order of time. What is kept is bounded: the living objects
//! ([`crate::live`]), the call paths ([`crate::paths`]), the time line and the
//! names of the trace; together less than 450 MB whatever the trace.

use std::rc::Rc;

use hashbrown::HashMap;
use heaptap_trace::{Allocation, Code, Event, Happening, LocationTable, Source, TraceInfo};

use crate::aggregate::Aggregate;
use crate::estimate::Scale;
use crate::frames::Frames;
use crate::growth::Growth;
use crate::lifespans::Lifespans;
use crate::lifetimes::Lifetimes;
use crate::live::{self, Live, Object};
use crate::paths::{self, NOWHERE, Node, Paths, ROOT};
use crate::peak::{Peak, first_half};
use crate::select::{Marks, Selection};
use crate::timeline::Timeline;

/// How much of a stack is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Depth {
    /// The innermost frame: all that a table of sites needs.
    #[default]
    Innermost,
    /// All of it.
    Whole,
}

/// What to gather.
#[derive(Clone, Default)]
pub struct Options {
    /// Which blocks count.
    pub selection: Selection,
    /// If the selection says how long blocks live: what a first reading found.
    pub lifespans: Option<Rc<Lifespans>>,
    /// How much of their stacks is kept.
    pub depth: Depth,
    /// The time at which to note what is alive, in microseconds since the start.
    pub at: Option<u64>,
    /// Whether to follow each path's live size over time.
    pub growth: bool,
}

/// The last stack of a domain.
#[derive(Default)]
struct Walk {
    codes: Vec<Code>,
    /// The node of each frame, where whole stacks are kept.
    nodes: Vec<Node>,
    /// What the frames up to each one say to the selection.
    marks: Vec<Marks>,
}

/// A reading under way.
pub struct Gather {
    options: Options,
    scale: Scale,
    start: u64,
    end: u64,
    frames: Frames,
    paths: Paths,
    walks: HashMap<u16, Walk>,
    live: Live,
    peak: Peak,
    timeline: Timeline,
    lifetimes: Lifetimes,
    growth: Growth,
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
        let most_nodes =
            if options.growth { paths::MOST_NODES_WITH_GROWTH } else { paths::MOST_NODES };
        Gather::bounded(info, options, live::MOST, most_nodes)
    }

    /// The same with bounds of one's own on objects and nodes.
    pub(crate) fn bounded(
        info: &TraceInfo,
        options: Options,
        most_live: usize,
        most_nodes: usize,
    ) -> Self {
        let word_bytes = f64::from(info.word_size / 8);
        Gather {
            at_is_due: options.at.is_some(),
            options,
            scale: Scale { rate: info.sample_rate, word_bytes },
            start: info.start_time,
            end: 0,
            frames: Frames::default(),
            paths: Paths::new(most_nodes),
            walks: HashMap::new(),
            live: Live::new(most_live),
            peak: Peak::default(),
            timeline: Timeline::new(),
            lifetimes: Lifetimes::new(),
            growth: Growth::new(),
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
        match event.what {
            Happening::Alloc(allocation) => {
                self.allocate(time, event.domain, &allocation, table);
            }
            Happening::Promote(id) => self.promote(id),
            Happening::Collect(id) => self.collect(time, id),
        }
    }

    /// Before anything happens at a later time than before.
    fn pass_time(&mut self, time: u64) {
        if self.at_is_due && self.options.at.is_some_and(|at| time > at) {
            self.note_live();
        }
        if self.options.growth && self.growth.is_due(time) {
            let counts = &self.paths.counts;
            let live = || counts.iter().map(|c| u32::try_from(c.live).unwrap_or(u32::MAX));
            self.growth.take(time, || live().collect());
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
        let (node, marks) = self.walk(domain, allocation, table);
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

    /// The node of an allocation's path, and what its frames say.
    fn walk(
        &mut self,
        domain: u16,
        allocation: &Allocation<'_>,
        table: &LocationTable,
    ) -> (Node, Marks) {
        let codes = allocation.backtrace.frames;
        let Options { selection, depth, .. } = &self.options;
        let Some(&innermost) = codes.last() else { return (self.paths.child(ROOT, NOWHERE), 0) };
        let whole = *depth == Depth::Whole;
        if !whole && !selection.looks_at_frames() {
            let frame = self.frames.number(innermost, table, selection);
            return (self.paths.child(ROOT, frame), 0);
        }
        let walk = self.walks.entry(domain).or_default();
        let stated = usize::try_from(allocation.backtrace.common_prefix).unwrap_or(usize::MAX);
        let common = common_prefix(&walk.codes, codes, stated);
        walk.codes.truncate(common);
        walk.nodes.truncate(common);
        walk.marks.truncate(common);
        let mut node = walk.nodes.last().copied().unwrap_or(ROOT);
        let mut marks = walk.marks.last().copied().unwrap_or(0);
        let mut frame = NOWHERE;
        for &code in &codes[common..] {
            frame = self.frames.number(code, table, selection);
            marks |= self.frames.marks(frame);
            walk.codes.push(code);
            walk.marks.push(marks);
            if whole {
                node = self.paths.child(node, frame);
                walk.nodes.push(node);
            }
        }
        if !whole {
            if frame == NOWHERE {
                frame = self.frames.number(innermost, table, selection);
            }
            node = self.paths.child(ROOT, frame);
        }
        (node, marks)
    }

    fn born(&mut self, time: u64, path: u32, allocation: &Allocation<'_>, samples: u64) {
        let (id, old) = (allocation.id, allocation.source != Source::Minor);
        let object = Object::new(time, path, samples, old);
        let samples = object.samples();
        let level = self.live.level_of(samples);
        if let Some(other) = self.live.insert(id, object) {
            self.remove(id, &other);
        }
        let counts = &mut self.paths.counts[path as usize];
        counts.settle(self.peak.number());
        counts.live = counts.live.wrapping_add(samples << level);
        let half = first_half(id, samples);
        self.peak.add(samples << level, half << level, time, self.live.level());
        self.note_time(time);
    }

    fn promote(&mut self, id: u64) {
        if let Some(object) = self.live.get_mut(id)
            && object.promote()
        {
            let (samples, path) = (object.samples(), object.path());
            let samples = samples << self.live.level_of(samples);
            let counts = &mut self.paths.counts[path as usize];
            counts.promoted = counts.promoted.saturating_add(samples);
            self.promoted = self.promoted.saturating_add(samples);
        }
    }

    fn collect(&mut self, time: u64, id: u64) {
        let Some(object) = self.live.remove(id) else { return };
        let samples = self.remove(id, &object);
        let lifetime = time.saturating_sub(object.time());
        let counts = &mut self.paths.counts[object.path() as usize];
        counts.died = counts.died.saturating_add(samples);
        counts.lifetime += samples as f64 * lifetime as f64;
        self.lifetimes.died(lifetime, samples);
        if self.options.growth && object.is_old() {
            self.growth.old_died(time);
        }
        self.note_time(time);
    }

    /// Takes an object from what is alive; the answer is what it counted for.
    fn remove(&mut self, id: u64, object: &Object) -> u64 {
        let level = self.live.level_of(object.samples());
        let samples = object.samples() << level;
        let counts = &mut self.paths.counts[object.path() as usize];
        counts.settle(self.peak.number());
        counts.live = counts.live.wrapping_sub(samples);
        self.peak.remove(samples, first_half(id, object.samples()) << level);
        samples
    }

    fn note_time(&mut self, time: u64) {
        let live = self.peak.live();
        let bucket = self.timeline.at(time);
        bucket.live = live;
        bucket.most_live = bucket.most_live.max(live);
    }

    /// Too much is alive: half of the objects stand for all.
    fn thin(&mut self) {
        self.live.thin();
        self.paths.settle(self.peak.number());
        for counts in &mut self.paths.counts {
            counts.live = 0;
        }
        let (mut all, mut halves) = (0_u64, 0_u64);
        let (mut thinned, mut squares) = (0.0, 0.0);
        for (id, object) in self.live.iter() {
            let level = self.live.level_of(object.samples());
            if level > 0 {
                thinned += object.samples() as f64;
                squares += (object.samples() as f64).powi(2);
            }
            let samples = object.samples() << level;
            let counts = &mut self.paths.counts[object.path() as usize];
            counts.live = counts.live.wrapping_add(samples);
            all = samples.wrapping_add(all);
            halves = (first_half(id, object.samples()) << level).wrapping_add(halves);
        }
        self.peak.recount(all, halves);
        self.cluster = if thinned > 0.0 { squares / thinned } else { 1.0 };
    }

    /// Too many paths.
    fn prune(&mut self) {
        self.paths.settle(self.peak.number());
        let moved = self.paths.prune();
        self.live.move_paths(&moved);
        self.growth.move_paths(&moved, self.paths.counts.len());
        self.walks.clear();
    }

    /// After the last event.
    pub fn finish(mut self) -> Aggregate {
        if self.at_is_due && self.options.at.is_some_and(|at| at <= self.end) {
            self.note_live();
        }
        self.paths.settle(self.peak.number());
        let mut survivors = Vec::new();
        for (_, object) in self.live.iter() {
            let level = self.live.level_of(object.samples());
            self.lifetimes.survived(object.samples() << level);
            if self.options.growth {
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
            survivors,
            codes: self.frames.into_codes(),
            paths: self.paths,
        }
    }
}

/// How many frames two stacks share. What the file states is right unless
/// something of it was lost.
fn common_prefix(last: &[Code], codes: &[Code], stated: usize) -> usize {
    let stated = stated.min(last.len()).min(codes.len());
    if last[..stated] == codes[..stated] {
        return stated;
    }
    last.iter().zip(codes).take_while(|(last, code)| last == code).count()
}

#[cfg(test)]
mod tests;
