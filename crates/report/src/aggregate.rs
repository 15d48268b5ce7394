//! The figures of a trace up to one of its events.

use heaptap_trace::{Code, LocationTable, Source};

use crate::classes::Classes;
use crate::counts::{Counts, Tallies, Tally};
use crate::depth::Depth;
use crate::estimate::{Estimate, Sampled, Scale, Share};
use crate::flows::Flows;
use crate::frames::Frames;
use crate::growth::{Growth, SitePair};
use crate::lifetimes::Lifetimes;
use crate::own_code::SiteFrame;
use crate::paths::{
    Bounds, LIGHT, NOWHERE, Node, Paths, ROOT, domain_of, kind_of_frame, source_frame, source_of,
};
use crate::peak::Peak;
use crate::rates::Rates;
use crate::site_nodes::SiteNodes;
use crate::timeline::Timeline;

/// A metric of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// Everything that was allocated.
    #[default]
    Allocated,
    /// What moved to the old generation.
    Promoted,
    /// What was alive at the peak.
    Peak,
    /// What was alive at [`crate::Options::at`].
    At,
    /// What was alive at the end; of several traces, at the end of each.
    Live,
    /// What was alive at the end and had been seen by a collection.
    Survived,
}

impl Metric {
    /// Its part of a tally.
    pub fn of(self, tally: &Tally) -> Sampled {
        tally.sampled(|counts| self.samples(counts))
    }

    /// The same of counts alone.
    pub fn samples(self, counts: &Counts) -> u64 {
        match self {
            Metric::Allocated => counts.allocated,
            Metric::Promoted => counts.promoted,
            Metric::Peak => counts.peak,
            Metric::At => counts.at,
            Metric::Live => counts.live.saturating_add(counts.ended),
            Metric::Survived => counts.survived,
        }
    }

    /// The least and the most that this can be, if so much was carried over from one file to the
    /// next; `None` if it does not depend on that.
    fn bounds(self, sampled: Sampled, carried: Sampled) -> Option<(Sampled, Sampled)> {
        match self {
            _ if carried.count == 0 => None,
            Metric::Allocated | Metric::Promoted => None,
            // What was carried over before that moment is not in it.
            Metric::Peak | Metric::At => Some((sampled, sampled.plus(carried))),
            Metric::Live | Metric::Survived => Some((sampled.without(carried), sampled)),
        }
    }
}

/// A frame of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Frame {
    /// A frame of the trace.
    Code(Code),
    /// There was no backtrace, or no label.
    Nowhere,
    /// A domain, if paths are domains.
    Domain(u16),
    /// A kind of blocks, from 1, if paths are kinds.
    Kind(u8),
    /// A source, if paths are sources.
    Source(Source),
    /// Stands for the frames of paths that were too light to keep.
    Light,
}

/// The figures from which, with the locations of the trace, all reports follow.
pub struct Aggregate {
    pub(crate) scale: Scale,
    /// Several rates, if the trace has more than one.
    pub(crate) rates: Rates,
    pub(crate) events: u64,
    /// Microseconds from the start of the trace to the last event.
    pub(crate) end: u64,
    /// The time of [`Metric::At`], if what was alive then was recorded.
    pub(crate) at: Option<u64>,
    /// Samples allocated, whatever they count.
    pub(crate) samples: u64,
    /// What was allocated, allocated young, allocated outside the heap, and promoted.
    pub(crate) allocated: Sampled,
    pub(crate) young: Sampled,
    pub(crate) external: Sampled,
    pub(crate) promoted: Sampled,
    /// What is alive after the last event and was seen by no collection.
    pub(crate) live_young: Sampled,
    /// What is alive after the last event outside the heap.
    pub(crate) live_external: Sampled,
    /// One in 2^level objects is tracked: now, and at the time asked for.
    pub(crate) level: u32,
    pub(crate) at_level: u32,
    /// The same for all that was allocated: 0 unless the blocks come from a table that
    /// was thinned.
    pub(crate) allocated_level: u32,
    /// The samples of a sample's object, on average over samples: objects that
    /// thinning drops as a whole make more noise than single samples.
    pub(crate) cluster: f64,
    pub(crate) peak: Peak,
    pub(crate) timeline: Timeline,
    pub(crate) lifetimes: Lifetimes,
    pub(crate) growth: Growth,
    pub(crate) flows: Flows,
    /// The objects alive after the last event; empty unless live sizes are tracked.
    pub(crate) survivors: Vec<Survivor>,
    pub(crate) frames: Frames,
    pub(crate) paths: Paths,
    /// The counts of each path.
    pub(crate) counts: Tallies,
    pub(crate) classes: Classes,
}

