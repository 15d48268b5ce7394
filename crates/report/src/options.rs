//! What to aggregate.

use std::rc::Rc;

use crate::block_counter::OverTime;
use crate::depth::Depth;
use crate::lifespans::Lifespans;
use crate::rates::Rates;
use crate::select::Selection;
use crate::truths::Truths;

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
    /// The rates at which blocks were sampled, if the trace has several.
    pub rates: Rates,
    /// What to record of each path over time.
    pub over_time: OverTime,
    /// The moments at which it is known what was reachable, for leaks; none if the collector's cycles are not known.
    pub truths: Truths,
    /// The most rows of the table of blocks that [`crate::Aggregator::finish_with_blocks`]
    /// returns: [`crate::MOST_BLOCKS`], or 0 for none.
    pub most_blocks: usize,
}
