//! A row of the table by label.

use crate::graph::{OutsideBytes, Reach};
use crate::labels::{BlockLabel, LabelId, Labels};

/// Blocks of one label in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LabelRow {
    /// The label.
    pub label: LabelId,
    /// The blocks that are alive, and what they take.
    pub own: Reach,
    /// At least these bytes would be freed without the blocks: what each of them retains by itself. What
    /// only several together hold comes on top, see [`HeapAnalysis::freed_without`](super::HeapAnalysis::freed_without).
    pub at_least: u64,
    /// Bytes outside the heap that they hold.
    pub outside: OutsideBytes,
}

impl LabelRow {
    /// Whether these are custom blocks of one kind.
    pub fn is_custom(&self, labels: &Labels) -> bool {
        matches!(labels.label(self.label), Some(BlockLabel::Custom(_)))
    }
}