/// An object that is alive after the last event.
pub(crate) struct Survivor {
    /// Microseconds since the start of the trace.
    pub(crate) birth: u64,
    /// How long before the start of the trace it was allocated, if it was.
    pub(crate) before: u64,
    /// When a heap snapshot has found it dead, if one has.
    pub(crate) dead: Option<u64>,
    /// Its series in the [`Growth`]: that of the frame that allocated it.
    pub(crate) series: u32,
    pub(crate) sampled: Sampled,
}

impl Aggregate {
    /// The aggregate of no events.
    pub(crate) fn new(scale: Scale, rates: Rates, most_paths: Bounds) -> Self {
        Aggregate {
            scale,
            events: 0,
            end: 0,
            at: None,
            samples: 0,
            allocated: Sampled::default(),
            young: Sampled::default(),
            external: Sampled::default(),
            promoted: Sampled::default(),
            live_young: Sampled::default(),
            live_external: Sampled::default(),
            level: 0,
            at_level: 0,
            allocated_level: 0,
            cluster: 1.0,
            peak: Peak::new(&scale),
            timeline: Timeline::new(),
            lifetimes: Lifetimes::new(),
            growth: Growth::new(),
            flows: Flows::new(rates.are_several()),
            survivors: Vec::new(),
            frames: Frames::default(),
            paths: Paths::new(most_paths),
            counts: Tallies::new(rates.are_several()),
            classes: Classes::default(),
            rates,
        }
    }

    /// The aggregate of no events, with the same frames and the same call tree.
    pub(crate) fn emptied(&self) -> Aggregate {
        Aggregate { paths: self.paths.emptied(), ..self.without_paths() }
    }

    /// The aggregate of no events, with the same frames.
    pub(crate) fn without_paths(&self) -> Aggregate {
        Aggregate {
            events: self.events,
            frames: Frames::of_codes(self.frames.codes().to_vec()),
            ..Aggregate::new(self.scale, self.rates.clone(), Bounds::USUAL)
        }
    }

    /// The path of blocks that were promoted, if paths are sources: wherever a block was
    /// allocated, it is in the major heap then. To be called before the first block.
    pub(crate) fn add_promoted_path(&mut self, depth: Depth) -> Option<u32> {
        if depth != Depth::Source {
            return None;
        }
        let frame = source_frame(Source::Major);
        let node = self.paths.child(ROOT, frame);
        let path = self.paths.path(node);
        self.growth.add_path(path, SitePair { innermost: frame, own: frame });
        self.counts.resize(self.paths.count());
        Some(path)
    }

    /// Makes the paths that there are known to [`Aggregate::growth`].
    pub(crate) fn add_series(&mut self, table: &LocationTable) {
        let nodes = self.site_nodes(table, SiteFrame::Own);
        let Aggregate { growth, paths, .. } = self;
        for path in 0..paths.count() as u32 {
            let node = paths.node(path);
            let (innermost, own) = (paths.frame(node), paths.frame(nodes.of(node)));
            growth.add_path(path, SitePair { innermost, own });
        }
    }

