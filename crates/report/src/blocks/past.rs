//! The table as it was at an earlier moment.
//!
//! Every row has the times of its block, so no states of the past need to be kept: the
//! rows born by then, without what happened to them later, are the table of that moment.
//! The bound on rows, [`MOST_BLOCKS`](super::MOST_BLOCKS), bounds the time that it takes.

use heaptap_trace::LocationTable;

use super::{
    BlockEnd, BlockRow, BlockTable, NEVER, Promotion, SelectedPaths, SelectedRows, TableView,
    TraceEnd,
};
use crate::aggregate::Aggregate;
use crate::options::Options;

impl BlockTable {
    /// The aggregate that [`BlockTable::aggregate`] would give if the trace ended at `time`,
    /// in microseconds since its start. Its [`Aggregate::events`] are those of `whole`.
    pub fn aggregate_until(
        &self,
        time: u64,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        self.aggregate_survivors(time, NEVER, whole, locations, options)
    }

    /// The same, but only blocks that were in the old generation at `old_before` have
    /// [survived](crate::Metric::Survived): those that lived through a major collection, if
    /// that is when one began that has ended since. `u64::MAX` stands for any collection.
    pub fn aggregate_survivors(
        &self,
        time: u64,
        old_before: u64,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        let end = time.min(whole.end);
        let paths = SelectedPaths::new(whole, locations, &options.selection);
        let copied;
        let mut past = match self.view_until(time) {
            Some(past) => past,
            None => {
                copied = self.until(time);
                copied.view()
            }
        };
        past.old_before = old_before;
        let selected = past.select_at(end, whole, &paths, &options.selection);
        past.survivors_at(end, &selected, whole, locations, options)
    }

    /// [`BlockTable::aggregate_of`], but only blocks that were in the old generation at
    /// `old_before` have survived.
    pub fn aggregate_survivors_of(
        &self,
        old_before: u64,
        selected: &SelectedRows,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        let view = TableView { old_before, ..self.view() };
        view.survivors_at(whole.end, selected, whole, locations, options)
    }

    /// The table up to `time`, if its rows are in the order of time: then nothing needs to be
    /// copied. Those of a trace that was read out of order are not.
    fn view_until(&self, time: u64) -> Option<TableView<'_>> {
        let born = self.rows.iter().position(|row| row.birth > time).unwrap_or(self.rows.len());
        let (rows, later) = self.rows.split_at(born);
        let is_sorted = later.iter().all(|row| row.birth > time);
        is_sorted.then(|| TableView { rows, until: time, ..self.view() })
    }

    /// The rows born by `time`, without what happened to them later.
    fn until(&self, time: u64) -> BlockTable {
        let passed = |at: u64| if at <= time { at } else { NEVER };
        // For each number of rows, how many of them were born by then. Rows of a trace that
        // was read out of order are not sorted.
        let mut born = Vec::with_capacity(self.rows.len() + 1);
        let mut rows = Vec::with_capacity(self.rows.len());
        born.push(0);
        for row in &self.rows {
            if row.birth <= time {
                let (promotion, death) = (passed(row.promotion), passed(row.death));
                rows.push(BlockRow {
                    promotion,
                    death,
                    ended: row.ended && death != NEVER,
                    ..*row
                });
            }
            born.push(rows.len() as u32);
        }
        let has_passed = |end: &&BlockEnd| {
            let row = &self.rows[end.row as usize];
            row.birth <= time && row.death <= time
        };
        let renumbered = |end: &BlockEnd| BlockEnd {
            row: born[end.row as usize],
            births: born[end.births as usize],
            ..*end
        };
        let ends = self.ends.iter().filter(has_passed).map(renumbered).collect();
        let was_promoted = |promotion: &&Promotion| {
            let row = &self.rows[promotion.row as usize];
            row.birth <= time && row.promotion <= time
        };
        let promotions = self.promotions.iter().filter(was_promoted).map(|promotion| Promotion {
            row: born[promotion.row as usize],
            births: born[promotion.births as usize],
        });
        let promotions = promotions.collect();
        let (mut from, mut kept, mut trace_ends) = (0, 0, Vec::new());
        for end in self.trace_ends.iter().filter(|end| end.time <= time) {
            kept += self.ends[from..end.ends as usize].iter().filter(has_passed).count() as u32;
            from = end.ends as usize;
            trace_ends.push(TraceEnd { births: born[end.births as usize], ends: kept, ..*end });
        }
        BlockTable {
            rows,
            ends,
            promotions,
            trace_ends,
            level: self.level,
            rates: self.rates.clone(),
        }
    }
}

impl TableView<'_> {
    /// The aggregate of these rows, with those that have survived by `old_before`.
    fn survivors_at(
        &self,
        end: u64,
        selected: &SelectedRows,
        whole: &Aggregate,
        locations: &LocationTable,
        options: &Options,
    ) -> Aggregate {
        let mut aggregate = self.aggregate_at(end, selected, whole, locations, options);
        if self.old_before == NEVER {
            return aggregate;
        }
        // Young are those that no collection at all has seen.
        let seen = TableView { old_before: NEVER, ..*self };
        let rows = seen.rows.iter().enumerate().filter(|&(at, _)| selected.contains(at));
        let alive = rows.filter(|(_, row)| !seen.is_over(row) || row.ended);
        let blocks = alive.map(|(number, _)| seen.block(number, 0));
        aggregate.live_young = blocks.filter(|block| !block.old).map(|block| block.sampled()).sum();
        aggregate
    }
}

