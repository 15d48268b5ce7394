//! Samples over time, from the blocks of an archive.

use heaptap_report::rows::Site;
use heaptap_report::{Aggregate, Archive, Sampled, SelectedBlock, SelectedRows};

use crate::block_rows::{Inside, Rows};

/// A part of the trace: microseconds since its start, both included.
pub(crate) type Range = (u64, u64);

/// The most steps.
const MOST_STEPS: usize = 1024;

/// Equal steps of time.
pub(crate) struct Steps {
    /// When the first begins: a multiple of their width.
    pub(crate) from: u64,
    pub(crate) width: u64,
    pub(crate) count: usize,
}

/// Samples over time.
#[derive(Clone)]
pub(crate) struct Evolution {
    /// Changes of what is live; their sums once it is complete.
    pub(crate) live: Vec<i64>,
    /// The same of its variance.
    variance: Vec<i64>,
    pub(crate) allocated: Vec<u64>,
}

impl Steps {
    /// About `points` steps, of the whole trace or of a part of it. A step is several buckets of the
    /// aggregate's time line, or a part of one if they are too coarse for a part of the trace.
    pub(crate) fn of(aggregate: &Aggregate, points: usize, range: Option<Range>) -> Steps {
        let bucket = aggregate.timeline().width();
        // A selection may have nothing near the end of the trace.
        let end = aggregate.duration();
        let points = if points == 0 { 200 } else { points.min(MOST_STEPS) } as u64;
        let Some((first, last)) = range else {
            let width = bucket.saturating_mul((end / bucket + 1).div_ceil(points).max(1));
            return Steps { from: 0, width, count: (end / width) as usize + 1 };
        };
        let last = last.min(end);
        let first = first.min(last);
        let width = match (last / bucket - first / bucket + 1).div_ceil(points) {
            joined @ 2.. => bucket.saturating_mul(joined),
            _ => part_of(bucket, last - first + 1, points),
        };
        let from = first / width * width;
        Steps { from, width, count: ((last - from) / width) as usize + 1 }
    }

    /// The same with a step before: its end is where the first one begins, so that what was alive then is
    /// known too.
    pub(crate) fn with_one_before(self) -> Steps {
        match self.from.checked_sub(self.width) {
            Some(from) => Steps { from, count: self.count + 1, ..self },
            None => self,
        }
    }

    pub(crate) fn evolution(&self) -> Evolution {
        let (live, allocated) = (vec![0; self.count], vec![0; self.count]);
        Evolution { variance: live.clone(), live, allocated }
    }

    /// The end of each step.
    pub(crate) fn times(&self) -> Vec<u64> {
        (1..=self.count as u64)
            .map(|step| self.from.saturating_add(step.saturating_mul(self.width)))
            .collect()
    }

    /// The step of a time; that of all earlier ones is the first.
    fn at(&self, time: u64) -> Option<usize> {
        let step = (time.saturating_sub(self.from) / self.width) as usize;
        Some(step).filter(|&step| step < self.count)
    }

    /// The step in which something happens; `None` before the first, and after the last.
    pub(crate) fn within(&self, time: u64) -> Option<usize> {
        self.at(time).filter(|_| time >= self.from)
    }

    pub(crate) fn add(&self, evolution: &mut Evolution, block: &SelectedBlock) {
        let samples = block.samples;
        if let Some(born) = self.within(block.birth) {
            evolution.allocated[born] = evolution.allocated[born].saturating_add(samples.count);
        }
        self.change(evolution, block.birth, samples, i64::wrapping_add);
        if let Some(end) = block.end {
            self.change(evolution, end, samples, i64::wrapping_sub);
        }
    }