    /// Brings the counts of all paths up to date with the last peak.
    pub(crate) fn settle_peak(&mut self) {
        let number = self.peak.number();
        self.counts.all_mut().for_each(|counts| counts.settle(number));
    }

    /// What a sample stands for.
    pub fn scale(&self) -> Scale {
        self.scale
    }

    /// The rates of the blocks, if there are several.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// How many samples a count is of: see [`Scale::samples`].
    pub fn samples_of(&self, sampled: Sampled) -> u64 {
        self.scale.samples(sampled)
    }

    /// The bytes from one sample to the next, on average.
    pub fn sampling_period(&self) -> f64 {
        match self.samples {
            samples if self.scale.is_mixed() && samples > 0 => {
                self.scale.bytes_of(self.allocated.count) / samples as f64
            }
            _ => self.scale.word_bytes / self.scale.lowest_rate(),
        }
    }

    /// Events read, selected or not.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Microseconds from the start of the trace to its last event.
    pub fn duration(&self) -> u64 {
        self.end
    }

    /// The time of [`Metric::At`], if it was recorded.
    pub fn at(&self) -> Option<u64> {
        self.at
    }

    /// Samples of the selected blocks.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The bytes that a count of this metric stands for.
    pub fn estimate(&self, metric: Metric, sampled: Sampled) -> Estimate {
        self.scale.thinned(sampled, self.level_of(metric), self.cluster)
    }

    /// The error that an estimate from no sample is taken to have: that of one sample; of several rates,
    /// one at the lowest.
    pub fn single_error(&self, metric: Metric) -> f64 {
        self.estimate(metric, self.rates.weight(0)).error
    }

    /// The standard error of a count, in bytes, for the root of it: at most so much, if there are several
    /// rates.
    pub fn error_of_unit(&self, metric: Metric) -> f64 {
        self.single_error(metric) / (self.rates.weight(0).count as f64).sqrt()
    }

    fn level_of(&self, metric: Metric) -> u32 {
        match metric {
            Metric::Allocated => self.allocated_level,
            Metric::Promoted | Metric::Live | Metric::Survived => self.level,
            Metric::Peak => self.peak_level(),
            Metric::At => self.at_level,
        }
    }

    /// The level of thinning at the peak. Where nothing was seen alive there is no such moment, but a
    /// block that was not tracked may have been.
    fn peak_level(&self) -> u32 {
        if self.peak.largest().count == 0 { self.level } else { self.peak.level() }
    }

    /// What all paths have of a metric.
    pub fn total(&self, metric: Metric) -> Sampled {
        self.counts.iter().map(|tally| metric.of(&tally)).sum()
    }

    /// The sum of the counts of all paths.
    pub fn total_counts(&self) -> Tally {
        let mut total = Tally::default();
        self.counts.iter().for_each(|tally| total.add(&tally));
        total
    }

    /// The bytes that these counts have of a metric. If some of them were carried over from
    /// one file to the next, what is alive is between two bounds, and its error is infinite.
    pub fn size(&self, metric: Metric, tally: &Tally) -> Estimate {
        self.carried_size(metric, metric.of(tally), tally.sampled(|counts| counts.carried))
    }

    /// The same for counts of any paths, such as those of a caller.
    pub fn size_of_samples(&self, metric: Metric, sampled: Sampled) -> Estimate {
        self.carried_size(metric, sampled, self.peak.carried())
    }

    pub(crate) fn carried_size(
        &self,
        metric: Metric,
        sampled: Sampled,
        carried: Sampled,
    ) -> Estimate {
        let estimate = self.estimate(metric, sampled);
        let Some((least, most)) = metric.bounds(sampled, carried) else { return estimate };
        let (low, high) = (self.estimate(metric, least).low, self.estimate(metric, most).high);
        Estimate { error: f64::INFINITY, low, high, ..estimate }
    }

