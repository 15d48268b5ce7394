//! The rows that a selection accepts.

use heaptap_trace::{LocationTable, Source};

use super::{BlockRow, BlockTable, NEVER};
use crate::aggregate::Aggregate;
use crate::select::{Marks, Selection};
use crate::thinning::level_of;

/// A block that is selected.
#[derive(Clone, Copy, Debug)]
pub struct SelectedBlock {
    /// The number of its path in the aggregate of the whole trace.
    pub path: u32,
    /// Microseconds from the start of the trace to its allocation.
    pub birth: u64,
    /// The same to its end, if that was seen: its collection, or the end of its trace if
    /// that is not the last of several.
    pub end: Option<u64>,
    /// Whether it was collected.
    pub collected: bool,
    /// Whether it moved to the old generation.
    pub promoted: bool,
    /// Its size without the header.
    pub bytes: u64,
    /// The samples that it counts for.
    pub samples: u64,
    /// Where it was allocated.
    pub domain: u16,
    /// Where it was allocated.
    pub source: Source,
}

impl BlockTable {
    /// The blocks that a selection accepts, in the order of allocation. `whole` is the
    /// aggregate of the reading that made the table.
    pub fn selected(
        &self,
        whole: &Aggregate,
        locations: &LocationTable,
        selection: &Selection,
    ) -> impl Iterator<Item = SelectedBlock> {
        let word_bytes = whole.scale.word_bytes as u64;
        let accepts = acceptance(whole, locations, selection);
        let rows = self.rows.iter().filter(move |row| accepts(row));
        rows.map(move |row| SelectedBlock {
            path: row.path,
            birth: row.birth,
            end: Some(row.death).filter(|&death| death != NEVER),
            collected: row.death != NEVER && !row.ended,
            promoted: row.promotion != NEVER,
            bytes: row.length.saturating_mul(word_bytes),
            samples: row.samples << level_of(row.samples, self.level),
            domain: row.domain,
            source: row.source,
        })
    }
}

/// Whether a selection accepts a row.
pub(super) fn acceptance(
    whole: &Aggregate,
    locations: &LocationTable,
    selection: &Selection,
) -> impl Fn(&BlockRow) -> bool {
    let accepted = accepted_paths(whole, locations, selection);
    let (selection, end) = (selection.clone(), whole.end);
    let word_bytes = whole.scale.word_bytes as u64;
    move |row| {
        let bytes = row.length.saturating_mul(word_bytes);
        let end = if row.death == NEVER { end } else { row.death };
        accepted.as_ref().is_none_or(|paths| paths[row.path as usize])
            && selection.accepts_block(row.birth, bytes, row.domain, row.source)
            && selection.lifetime.contains(end.saturating_sub(row.birth))
    }
}

/// Whether each path is selected; `None` if the selection does not look at frames.
fn accepted_paths(
    whole: &Aggregate,
    locations: &LocationTable,
    selection: &Selection,
) -> Option<Vec<bool>> {
    if !selection.looks_at_frames() {
        return None;
    }
    let of_frames: Vec<Marks> =
        whole.frames.codes().iter().map(|&code| selection.marks(code, locations)).collect();
    let mut of_nodes: Vec<Marks> = vec![0; whole.paths.len()];
    for node in 1..whole.paths.len() {
        let parent = of_nodes[whole.paths.parent(node as u32) as usize];
        let own = of_frames.get(whole.paths.frame(node as u32) as usize).copied().unwrap_or(0);
        of_nodes[node] = parent | own;
    }
    let paths = 0..whole.counts.len() as u32;
    let accepted = paths.map(|path| selection.accepts(of_nodes[whole.paths.node(path) as usize]));
    Some(accepted.collect())
}
