//! Samples over time, from the blocks of an archive.

use heaptap_report::rows::Site;
use heaptap_report::{Aggregate, Archive, SelectedBlock, SelectedRows};

use crate::block_rows::{Inside, Rows};

/// Steps of time, each of several buckets of the aggregate's time line.
pub(crate) struct Steps {
    pub(crate) width: u64,
    pub(crate) count: usize,
    /// Buckets in a step.
    pub(crate) joined: usize,
}

/// Samples over time.
#[derive(Clone)]
pub(crate) struct Evolution {
    /// Changes of what is live; their sums once it is complete.
    pub(crate) live: Vec<i64>,
    pub(crate) allocated: Vec<u64>,
}

impl Steps {
    /// About `points` steps, which end where buckets end.
    pub(crate) fn of(aggregate: &Aggregate, points: usize) -> Steps {
        let timeline = aggregate.timeline();
        // A selection may have nothing near the end of the trace.
        let buckets = (aggregate.duration() / timeline.width()) as usize + 1;
        let points = if points == 0 { 200 } else { points.min(1024) };
        let joined = buckets.div_ceil(points).max(1);
        let width = timeline.width().saturating_mul(joined as u64);
        Steps { width, count: buckets.div_ceil(joined), joined }
    }

    pub(crate) fn evolution(&self) -> Evolution {
        Evolution { live: vec![0; self.count], allocated: vec![0; self.count] }
    }

    /// The end of each step.
    pub(crate) fn times(&self) -> Vec<u64> {
        (1..=self.count as u64).map(|step| step * self.width).collect()
    }

    fn at(&self, time: u64) -> usize {
        ((time / self.width) as usize).min(self.count - 1)
    }

    pub(crate) fn add(&self, evolution: &mut Evolution, block: &SelectedBlock) {
        let samples = block.samples;
        let born = self.at(block.birth);
        evolution.allocated[born] = evolution.allocated[born].saturating_add(samples);
        evolution.live[born] = evolution.live[born].wrapping_add(samples as i64);
        if let Some(end) = block.end {
            self.remove(evolution, block, end);
        }
    }

    /// A block that is alive moves from one line to another.
    fn promote(&self, lines: &mut [Evolution], (from, to): (usize, usize), block: &SelectedBlock) {
        let Some(promotion) = block.promotion else { return };
        // In a trace whose times are not in order, the end may come first.
        let time = block.end.map_or(promotion, |end| promotion.min(end));
        let at = self.at(time);
        self.remove(&mut lines[from], block, time);
        lines[to].live[at] = lines[to].live[at].wrapping_add(block.samples as i64);
        if let Some(end) = block.end {
            self.remove(&mut lines[to], block, end);
            let ended = self.at(end);
            lines[from].live[ended] = lines[from].live[ended].wrapping_add(block.samples as i64);
        }
    }

    fn remove(&self, evolution: &mut Evolution, block: &SelectedBlock, time: u64) {
        let live = &mut evolution.live[self.at(time)];
        *live = live.wrapping_sub(block.samples as i64);
    }
}

impl Evolution {
    /// Turns changes into sums.
    pub(crate) fn complete(&mut self) {
        let mut sum = 0_i64;
        for live in &mut self.live {
            sum = sum.wrapping_add(*live);
            *live = sum;
        }
    }

    pub(crate) fn join(&mut self, other: &Evolution) {
        self.live
            .iter_mut()
            .zip(&other.live)
            .for_each(|(sum, part)| *sum = sum.wrapping_add(*part));
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
