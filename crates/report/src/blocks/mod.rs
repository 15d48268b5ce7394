//! The table of blocks: a row for each tracked block of a trace.
//!
//! It is made in the one reading of a trace ([`recorder`]), and gives the figures
//! of any selection without the trace ([`replay`]): it drives the counting that
//! the events themselves drive, in their order, so that both come to the same
//! figures. It also gives the figures of any earlier moment ([`past`]), in a time that
//! its bound limits. A table has at most [`MOST_BLOCKS`] rows. Beyond that, one in 2^level
//! blocks has a row, and the errors of all figures include it.

pub(crate) mod history;
mod past;
pub(crate) mod recorder;
mod replay;
mod selected;

use heaptap_trace::Source;

use crate::aggregate::Aggregate;
use crate::block_counter::Clusters;
use crate::estimate::{Estimate, Sampled, Scale};
use crate::rates::{RatedSamples, Rates};
use crate::thinning::level_of;
use crate::trace_ending::TraceEnding;

pub use history::LiveHistory;
pub use selected::{SelectedBlock, SelectedPaths, SelectedRows};

/// The most rows of a table: 67 MB, and as much again while it is made.
pub const MOST_BLOCKS: usize = 1 << 20;

/// Stands for a time that was not reached.
pub(crate) const NEVER: u64 = u64::MAX;

/// The life of a block. Times are microseconds since the start of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockRow {
    /// A table that was thinned and then read from an archive has zeros instead.
    pub(crate) id: u64,
    pub(crate) birth: u64,
    /// When it moved to the old generation, or [`NEVER`].
    pub(crate) promotion: u64,
    /// When it was collected, or when its trace ended, or [`NEVER`].
    pub(crate) death: u64,
    /// Words, without the header.
    pub(crate) length: u64,
    pub(crate) samples: RatedSamples,
    /// The number of its path in the aggregate of the whole trace.
    pub(crate) path: u32,
    pub(crate) domain: u16,
    pub(crate) source: Source,
    /// It was alive when its trace ended, before the last of several traces did.
    pub(crate) ended: bool,
}

/// The end of a row's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockEnd {
    pub(crate) row: u32,
    /// How many rows were born before.
    pub(crate) births: u32,
    pub(crate) kind: EndKind,
}

/// Why a block is not tracked any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndKind {
    /// Another block took its id, in a damaged trace.
    Replaced,
    /// It was collected.
    Collected,
    /// Its trace ended. The [`TraceEnd`] comes after all of its blocks.
    TraceEnded,
}

/// The promotion of a row's block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Promotion {
    pub(crate) row: u32,
    /// How many rows were born before.
    pub(crate) births: u32,
}

/// The end of one of several traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceEnd {
    /// How many rows were born before, and how many ended.
    pub(crate) births: u32,
    pub(crate) ends: u32,
    pub(crate) time: u64,
    pub(crate) ending: TraceEnding,
}

/// The table of blocks of a trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BlockTable {
    /// In the order of allocation.
    pub(crate) rows: Vec<BlockRow>,
    /// In the order of time.
    pub(crate) ends: Vec<BlockEnd>,
    /// In the order of time.
    pub(crate) promotions: Vec<Promotion>,
    /// In the order of time, of all but the last.
    pub(crate) trace_ends: Vec<TraceEnd>,
    /// One in 2^level blocks with one sample has a row, and more of larger ones.
    pub(crate) level: u32,
    /// The rates at which the blocks were sampled, if they are several.
    pub(crate) rates: Rates,
}

/// A table up to a moment: what happened later to its rows does not count.
#[derive(Clone, Copy)]
pub(crate) struct TableView<'a> {
    pub(crate) rows: &'a [BlockRow],
    ends: &'a [BlockEnd],
    promotions: &'a [Promotion],
    trace_ends: &'a [TraceEnd],
    level: u32,
    rates: &'a Rates,
    /// Microseconds since the start of the trace.
    until: u64,
    /// Blocks are old if they were in the old generation by then.
    old_before: u64,
}

impl TableView<'_> {
    /// Whether it was in the old generation early enough. Whether a row that is promoted later
    /// counts as promoted does not depend on that.
    fn is_old(&self, row: &BlockRow) -> bool {
        match row.source {
            Source::Minor => self.is_promoted(row) && row.promotion <= self.old_before,
            Source::Major | Source::External => row.birth <= self.old_before,
        }
    }

    fn is_promoted(&self, row: &BlockRow) -> bool {
        row.promotion != NEVER && row.promotion <= self.until
    }

    /// Whether it is not tracked any more.
    fn is_over(&self, row: &BlockRow) -> bool {
        row.death != NEVER && row.death <= self.until
    }
}

impl BlockTable {
    /// The whole table.
    pub(crate) fn view(&self) -> TableView<'_> {
        let BlockTable { rows, ends, promotions, trace_ends, level, rates } = self;
        let (until, old_before) = (NEVER, NEVER);
        TableView { rows, ends, promotions, trace_ends, level: *level, rates, until, old_before }
    }

    /// The table of no trace.
    pub(crate) const EMPTY: BlockTable = BlockTable {
        rows: Vec::new(),
        ends: Vec::new(),
        promotions: Vec::new(),
        trace_ends: Vec::new(),
        level: 0,
        rates: Rates::NONE,
    };

    /// How many blocks have a row.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// What a row counts.
    fn sampled(&self, row: &BlockRow) -> Sampled {
        let level = level_of(self.rates.thinning_size(row.samples), self.level);
        self.rates.weight(row.samples.rate()).times(row.samples.count() << level)
    }

    /// A function from counts of these blocks to the bytes that they stand for. Its
    /// errors include the thinning of the table.
    pub fn estimator(&self, scale: Scale) -> impl Fn(Sampled) -> Estimate {
        let mut clusters = Clusters::default();
        let view = self.view();
        let rows = self.rows.iter().enumerate();
        rows.for_each(|(number, row)| clusters.add(&view.block(number, row.path)));
        let (level, cluster) = (self.level, clusters.mean(self.level));
        move |sampled| scale.thinned(sampled, level, cluster)
    }

    /// How many blocks of each path of `whole` are alive, estimated as the number of those
    /// that were allocated is: [`Counts::blocks`](crate::Counts::blocks).
    pub fn live_blocks(&self, whole: &Aggregate) -> Vec<f64> {
        let mut blocks = vec![0.0; whole.counts.len()];
        for row in self.rows.iter().filter(|row| row.death == NEVER || row.ended) {
            let of_path = &mut blocks[row.path as usize];
            *of_path += whole.scale.blocks(self.sampled(row).count, row.length);
        }
        blocks
    }

    /// Whether no block has a row.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// One in 2^thinning blocks with one sample has a row, and more of larger ones.
    pub fn thinning(&self) -> u32 {
        self.level
    }
}
