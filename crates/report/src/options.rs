//! What to aggregate.

use std::rc::Rc;

use crate::lifespans::Lifespans;
use crate::select::Selection;
use crate::tally::Follow;

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
    /// Where the block was allocated: [`heaptap_trace::Source`], and no frame.
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
    /// The most rows of the table of blocks that [`crate::Aggregator::finish_with_blocks`]
    /// returns: [`crate::MOST_BLOCKS`], or 0 for none.
    pub most_blocks: usize,
}
