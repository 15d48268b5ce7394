//! Counts what happens to blocks whose call path is known.
//!
//! [`crate::Aggregator`] drives it with the events of a trace, and
//! [`crate::BlockTable`] with its rows. Both have the same figures because both
//! count here.
//!
//! Some figures are lazy: the counts at the last peak, the slice of time that is
//! not over, the survivors. [`BlockCounter::settle`] brings them up to date.

use heaptap_trace::Source;

use crate::aggregate::{Aggregate, Survivor};
use crate::counts::Counts;
use crate::estimate::Sampled;
use crate::ids::IdMap;
use crate::peak::{LiveSamples, parts};
use crate::trace_ending::TraceEnding;

/// What is recorded over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OverTime {
    /// Nothing.
    #[default]
    Nothing,
    /// The live size of each frame that allocates: for leaks.
    LiveSize,
    /// Allocations and collections of each path: for time lines. They lower the bounds of
    /// the call tree.
    Flows,
}

/// A block that is tracked.
#[derive(Clone, Copy)]
pub(crate) struct Block {
    pub(crate) id: u64,
    pub(crate) path: u32,
    pub(crate) samples: u64,
    /// What a sample of it counts, and its variance.
    pub(crate) weight: Sampled,
    /// Each sample counts 2^level times.
    pub(crate) level: u32,
    /// Microseconds from the start of the trace to its allocation.
    pub(crate) birth: u64,
    /// It is not in the young generation.
    pub(crate) old: bool,
    /// It is outside the heap.
    pub(crate) external: bool,
    /// Its trace has ended: it is evidence for leaks, but not alive.
    pub(crate) ended: bool,
    /// The number of its class, if classes are counted.
    pub(crate) class: u16,
}

impl Block {
    /// What it counts.
    #[inline]
    pub(crate) fn sampled(&self) -> Sampled {
        self.weight.times(self.samples << self.level)
    }

    /// The same as part of what is alive.
    fn live_samples(&self) -> LiveSamples {
        let all = self.sampled();
        let external = if self.external { all } else { Sampled::default() };
        let parts = parts(self.id, self.samples, self.level);
        LiveSamples { all, external, parts: parts.map(|part| part.wrapping_mul(self.weight.count)) }
    }
}

/// An allocation.
#[derive(Clone, Copy)]
pub(crate) struct Birth {
    pub(crate) time: u64,
    pub(crate) path: u32,
    /// Its samples.
    pub(crate) samples: u64,
    /// What it counts.
    pub(crate) sampled: Sampled,
    /// Words, without the header.
    pub(crate) length: u64,
    pub(crate) source: Source,
    /// The number of its class, if classes are counted.
    pub(crate) class: u16,
}

/// The counts so far.
pub(crate) struct BlockCounter {
    /// Up to date but for the figures that [`BlockCounter::settle`] brings in.
    pub(crate) aggregate: Aggregate,
    over_time: OverTime,
    /// The time at which to record what is alive.
    at: Option<u64>,
    /// That time has not passed yet.
    at_is_due: bool,
    /// What was alive when its trace ended, of blocks that are not tracked any more.
    ended: Sampled,
    /// Of these, what no collection had seen, and what is outside the heap.
    ended_young: Sampled,
    ended_external: Sampled,
}

impl BlockCounter {
    pub(crate) fn new(aggregate: Aggregate, over_time: OverTime, at: Option<u64>) -> Self {
        BlockCounter {
            aggregate,
            over_time,
            at,
            at_is_due: at.is_some(),
            ended: Sampled::default(),
            ended_young: Sampled::default(),
            ended_external: Sampled::default(),
        }
    }

    /// Changes the counts of a block by what it counts: of its path, and of its class if
    /// classes are counted. Variances are changed in the same way.
    #[inline]
    fn count(&mut self, block: &Block, change: impl Fn(&mut Counts, u64)) {
        let Aggregate { counts, classes, .. } = &mut self.aggregate;
        counts.change(block.path as usize, block.sampled(), &change);
        classes.change(block.class, block.sampled(), &change);
    }

    /// The counts of all paths and classes.
    fn all_counts(&mut self) -> impl Iterator<Item = &mut Counts> {
        let Aggregate { counts, classes, .. } = &mut self.aggregate;
        counts.all_mut().chain(classes.counts_mut())
    }

    /// What is recorded over time.
    pub(crate) fn over_time(&self) -> OverTime {
        self.over_time
    }

    /// To be called before each event. `level` is that of the blocks alive.
    #[inline]
    pub(crate) fn advance(&mut self, time: u64, level: u32) {
        if time > self.aggregate.end {
            self.pass_time(time, level);
        }
    }

