//! The figures of a selection, from the table.

use heaptap_trace::{LocationTable, Source};

use super::selected::{SelectedPaths, SelectedRows};
use super::{BlockEnd, BlockRow, BlockTable, EndKind, NEVER, Promotion, TableView, TraceEnd};
use crate::aggregate::Aggregate;
use crate::block_counter::{Birth, Block, BlockCounter, Clusters, OverTime};
use crate::classes::NO_CLASS;
use crate::depth::Depth;
use crate::ids::IdMap;
use crate::options::Options;
use crate::paths::{ROOT, domain_frame, source_frame};
use crate::regroup::{kind_frames, label_frames};
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
        let paths = SelectedPaths::new(whole, locations, &options.selection);
        let selected = self.select(whole, &paths, &options.selection);
        self.aggregate_of(&selected, whole, locations, options)
    }

    /// The same of these rows, whatever the selection of `options`.
    pub fn aggregate_of(
        &self,
        selected: &SelectedRows,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        self.view().aggregate_at(whole.end, selected, whole, locations, options)
    }
}

impl TableView<'_> {
    /// The aggregate of these rows, of a table that ends at `time`.
    pub(super) fn aggregate_at(
        &self,
        time: u64,
        selected: &SelectedRows,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        let keeps_stacks =
            matches!(options.depth, Depth::Innermost | Depth::OwnCode | Depth::Whole);
        let mut aggregate = if keeps_stacks { whole.emptied() } else { whole.without_paths() };
        aggregate.allocated_level = self.level;
        let promoted_path = aggregate.add_promoted_path(options.depth);
        let mut paths = match options.depth {
            Depth::Innermost | Depth::OwnCode | Depth::Whole => {
                self.stacks_of(selected, whole, &mut aggregate)
            }
            depth => {
                let frames = self.only_frames(whole, locations, depth);
                self.rows_of(selected, frames, &mut aggregate)
            }
        };
        aggregate.counts.resize(aggregate.paths.count());
        let mut clusters = Clusters::default();
        // As in a reading, what is alive when its trace ends is evidence for leaks.
        let keep = options.over_time == OverTime::LiveSize;
        if keep {
            aggregate.add_series(locations);
        }
        let counter = BlockCounter::new(aggregate, options.over_time, options.at);
        let mut replay = Replay {
            table: *self,
            paths: &mut paths,
            promoted_path,
            counter,
            keep,
            ended: 0,
            promoted: 0,
            traces: 0,
            ending: Vec::new(),
        };
        for (number, row) in self.rows.iter().enumerate() {
            replay.end_all(number as u32);
            let path = replay.paths[number];
            if path != NOT_SELECTED {
                let block = self.block(number, path);
                clusters.add(&block);
                replay.birth(row, &block);
            }
        }
        replay.end_all(u32::MAX);
        let mut counter = replay.counter;
        let paths = &paths[..];
        counter.advance(time, self.level);
        counter.aggregate.cluster = clusters.mean(self.level);
        let is_kept = |row: &BlockRow| !self.is_over(row) || (row.ended && keep);
        let alive = self.rows.iter().zip(paths).enumerate().filter(|(_, (row, _))| is_kept(row));
        let alive = alive.filter(|&(_, (_, &path))| path != NOT_SELECTED);
        let alive = alive.map(|(number, (_, &path))| self.block(number, path));
        counter.settle(alive, self.level, &IdMap::default());
        counter.aggregate
    }

    /// A row as it counts. Whether it is old matters at its end only.
    pub(super) fn block(&self, number: usize, path: u32) -> Block {
        let row = &self.rows[number];
        Block {
            // Only parts of a block's samples depend on it, which are drawn at random.
            id: if self.level == 0 { row.id } else { number as u64 },
            path,
            samples: row.samples.count(),
            weight: self.rates.weight(row.samples.rate()),
            level: level_of(self.rates.thinning_size(row.samples), self.level),
            birth: row.birth,
            old: self.is_old(row),
            external: row.source == Source::External,
            ended: false,
            class: NO_CLASS,
        }
    }

    /// The path of each row in `aggregate`, which has the call tree of `whole`, or
    /// [`NOT_SELECTED`].
    fn stacks_of(
        &self,
        selected: &SelectedRows,
        whole: &Aggregate,
        aggregate: &mut Aggregate,
    ) -> Vec<u32> {
        let mut numbers = vec![NOT_SELECTED; whole.counts.len()];
        let path = |(at, row): (usize, &BlockRow)| {
            if !selected.contains(at) {
                return NOT_SELECTED;
            }
            let number = &mut numbers[row.path as usize];
            if *number == NOT_SELECTED {
                *number = aggregate.paths.add_path(whole.paths.node(row.path));
            }
            *number
        };
        self.rows.iter().enumerate().map(path).collect()
    }

    /// The same, where the frame of each row is its only one.
    fn rows_of(
        &self,
        selected: &SelectedRows,
        frames: impl Fn(&BlockRow) -> u32,
        aggregate: &mut Aggregate,
    ) -> Vec<u32> {
        let paths = &mut aggregate.paths;
        let path = |(at, row): (usize, &BlockRow)| {
            // As in a reading, blocks that are not selected have a node, but no path.
            let node = paths.child(ROOT, frames(row));
            if selected.contains(at) { paths.path(node) } else { NOT_SELECTED }
        };
        self.rows.iter().enumerate().map(path).collect()
    }

    /// The frame that stands for each row.
    fn only_frames(
        &self,
        whole: &Aggregate,
        locations: &LocationTable,
        depth: Depth,
    ) -> impl Fn(&BlockRow) -> u32 {
        let of_paths = match depth {
            Depth::Label => label_frames(whole, locations),
            Depth::Kind => kind_frames(whole),
            _ => Vec::new(),
        };
        move |row| match depth {
            Depth::Domain => domain_frame(row.domain),
            Depth::Source => source_frame(row.source),
            _ => of_paths[row.path as usize],
        }
    }
}