#[cfg(test)]
mod tests {
    use heaptap_trace::{Allocation, Backtrace, Event, EventKind, Source};

    use super::*;
    use crate::aggregate::Metric;
    use crate::aggregator::Aggregator;
    use crate::aggregator::tests::info;
    use crate::depth::Depth;
    use crate::thinning::scramble;
    use crate::trace_ending::TraceEnding;

    /// Blocks of which most are promoted or collected some time after, with a trace that ends
    /// in between.
    fn read() -> Aggregator {
        let options = Options { depth: Depth::Whole, most_blocks: 5_000, ..Options::default() };
        let mut aggregator = Aggregator::new(&info(0.1), options);
        let table = LocationTable::default();
        for id in 0..4_000_u64 {
            let frames = [1, 10 + scramble(id) % 50];
            let backtrace = Backtrace { frames: &frames, common_prefix: 0, new: &frames };
            let allocation =
                Allocation { id, length: 9, samples: 1 + id % 3, source: Source::Minor, backtrace };
            let mut happen = |kind| {
                aggregator.event(&Event { time: 10 * id, domain: 0, kind }, &table);
            };
            happen(EventKind::Alloc(allocation));
            if let Some(old) = id.checked_sub(100 + scramble(id) % 40) {
                let is_promoted = old.is_multiple_of(3);
                happen(if is_promoted { EventKind::Promote(old) } else { EventKind::Collect(old) });
            }
            if id == 2_500 {
                aggregator.end_trace(0..1_000, TraceEnding::Process);
            }
        }
        aggregator
    }

    #[test]
    fn what_survived_was_old_early_enough() {
        let mut aggregator = read();
        let (whole, blocks) = aggregator.aggregate_with_blocks();
        let (options, table) = (Options::default(), LocationTable::default());
        let until = |time| blocks.aggregate_until(time, whole, &table, &options);
        let survived = |aggregate: &Aggregate| aggregate.total(Metric::Survived).count;
        let now = until(u64::MAX);
        let all = blocks.aggregate_survivors(u64::MAX, u64::MAX, whole, &table, &options);
        assert_eq!(survived(&all), survived(&now));
        let mut last = 0;
        for old_before in [0, 8_000, 20_000, 39_990] {
            let some = blocks.aggregate_survivors(u64::MAX, old_before, whole, &table, &options);
            // By hand, from the rows.
            let is_kept = |row: &BlockRow| row.death == NEVER || row.ended;
            let old = |row: &&BlockRow| is_kept(row) && row.promotion <= old_before;
            let expected: u64 = blocks.rows.iter().filter(old).map(|row| row.samples.count()).sum();
            assert_eq!(survived(&some), expected, "before {old_before}");
            assert_eq!(some.live_young, now.live_young, "before {old_before}");
            assert!(expected >= last, "before {old_before}");
            let of_all = blocks.all(whole);
            let page = blocks.aggregate_survivors_of(old_before, &of_all, whole, &table, &options);
            assert_eq!((survived(&page), page.live_young), (expected, some.live_young));
            last = expected;
        }
        assert!(last > 0 && last == survived(&now));
    }

    #[test]
    fn a_view_of_an_earlier_moment_counts_what_a_copy_does() {
        let mut aggregator = read();
        let (whole, blocks) = aggregator.aggregate_with_blocks();
        let options = Options { depth: Depth::Whole, ..Options::default() };
        let table = LocationTable::default();
        let paths = SelectedPaths::new(whole, &table, &options.selection);
        let counted = |past: TableView<'_>, end: u64| {
            let selected = past.select_at(end, whole, &paths, &options.selection);
            past.aggregate_at(end, &selected, whole, &table, &options)
        };
        for time in [0, 9, 10, 12_345, 24_990, 25_000, 25_010, 39_990, u64::MAX] {
            let end = time.min(whole.end);
            let view = blocks.view_until(time).expect("the rows are in order");
            let (found, expected) = (counted(view, end), counted(blocks.until(time).view(), end));
            assert!(found.counts.iter().eq(expected.counts.iter()), "at {time}");
            assert_eq!(found.peak.state(), expected.peak.state(), "at {time}");
            assert_eq!(found.promoted, expected.promoted, "at {time}");
            assert_eq!(found.lifetimes.classes(), expected.lifetimes.classes(), "at {time}");
            assert_eq!(found.lifetimes.survivors(), expected.lifetimes.survivors(), "at {time}");
            assert_eq!(found.live_young, expected.live_young, "at {time}");
            assert!(found.counts.iter().any(|counts| counts.live > 0), "at {time}");
        }
    }
}