    /// Whether files of one process were read of which each leaves open what becomes of the
    /// blocks of those before it: [`TraceEnding::Continued`](crate::TraceEnding).
    pub fn is_carried_over(&self) -> bool {
        self.peak.carried().count > 0
    }

    /// The peak live size, corrected for having been chosen for its size, and not
    /// below what is alive at the end. Of files that are carried over, the most that it can
    /// be, with an infinite error.
    pub fn peak(&self) -> Estimate {
        let peak = self.largest_live().0;
        if !self.is_carried_over() {
            return peak;
        }
        let most = self.estimate(Metric::Peak, self.peak.bound());
        Estimate { error: f64::INFINITY, low: peak.low, ..most }
    }

    /// The part of [`Aggregate::peak`] outside the heap.
    pub fn peak_external(&self) -> Estimate {
        let (peak, samples, external) = self.largest_live();
        let part = self.size_of_samples(Metric::Peak, external);
        if external.count == 0 || self.is_carried_over() {
            return part;
        }
        // The peak is corrected, and so is its part.
        let all = self.estimate(Metric::Peak, samples).bytes;
        let corrected = |bytes: f64| bytes * peak.bytes / all;
        Estimate {
            bytes: corrected(part.bytes),
            error: corrected(part.error),
            low: corrected(part.low),
            high: corrected(part.high),
        }
    }

    /// The largest live size of which all was seen, with its samples and those outside the
    /// heap.
    fn largest_live(&self) -> (Estimate, Sampled, Sampled) {
        let peak = self.peak.estimate(&self.scale, self.peak_level(), self.cluster);
        let end = self.estimate(Metric::Live, self.peak.live());
        if end.bytes > peak.bytes {
            (end, self.peak.live(), self.peak.external())
        } else {
            (peak, self.peak.largest(), self.peak.largest_external())
        }
    }

    /// When the sampled live size was largest: the moment that
    /// [`Metric::Peak`] is about.
    pub fn peak_time(&self) -> u64 {
        self.peak.time()
    }

    /// The largest number of live samples, biased as it is.
    pub fn peak_samples(&self) -> u64 {
        self.scale.samples(self.peak.largest())
    }

    /// The share of the samples allocated young that were promoted.
    pub fn promotion_rate(&self) -> Share {
        Share::scored(self.promoted, self.young, &self.scale)
    }

    /// Samples of the selected blocks that were allocated young.
    pub fn young_samples(&self) -> u64 {
        self.scale.samples(self.young)
    }

    /// What was allocated outside the heap, by [`Source::External`].
    pub fn external(&self) -> Estimate {
        self.estimate(Metric::Allocated, self.external)
    }

    /// The part of [`Metric::Live`] that is young at the end: no collection has seen
    /// it, so some of it may be garbage.
    pub fn live_young(&self) -> Estimate {
        self.size_of_samples(Metric::Live, self.live_young)
    }

    /// The part of [`Metric::Live`] outside the heap.
    pub fn live_external(&self) -> Estimate {
        self.size_of_samples(Metric::Live, self.live_external)
    }

    /// The lifetimes of samples.
    pub fn lifetimes(&self) -> &Lifetimes {
        &self.lifetimes
    }

    /// Live and allocated over time.
    pub fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// One in 2^level objects with one sample was tracked, and more of larger ones.
    pub fn thinning(&self) -> u32 {
        self.level
    }

    /// The most that can be missing from the sum of any call path.
    pub fn missing_from_paths(&self) -> u64 {
        self.paths.missing()
    }

    /// The same in samples. Of several rates, it may be of the highest.
    pub fn samples_missing_from_paths(&self) -> u64 {
        let highest = self.rates.all().len().saturating_sub(1) as u32;
        self.paths.missing().div_ceil(self.rates.weight(highest).count.max(1))
    }

    /// Whether blocks of the table may lack callers, so that what is selected by callers cannot
    /// be counted from it.
    pub fn table_lacks_callers(&self) -> bool {
        self.paths.table_lacks_callers()
    }