/// The events of the rows, in their order.
struct Replay<'a> {
    table: TableView<'a>,
    /// The path of each row at this point, or [`NOT_SELECTED`].
    paths: &'a mut [u32],
    /// The path of blocks that were promoted, if paths are sources.
    promoted_path: Option<u32>,
    counter: BlockCounter,
    /// Blocks of traces that end stay evidence.
    keep: bool,
    /// How many ends of blocks, promotions, and ends of traces have passed.
    ended: usize,
    promoted: usize,
    traces: usize,
    /// The blocks of a trace that is about to end: they count together.
    ending: Vec<Block>,
}

impl Replay<'_> {
    fn birth(&mut self, row: &BlockRow, block: &Block) {
        let (counter, level) = (&mut self.counter, self.table.level);
        counter.advance(row.birth, level);
        counter.allocate(Birth {
            time: row.birth,
            path: block.path,
            samples: block.samples << block.level,
            sampled: block.sampled(),
            length: row.length,
            source: row.source,
            class: NO_CLASS,
        });
        counter.born(block, level);
        if self.table.is_promoted(row) {
            counter.promoted(block);
        }
    }

    /// All ends before the birth of this row, and, if paths are sources, all promotions.
    fn end_all(&mut self, row: u32) {
        let TableView { ends, trace_ends, until, .. } = self.table;
        loop {
            let is_trace = |end: &&TraceEnd| {
                end.ends as usize <= self.ended && end.births <= row && end.time <= until
            };
            if let Some(&end) = trace_ends.get(self.traces).filter(is_trace) {
                self.promote_until(end.time, row);
                self.end_trace(end);
            } else if let Some(&end) = ends.get(self.ended).filter(|end| end.births <= row) {
                let of_end = self.table.rows.get(end.row as usize);
                self.promote_until(of_end.map_or(0, |row| row.death), row);
                self.end(end);
            } else {
                self.promote_until(NEVER, row);
                return;
            }
        }
    }

    /// Passes the promotions up to this time, before the birth of this row.
    fn promote_until(&mut self, time: u64, row: u32) {
        let TableView { rows, promotions, .. } = self.table;
        let is_due = |promotion: &&Promotion| {
            let at = rows.get(promotion.row as usize).map_or(0, |row| row.promotion);
            promotion.births <= row && at <= time
        };
        while self.promoted_path.is_some()
            && let Some(promotion) = promotions.get(self.promoted).filter(is_due)
        {
            self.promoted += 1;
            self.promote(promotion.row);
        }
    }

    /// Counts a promoted block as one of the major heap, if paths are sources. The second
    /// time this does nothing.
    fn promote(&mut self, number: u32) {
        let (Some(path), Some(row)) = (self.promoted_path, self.table.rows.get(number as usize))
        else {
            return;
        };
        let from = self.paths[number as usize];
        if from == NOT_SELECTED || from == path || !self.table.is_promoted(row) {
            return;
        }
        self.counter.advance(row.promotion, self.table.level);
        self.paths[number as usize] = path;
        let at = number as usize;
        let (from, to) = (self.table.block(at, from), self.table.block(at, path));
        self.counter.moved(&from, &to);
    }

    fn end(&mut self, end: BlockEnd) {
        self.ended += 1;
        // In a trace whose times are not in order, the end may come first.
        self.promote(end.row);
        let Some(row) = self.table.rows.get(end.row as usize) else { return };
        let Some(block) = self.selected(end).filter(|_| self.table.is_over(row)) else { return };
        let (counter, level) = (&mut self.counter, self.table.level);
        match end.kind {
            EndKind::Collected => {
                counter.advance(row.death, level);
                counter.died(&block, row.death, 0);
            }
            EndKind::Replaced => {
                counter.advance(row.death, level);
                counter.removed(&block);
            }
            EndKind::TraceEnded => self.ending.push(block),
        }
    }

    fn end_trace(&mut self, end: TraceEnd) {
        self.traces += 1;
        self.counter.advance(end.time, self.table.level);
        self.counter.ended(&self.ending, self.keep, end.ending);
        self.ending.clear();
    }

    /// The block of a row that is selected.
    fn selected(&self, end: BlockEnd) -> Option<Block> {
        let path = self.paths[end.row as usize];
        (path != NOT_SELECTED).then(|| self.table.block(end.row as usize, path))
    }
}
