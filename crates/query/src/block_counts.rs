//! How many blocks the rows of a table have.
//!
//! A block of w words, its header among them, has λw samples on average. So each block of the table
//! stands for s/λw blocks, and a variance of the square of that minus itself, since the number of each
//! is 1 on average. At rate 1 it stands for itself.

use heaptap_report::{Aggregate, Archive, Metric, Sampled, SelectedBlock, SelectedRows};
use serde::Serialize;

use crate::block_rows::Rows;
use crate::request::TraceRequest;

/// An estimated number of blocks.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(test, derive(ts_rs::TS))]
pub(crate) struct BlockCount {
    pub(crate) count: f64,
    error: f64,
    /// The blocks of the table that it was estimated from.
    sampled: u64,
}

/// The blocks of a row in the table.
#[derive(Clone, Copy, Default)]
pub(crate) struct RowBlocks {
    sampled: u64,
    samples: Sampled,
    count: f64,
    variance: f64,
}

impl RowBlocks {
    fn add(&mut self, block: &SelectedBlock, stands_for: f64) {
        self.sampled += 1;
        self.samples = self.samples.plus(block.samples);
        self.count += stands_for;
        self.variance += stands_for * stands_for - stands_for;
    }

    /// The number of blocks of a row with so many samples. The table may be thinned, and does
    /// not say in which order things happened in one microsecond: the number is in proportion.
    pub(crate) fn of_samples(&self, samples: Sampled) -> Option<BlockCount> {
        if self.samples.count == 0 || samples.count == 0 {
            return None;
        }
        let factor = samples.count as f64 / self.samples.count as f64;
        Some(BlockCount {
            count: self.count * factor,
            error: self.variance.max(0.0).sqrt() * factor,
            sampled: self.sampled,
        })
    }
}

/// The blocks of each row, by its number, that the metric counts.
pub(crate) fn block_counts(
    archive: &Archive,
    aggregate: &Aggregate,
    of: &TraceRequest,
    selected: &SelectedRows,
    rows: &Rows,
) -> Vec<RowBlocks> {
    let mut counts = vec![RowBlocks::default(); rows.sites.len()];
    let scale = aggregate.scale();
    let peak = aggregate.peak_time();
    let at = of.at.map_or(peak, |at| at as u64);
    let old_before = of.old_before.map_or(u64::MAX, |time| time as u64);
    for block in archive.blocks.selected(&archive.aggregate, selected) {
        let is_counted = match of.metric {
            Metric::Allocated => true,
            Metric::Promoted => block.promotion.is_some(),
            Metric::Peak => block.is_alive_at(peak),
            Metric::At => block.is_alive_at(at),
            Metric::Live => !block.collected,
            Metric::Survived => !block.collected && block.is_old_at(old_before),
        };
        if is_counted {
            let row = &mut counts[rows.of_block(&block) as usize];
            row.add(
                &block,
                scale.blocks(block.samples.count, block.bytes / scale.word_bytes as u64),
            );
        }
    }
    counts
}