    fn pass_time(&mut self, time: u64, level: u32) {
        if self.at_is_due && self.at.is_some_and(|at| time > at) {
            self.record_live(level);
            self.at_is_due = false;
        }
        let Aggregate { growth, flows, counts, end, .. } = &mut self.aggregate;
        match self.over_time {
            OverTime::LiveSize if growth.is_due(time) => growth.take(time, &counts.counts),
            OverTime::Flows if flows.is_due(time) => flows.take(time, &counts.counts),
            _ => {}
        }
        *end = time;
    }

    /// Records what is alive now as what is alive at `at`.
    fn record_live(&mut self, level: u32) {
        self.aggregate.at_level = level;
        self.aggregate.at = self.at;
        for counts in self.all_counts() {
            counts.at = counts.live;
        }
    }

    /// Counts an allocation, tracked or not.
    #[inline]
    pub(crate) fn allocate(&mut self, birth: Birth) {
        let Birth { time, path, samples, sampled, length, source, class } = birth;
        let aggregate = &mut self.aggregate;
        let allocate = |counts: &mut Counts, by| {
            counts.allocated = counts.allocated.saturating_add(by);
        };
        aggregate.classes.change(class, sampled, allocate);
        aggregate.counts.change(path as usize, sampled, allocate);
        // A block of n words and a header has λ(n + 1) samples on average.
        let blocks = aggregate.scale.blocks(sampled.count, length);
        aggregate.counts.counts[path as usize].blocks += blocks;
        let bucket = aggregate.timeline.at(time);
        bucket.allocated = bucket.allocated.saturating_add(sampled.count);
        aggregate.samples = aggregate.samples.saturating_add(samples);
        aggregate.allocated = aggregate.allocated.plus(sampled);
        let of_source = match source {
            Source::Minor => Some(&mut aggregate.young),
            Source::External => Some(&mut aggregate.external),
            Source::Major => None,
        };
        if let Some(sum) = of_source {
            *sum = sum.plus(sampled);
        }
    }

    /// A block that is tracked comes alive. `level` is that of all blocks.
    #[inline]
    pub(crate) fn born(&mut self, block: &Block, level: u32) {
        let peak = self.aggregate.peak.number();
        self.count(block, |counts, by| {
            counts.settle(peak);
            counts.live = counts.live.wrapping_add(by);
        });
        if self.over_time == OverTime::LiveSize {
            let growth = &mut self.aggregate.growth;
            growth.born(block.path, block.birth, block.samples, block.sampled());
        }
        self.aggregate.peak.add(block.live_samples(), block.birth, level);
        self.record_live_size(block.birth);
    }

    /// A young block that is tracked becomes old.
    pub(crate) fn promoted(&mut self, block: &Block) {
        self.count(block, |counts, by| {
            counts.promoted = counts.promoted.saturating_add(by);
        });
        self.aggregate.promoted = self.aggregate.promoted.plus(block.sampled());
    }

    /// A block that is alive is counted elsewhere from now on.
    pub(crate) fn moved(&mut self, from: &Block, to: &Block) {
        let peak = self.aggregate.peak.number();
        self.count(from, |counts, by| {
            counts.settle(peak);
            counts.live = counts.live.wrapping_sub(by);
        });
        self.count(to, |counts, by| {
            counts.settle(peak);
            counts.live = counts.live.wrapping_add(by);
        });
    }

    /// A block that is tracked is collected, which was alive for so long before the trace.
    #[inline]
    pub(crate) fn died(&mut self, block: &Block, time: u64, before: u64) {
        let peak = self.aggregate.peak.number();
        let lifetime = time.saturating_sub(block.birth).saturating_add(before);
        self.count(block, |counts, by| {
            counts.settle(peak);
            counts.live = counts.live.wrapping_sub(by);
            counts.died = counts.died.saturating_add(by);
            counts.lifetime += by as f64 * lifetime as f64;
        });
        self.aggregate.peak.remove(block.live_samples());
        self.aggregate.lifetimes.died(lifetime, block.sampled());
        if self.over_time == OverTime::LiveSize && block.old {
            let Aggregate { growth, allocated, scale, .. } = &mut self.aggregate;
            growth.old_died(time, allocated.count);
            let series = growth.series_of_path(block.path);
            let death = growth.cohorts.truths().death(block.id, time);
            growth.cohorts.died(series, (block.birth, death), block.sampled(), scale);
        }
        self.record_live_size(time);
    }

    /// A block is no longer tracked. Its end was not seen.
    #[inline]
    pub(crate) fn removed(&mut self, block: &Block) {
        let peak = self.aggregate.peak.number();
        self.count(block, |counts, by| {
            counts.settle(peak);
            counts.live = counts.live.wrapping_sub(by);
        });
        self.aggregate.peak.remove(block.live_samples());
    }