    /// How many nodes the tree of call paths has.
    pub fn nodes(&self) -> usize {
        self.paths.len()
    }

    /// The number that a path has in the whole trace, of which this aggregate is the same
    /// or a selection from its table of blocks with whole stacks.
    pub fn whole_path(&self, path: u32) -> Option<u32> {
        self.paths.whole_path(self.paths.node(path))
    }

    /// Every path with its counts, by number.
    pub fn paths(&self) -> impl Iterator<Item = (PathRef<'_>, Tally)> {
        self.counts.iter().enumerate().map(|(path, counts)| {
            (PathRef { aggregate: self, node: self.paths.node(path as u32) }, counts)
        })
    }

    /// The nodes of the call tree that are sites.
    pub(crate) fn site_nodes(&self, table: &LocationTable, site: SiteFrame) -> SiteNodes {
        SiteNodes::new(&self.frames, &self.paths, table, site)
    }

    /// The frame of each path that is its site.
    pub fn site_frames(&self, table: &LocationTable, site: SiteFrame) -> Vec<Frame> {
        let nodes = self.site_nodes(table, site);
        (0..self.counts.len() as u32)
            .map(|path| self.frame(nodes.of(self.paths.node(path))))
            .collect()
    }

    /// The domains and sources of all blocks, in no order; `None` if they were not
    /// counted.
    pub fn classes(&self) -> Option<impl Iterator<Item = (u16, Source)>> {
        let pair = |(domain, source, _)| (domain, source);
        self.classes.is_kept().then(|| self.classes.iter().map(pair))
    }

    /// The codes of all frames.
    pub fn codes(&self) -> impl Iterator<Item = Code> {
        self.frames.codes().iter().copied()
    }

    /// The path with this number.
    pub fn path(&self, number: u32) -> PathRef<'_> {
        PathRef { aggregate: self, node: self.paths.node(number) }
    }

    /// How many paths there are.
    pub fn path_count(&self) -> usize {
        self.counts.len()
    }

    /// Microseconds in each slice of [`crate::Stack::flows`].
    pub fn slice_width(&self) -> u64 {
        self.flows.width()
    }

    /// The bytes that one of [`crate::Flow`] stands for.
    pub fn flow_bytes(&self) -> f64 {
        self.scale.unit_bytes() * self.flows.unit() as f64
    }

    /// How many slices there are; none if flows were not tracked.
    pub fn slices(&self) -> usize {
        self.flows.len()
    }

    pub(crate) fn frame(&self, node: Node) -> Frame {
        frame_of(&self.frames, &self.paths, node)
    }
}

/// The frame of a node of a call tree.
pub(crate) fn frame_of(frames: &Frames, paths: &Paths, node: Node) -> Frame {
    match paths.frame(node) {
        LIGHT => Frame::Light,
        NOWHERE => Frame::Nowhere,
        number => match (domain_of(number), source_of(number)) {
            (Some(domain), _) => Frame::Domain(domain),
            (_, Some(source)) => Frame::Source(source),
            _ => match kind_of_frame(number) {
                Some(kind) => Frame::Kind(kind),
                None => Frame::Code(frames.code(number)),
            },
        },
    }
}

/// A call path.
#[derive(Clone, Copy)]
pub struct PathRef<'a> {
    aggregate: &'a Aggregate,
    node: Node,
}

impl<'a> PathRef<'a> {
    /// Its frames from the allocation outwards.
    pub fn frames(self) -> impl Iterator<Item = Frame> + 'a {
        let aggregate = self.aggregate;
        let up = move |&node: &Node| Some(aggregate.paths.parent(node));
        std::iter::successors(Some(self.node), up)
            .take_while(|&node| node != ROOT)
            .map(move |node| aggregate.frame(node))
    }

    /// The frame that allocates.
    pub fn innermost(self) -> Frame {
        self.aggregate.frame(self.node)
    }
}
