//! A row of the table by kind.

use crate::graph::{OutsideBytes, Reach};
use crate::kinds::{BlockKind, KindId, Kinds};

/// Blocks of one kind in a table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindRow {
    /// The kind.
    pub kind: KindId,
    /// The blocks that are alive, and what they take.
    pub own: Reach,
    /// At least these bytes would be freed without the blocks: what each of them retains by itself. What
    /// only several together hold comes on top, see [`HeapAnalysis::freed_without`](super::HeapAnalysis::freed_without).
    pub at_least: u64,
    /// Bytes outside the heap that they hold.
    pub outside: OutsideBytes,
}

impl KindRow {
    /// Whether these are custom blocks of one kind.
    pub fn is_custom(&self, kinds: &Kinds) -> bool {
        matches!(kinds.kind(self.kind), Some(BlockKind::Custom(_)))
    }
}
