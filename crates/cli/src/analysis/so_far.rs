//! The figures of a trace up to an event, while it is read.

use heaptap_report::{Aggregate, BlockTable};
use heaptap_trace::{LocationTable, TraceInfo};

/// The figures of a trace up to its latest event.
pub(crate) struct FiguresSoFar<'a> {
    pub(crate) info: &'a TraceInfo,
    pub(crate) aggregate: &'a Aggregate,
    /// Empty unless the options ask for it.
    pub(crate) blocks: &'a BlockTable,
    pub(crate) locations: &'a LocationTable,
}

/// Somebody who looks at the figures while a trace is read.
pub(crate) trait Onlooker {
    /// Whether it wants to see them now. Asked often.
    fn is_waiting(&self) -> bool;

    /// Shows them. The reading goes on when this returns.
    fn show(&self, figures: &FiguresSoFar<'_>);
}

/// Nobody.
impl Onlooker for () {
    fn is_waiting(&self) -> bool {
        false
    }

    fn show(&self, _figures: &FiguresSoFar<'_>) {}
}
