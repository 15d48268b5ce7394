//! Sets: blocks that are alike and held alike, as nodes of the joined dominator tree.

use std::collections::BTreeMap;

use heaptap_heap::{HeapAnalysis, RetainedLabel};

use super::titles::Titles;

/// The size of a set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SetSize {
    pub(crate) blocks: u64,
    /// What its blocks retain.
    pub(crate) retained_bytes: u64,
}

/// The sets of a snapshot by the names on their path, which are the same in another snapshot. Sets of one path are added
/// up.
pub(crate) fn sets_by_path(analysis: &HeapAnalysis) -> BTreeMap<Vec<String>, SetSize> {
    let titles = Titles::new(analysis);
    let mut sets: BTreeMap<Vec<String>, SetSize> = BTreeMap::new();
    for (id, node) in (0..).zip(analysis.retained.nodes()) {
        if matches!(node.label, RetainedLabel::Blocks(_)) {
            let size = sets.entry(titles.path_from_holder(id)).or_default();
            size.blocks = size.blocks.saturating_add(node.blocks);
            size.retained_bytes = size.retained_bytes.saturating_add(node.retained);
        }
    }
    sets
}
