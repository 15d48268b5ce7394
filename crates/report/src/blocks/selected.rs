//! The rows that a selection accepts.

use heaptap_trace::{LocationTable, Source};

use super::{BlockRow, BlockTable, NEVER, TableView};
use crate::aggregate::Aggregate;
use crate::estimate::Sampled;
use crate::select::{Marks, Selection};

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
    /// The same to its promotion, if it moved to the old generation.
    pub promotion: Option<u64>,
    /// Its size without the header.
    pub bytes: u64,
    /// Its samples, and what they count.
    pub samples: Sampled,
    /// Where it was allocated.
    pub domain: u16,
    /// Where it was allocated.
    pub source: Source,
}

impl SelectedBlock {
    /// Whether it is alive at this time, after all that happens then.
    pub fn is_alive_at(&self, time: u64) -> bool {
        self.birth <= time && self.end.is_none_or(|end| end > time)
    }

    /// Whether it was in the old generation, or outside the heap, by this time.
    pub fn is_old_at(&self, time: u64) -> bool {
        let since = match self.source {
            Source::Minor => self.promotion,
            Source::Major | Source::External => Some(self.birth),
        };
        since.is_some_and(|since| since <= time)
    }
}

/// Whether the stack of each path of a whole trace is selected. That depends on the
/// patterns of a selection only.
pub struct SelectedPaths(Option<Vec<bool>>);

/// Whether each row of a table is selected.
pub struct SelectedRows(Vec<bool>);

impl SelectedPaths {
    /// Looks at every call of `whole` once.
    pub fn new(whole: &Aggregate, locations: &LocationTable, selection: &Selection) -> Self {
        if !selection.looks_at_frames() {
            return SelectedPaths(None);
        }
        let of_frames = selection.marks_of_all(whole.frames.codes(), locations);
        let mut of_nodes: Vec<Marks> = vec![0; whole.paths.len()];
        for node in 1..whole.paths.len() {
            let parent = of_nodes[whole.paths.parent(node as u32) as usize];
            let own = of_frames.get(whole.paths.frame(node as u32) as usize).copied().unwrap_or(0);
            of_nodes[node] = parent | own;
        }
        let accepts = |path| selection.accepts(of_nodes[whole.paths.node(path) as usize]);
        SelectedPaths(Some((0..whole.counts.len() as u32).map(accepts).collect()))
    }

    fn contains(&self, path: u32) -> bool {
        self.0.as_ref().is_none_or(|paths| paths[path as usize])
    }
}

impl SelectedRows {
    /// Whether this row is selected.
    pub(super) fn contains(&self, row: usize) -> bool {
        self.0[row]
    }

    /// How many rows are selected.
    pub fn count(&self) -> usize {
        self.0.iter().filter(|&&selected| selected).count()
    }
}

impl BlockTable {
    /// The rows that a selection accepts. `whole` is the aggregate of the reading that
    /// made the table, and `paths` what the selection accepts of its paths.
    pub fn select(
        &self,
        whole: &Aggregate,
        paths: &SelectedPaths,
        selection: &Selection,
    ) -> SelectedRows {
        self.view().select_at(whole.end, whole, paths, selection)
    }

    /// The blocks of these rows, in the order of allocation.
    pub fn selected(
        &self,
        whole: &Aggregate,
        selected: &SelectedRows,
    ) -> impl Iterator<Item = SelectedBlock> {
        let word_bytes = whole.scale.word_bytes as u64;
        let rows = self.rows.iter().zip(&selected.0).filter(|&(_, &selected)| selected);
        rows.map(move |(row, _)| SelectedBlock {
            path: row.path,
            birth: row.birth,
            end: Some(row.death).filter(|&death| death != NEVER),
            collected: row.death != NEVER && !row.ended,
            promotion: Some(row.promotion).filter(|&promotion| promotion != NEVER),
            bytes: row.length.saturating_mul(word_bytes),
            samples: self.sampled(row),
            domain: row.domain,
            source: row.source,
        })
    }

    /// Every block with a row.
    pub fn all(&self, whole: &Aggregate) -> SelectedRows {
        self.select(whole, &SelectedPaths(None), &Selection::default())
    }
}

impl TableView<'_> {
    /// The rows that a selection accepts of a table that ends at `time`, where blocks that
    /// live on are as old as they are then.
    pub(super) fn select_at(
        &self,
        time: u64,
        whole: &Aggregate,
        paths: &SelectedPaths,
        selection: &Selection,
    ) -> SelectedRows {
        let word_bytes = whole.scale.word_bytes as u64;
        let accepts = |row: &BlockRow| {
            let bytes = row.length.saturating_mul(word_bytes);
            let end = if self.is_over(row) { row.death } else { time };
            paths.contains(row.path)
                && selection.accepts_block(row.birth, bytes, row.domain, row.source)
                && selection.lifetime.contains(end.saturating_sub(row.birth))
        };
        SelectedRows(self.rows.iter().map(accepts).collect())
    }
}
