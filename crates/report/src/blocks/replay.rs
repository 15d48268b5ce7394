//! The figures of a selection, from the table.

use heaptap_trace::{LocationTable, Source};

use super::selected::acceptance;
use super::{BlockEnd, BlockRow, BlockTable, NEVER};
use crate::aggregate::Aggregate;
use crate::classes::NO_CLASS;
use crate::options::{Depth, Options};
use crate::paths::{ROOT, domain_frame, source_frame};
use crate::regroup::label_frames;
use crate::tally::{Birth, Block, Clusters, Tally};
use crate::thinning::level_of;

/// Stands for the path of a row that is not selected.
const NOT_SELECTED: u32 = u32::MAX;

impl BlockTable {
    /// The aggregate of the blocks that `options` select. `whole` is that of the
    /// reading that made the table, with whole stacks.
    ///
    /// It equals the aggregate of a reading with these options, unless the table
    /// or the call tree was thinned. A lifetime needs no pass of its own here.
    pub fn aggregate(
        &self,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        let keeps_stacks = matches!(options.depth, Depth::Innermost | Depth::Whole);
        let mut aggregate = if keeps_stacks { whole.emptied() } else { whole.without_paths() };
        aggregate.allocated_level = self.level;
        let paths = self.selected_paths(whole, locations, options, &mut aggregate);
        let mut clusters = Clusters::default();
        let mut tally = Tally::new(aggregate, options.follow, options.at);
        let mut ends = self.ends.iter().peekable();
        for (number, (row, &path)) in self.rows.iter().zip(&paths).enumerate() {
            while let Some(end) = ends.next_if(|end| end.births as usize <= number) {
                self.end(&mut tally, &paths, *end);
            }
            if path != NOT_SELECTED {
                let block = self.block(row, path);
                clusters.add(&block);
                self.birth(&mut tally, row, &block);
            }
        }
        for end in ends {
            self.end(&mut tally, &paths, *end);
        }
        tally.advance(whole.end, self.level);
        tally.aggregate.cluster = clusters.mean(self.level);
        let alive = self.rows.iter().zip(&paths).filter(|(row, _)| row.death == NEVER);
        let alive = alive.filter(|&(_, &path)| path != NOT_SELECTED);
        tally.settle(alive.map(|(row, &path)| self.block(row, path)), self.level);
        tally.aggregate
    }

    fn birth(&self, tally: &mut Tally, row: &BlockRow, block: &Block) {
        tally.advance(row.birth, self.level);
        tally.allocate(Birth {
            time: row.birth,
            path: block.path,
            samples: block.samples << block.level,
            length: row.length,
            source: row.source,
            class: NO_CLASS,
        });
        tally.born(block, self.level);
        if row.promotion != NEVER {
            tally.promoted(block);
        }
    }

    fn end(&self, tally: &mut Tally, paths: &[u32], end: BlockEnd) {
        let (row, path) = (&self.rows[end.row as usize], paths[end.row as usize]);
        if path == NOT_SELECTED {
            return;
        }
        let block = self.block(row, path);
        tally.advance(row.death, self.level);
        if end.collected {
            tally.died(&block, row.death);
        } else {
            tally.removed(&block);
        }
    }

    /// A row as it counts. Whether it is old matters at its end only.
    pub(super) fn block(&self, row: &BlockRow, path: u32) -> Block {
        Block {
            id: row.id,
            path,
            samples: row.samples,
            level: level_of(row.samples, self.level),
            birth: row.birth,
            old: row.source != Source::Minor || row.promotion != NEVER,
            ended: false,
            class: NO_CLASS,
        }
    }

    /// The path of each row in `aggregate`, or [`NOT_SELECTED`].
    fn selected_paths(
        &self,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
        aggregate: &mut Aggregate,
    ) -> Vec<u32> {
        let Options { selection, depth, .. } = options;
        let accepts = acceptance(whole, locations, selection);
        let labels = match depth {
            Depth::Label => label_frames(whole, locations),
            _ => Vec::new(),
        };
        let paths = &mut aggregate.paths;
        let path = |row: &BlockRow| {
            // As in a reading, blocks that are not selected have a node, but no path.
            let node = match depth {
                Depth::Innermost | Depth::Whole => whole.paths.node(row.path),
                Depth::Label => paths.child(ROOT, labels[row.path as usize]),
                Depth::Domain => paths.child(ROOT, domain_frame(row.domain)),
                Depth::Source => paths.child(ROOT, source_frame(row.source)),
            };
            if accepts(row) { paths.path(node) } else { NOT_SELECTED }
        };
        self.rows.iter().map(path).collect()
    }
}
