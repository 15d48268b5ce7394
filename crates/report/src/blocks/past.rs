//! The table as it was at an earlier moment.
//!
//! Every row has the times of its block, so no states of the past need to be kept: the
//! rows born by then, without what happened to them later, are the table of that moment.
//! The bound on rows, [`MOST_BLOCKS`](super::MOST_BLOCKS), bounds the time that it takes.

use heaptap_trace::LocationTable;

use super::{BlockEnd, BlockRow, BlockTable, NEVER, SelectedPaths, TraceEnd};
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
        let (past, end) = (self.until(time), time.min(whole.end));
        let paths = SelectedPaths::new(whole, locations, &options.selection);
        let selected = past.select_at(end, whole, &paths, &options.selection);
        past.aggregate_at(end, &selected, whole, locations, options)
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
        let (mut from, mut kept, mut trace_ends) = (0, 0, Vec::new());
        for end in self.trace_ends.iter().filter(|end| end.time <= time) {
            kept += self.ends[from..end.ends as usize].iter().filter(has_passed).count() as u32;
            from = end.ends as usize;
            trace_ends.push(TraceEnd { births: born[end.births as usize], ends: kept, ..*end });
        }
        BlockTable { rows, ends, trace_ends, level: self.level }
    }
}