    /// The trace of these blocks ends. `kept`: they are still tracked.
    pub(crate) fn ended(&mut self, blocks: &[Block], kept: bool, ending: TraceEnding) {
        for block in blocks {
            self.removed(block);
            self.count(block, |counts, by| {
                counts.ended = counts.ended.saturating_add(by);
                if ending == TraceEnding::Continued {
                    counts.carried = counts.carried.saturating_add(by);
                }
                if !kept && block.old {
                    counts.ended_old = counts.ended_old.saturating_add(by);
                }
            });
            let sampled = block.sampled();
            if ending == TraceEnding::Continued {
                self.aggregate.peak.carry(sampled);
            }
            if kept {
                continue;
            }
            self.ended = self.ended.plus(sampled);
            if !block.old {
                self.ended_young = self.ended_young.plus(sampled);
            }
            if block.external {
                self.ended_external = self.ended_external.plus(sampled);
            }
        }
        self.record_live_size(self.aggregate.end);
    }

    fn record_live_size(&mut self, time: u64) {
        let live = self.aggregate.peak.live();
        let bucket = self.aggregate.timeline.at(time);
        bucket.live = live;
        bucket.most_live = bucket.most_live.max(live.count);
    }

    /// Counts what is alive anew, after blocks were thinned.
    pub(crate) fn recount(&mut self, alive: impl Iterator<Item = Block>, level: u32) {
        let (peak, over_time) = (self.aggregate.peak.number(), self.over_time);
        for counts in self.all_counts() {
            counts.settle(peak);
            counts.live = 0;
            // Otherwise they are not among the blocks.
            if over_time == OverTime::LiveSize {
                counts.ended = 0;
            }
        }
        let mut all = LiveSamples::NONE;
        let mut clusters = Clusters::default();
        for block in alive {
            clusters.add(&block);
            self.count(&block, |counts, by| {
                if block.ended {
                    counts.ended = counts.ended.saturating_add(by);
                } else {
                    counts.live = counts.live.wrapping_add(by);
                }
            });
            if !block.ended {
                all.add(block.live_samples());
            }
        }
        self.aggregate.peak.recount(all);
        self.aggregate.cluster = clusters.mean(level);
    }

    /// Brings the lazy figures up to date, given the blocks that are alive and their
    /// level, and how long before the trace some of them were allocated. Each of them is set, not added to, so that it comes out the same however
    /// often this is called.
    pub(crate) fn settle(
        &mut self,
        alive: impl Iterator<Item = Block>,
        level: u32,
        older: &IdMap<u64>,
    ) {
        // More events may have that very time, so it stays due.
        if self.at_is_due && self.at.is_some_and(|at| at <= self.aggregate.end) {
            self.record_live(level);
        }
        let peak = self.aggregate.peak.number();
        for counts in self.all_counts() {
            counts.settle(peak);
            counts.survived = counts.ended_old;
        }
        let aggregate = &mut self.aggregate;
        aggregate.level = level;
        if self.over_time == OverTime::Flows {
            aggregate.flows.settle(&aggregate.counts.counts);
        }
        aggregate.survivors.clear();
        let (mut survived, mut young) = (self.ended, self.ended_young);
        let mut external = self.ended_external;
        for block in alive {
            let sampled = block.sampled();
            survived = survived.plus(sampled);
            if block.old {
                self.count(&block, |counts, by| {
                    counts.survived = counts.survived.saturating_add(by);
                });
            } else {
                young = young.plus(sampled);
            }
            if block.external {
                external = external.plus(sampled);
            }
            if self.over_time == OverTime::LiveSize {
                let growth = &self.aggregate.growth;
                let series = growth.series_of_path(block.path);
                let dead = growth.cohorts.truths().garbage_since(block.id);
                let before = older.get(&block.id).copied().unwrap_or(0);
                let birth = block.birth;
                self.aggregate.survivors.push(Survivor { birth, before, dead, series, sampled });
            }
        }
        self.aggregate.live_young = young;
        self.aggregate.live_external = external;
        self.aggregate.lifetimes.set_survivors(survived);
    }
}

/// How much variance thinning adds: that of a sum of tracked blocks is the sum over
/// them of s²·2^l·(2^l − 1), for s samples at level l. A cluster is that for each
/// unit counted, as a multiple of 2^level − 1. Of several rates, only blocks that are thinned
/// count: those of low rates are not, and do not make the others any more certain.
#[derive(Default)]
pub(crate) struct Clusters {
    variance: f64,
    counted: f64,
}

impl Clusters {
    pub(crate) fn add(&mut self, block: &Block) {
        let (samples, times) = (block.samples as f64, (1_u64 << block.level) as f64);
        let counted = samples * block.weight.count as f64;
        if block.level > 0 || block.weight.variance == 0 {
            self.variance += counted * counted * times * (times - 1.0);
            self.counted += counted * times;
        }
    }

    /// 1 if nothing was thinned.
    pub(crate) fn mean(&self, level: u32) -> f64 {
        if level == 0 || self.counted == 0.0 {
            return 1.0;
        }
        self.variance / self.counted / (2_f64.powi(level as i32) - 1.0)
    }
}