    /// A block that is alive moves from one line to another.
    fn promote(&self, lines: &mut [Evolution], (from, to): (usize, usize), block: &SelectedBlock) {
        let Some(promotion) = block.promotion else { return };
        let (samples, add, sub) = (block.samples, i64::wrapping_add, i64::wrapping_sub);
        // In a trace whose times are not in order, the end may come first.
        let time = block.end.map_or(promotion, |end| promotion.min(end));
        self.change(&mut lines[from], time, samples, sub);
        self.change(&mut lines[to], time, samples, add);
        if let Some(end) = block.end {
            self.change(&mut lines[to], end, samples, sub);
            self.change(&mut lines[from], end, samples, add);
        }
    }

    /// What is live changes at a time.
    fn change(
        &self,
        evolution: &mut Evolution,
        time: u64,
        by: Sampled,
        change: fn(i64, i64) -> i64,
    ) {
        if let Some(step) = self.at(time) {
            evolution.live[step] = change(evolution.live[step], by.count as i64);
            evolution.variance[step] = change(evolution.variance[step], by.variance as i64);
        }
    }
}

/// The width of a step: the least part of a bucket of which no more than `points` cover a span, halved as
/// buckets are.
fn part_of(bucket: u64, span: u64, points: u64) -> u64 {
    let mut width = bucket;
    while width > 1 && span.div_ceil(width / 2) <= points {
        width /= 2;
    }
    width
}

impl Evolution {
    /// Turns changes into sums.
    pub(crate) fn complete(&mut self) {
        for changes in [&mut self.live, &mut self.variance] {
            let mut sum = 0_i64;
            for change in changes {
                sum = sum.wrapping_add(*change);
                *change = sum;
            }
        }
    }

    /// What is live at the end of each step.
    pub(crate) fn live_sampled(&self) -> impl Iterator<Item = Sampled> {
        let at_least_0 = |sum: i64| sum.max(0) as u64;
        let pairs = self.live.iter().zip(&self.variance);
        pairs.map(move |(&count, &variance)| Sampled {
            count: at_least_0(count),
            variance: at_least_0(variance),
        })
    }

    pub(crate) fn join(&mut self, other: &Evolution) {
        let sums = self.live.iter_mut().zip(&other.live);
        let variances = self.variance.iter_mut().zip(&other.variance);
        sums.chain(variances).for_each(|(sum, part)| *sum = sum.wrapping_add(*part));
        let pairs = self.allocated.iter_mut().zip(&other.allocated);
        pairs.for_each(|(sum, part)| *sum = sum.saturating_add(*part));
    }
}

/// Which blocks are counted over time.
pub(crate) struct Counted<'a> {
    pub(crate) selected: &'a SelectedRows,
    /// Only those of this row.
    pub(crate) inside: Option<Inside<'a>>,
    pub(crate) rows: &'a Rows,
    /// The sites that have a line of their own.
    pub(crate) sites: &'a [Site],
}

/// The samples over time of some rows, and of all others.
pub(crate) struct Evolutions {
    /// In the order of the sites.
    pub(crate) of_sites: Vec<Evolution>,
    pub(crate) others: Evolution,
}

/// Counts blocks over time.
pub(crate) fn evolutions(archive: &Archive, counted: &Counted<'_>, steps: &Steps) -> Evolutions {
    let Counted { selected, inside, rows, sites } = *counted;
    // The line of each row: the others have the last one.
    let mut lines = vec![sites.len(); rows.sites.len()];
    for (line, site) in sites.iter().enumerate() {
        if let Some(number) = rows.of_site(site) {
            lines[number as usize] = line;
        }
    }
    let mut found = vec![steps.evolution(); sites.len() + 1];
    for block in archive.blocks.selected(&archive.aggregate, selected) {
        if inside.is_none_or(|inside| inside.has_path(block.path)) {
            let line = lines[rows.of_block(&block) as usize];
            steps.add(&mut found[line], &block);
            if let Some(promoted) = rows.of_promoted(&block) {
                steps.promote(&mut found, (line, lines[promoted as usize]), &block);
            }
        }
    }
    found.iter_mut().for_each(Evolution::complete);
    let others = found.pop().unwrap_or_else(|| steps.evolution());
    Evolutions { of_sites: found, others }
}
