//! Records the table of blocks while a trace is read.

use std::ops::Range;

use super::{BlockEnd, BlockRow, BlockTable, EndKind, NEVER, Promotion, TraceEnd};
use crate::ids::IdMap;
use crate::paths::PathMoves;
use crate::rates::Rates;
use crate::thinning::is_tracked;
use crate::trace_ending::TraceEnding;
use heaptap_trace::Source;

/// A table that grows.
pub(crate) struct Recorder {
    table: BlockTable,
    /// The rows of blocks that are alive.
    alive: IdMap<u32>,
    most: usize,
}

impl Recorder {
    /// Records up to `most` rows.
    pub(crate) fn new(most: usize, rates: Rates) -> Self {
        Recorder {
            table: BlockTable { rates, ..BlockTable::default() },
            alive: IdMap::default(),
            most,
        }
    }

    /// A block is allocated.
    pub(crate) fn born(&mut self, row: BlockRow) {
        let size = self.table.rates.thinning_size(row.samples);
        if !is_tracked(row.id, size, self.table.level) {
            return;
        }
        while self.table.rows.len() >= self.most {
            self.thin();
            if !is_tracked(row.id, size, self.table.level) {
                return;
            }
        }
        let births = self.table.rows.len() as u32;
        if let Some(other) = self.alive.insert(row.id, births) {
            self.table.rows[other as usize].death = row.birth;
            self.table.ends.push(BlockEnd { row: other, births, kind: EndKind::Replaced });
        }
        self.table.rows.push(row);
    }

    /// A block moves to the old generation.
    pub(crate) fn promoted(&mut self, id: u64, time: u64) {
        let Some(&row) = self.alive.get(&id) else { return };
        let births = self.table.rows.len() as u32;
        let BlockRow { promotion, source, .. } = &mut self.table.rows[row as usize];
        if *promotion == NEVER && *source == Source::Minor {
            *promotion = time;
            self.table.promotions.push(Promotion { row, births });
        }
    }

    /// A block is collected.
    pub(crate) fn died(&mut self, id: u64, time: u64) {
        let Some(row) = self.alive.remove(&id) else { return };
        self.table.rows[row as usize].death = time;
        let births = self.table.rows.len() as u32;
        self.table.ends.push(BlockEnd { row, births, kind: EndKind::Collected });
    }

    /// One of several traces ends, whose blocks have these ids.
    pub(crate) fn trace_ended(&mut self, ids: &Range<u64>, time: u64, ending: TraceEnding) {
        let of_trace = self.alive.extract_if(|id, _| ids.contains(id));
        let mut ended: Vec<u32> = of_trace.map(|(_, row)| row).collect();
        ended.sort_unstable();
        let BlockTable { rows, ends, trace_ends, .. } = &mut self.table;
        let births = rows.len() as u32;
        for row in ended {
            let BlockRow { death, ended, .. } = &mut rows[row as usize];
            (*death, *ended) = (time, true);
            ends.push(BlockEnd { row, births, kind: EndKind::TraceEnded });
        }
        trace_ends.push(TraceEnd { births, ends: ends.len() as u32, time, ending });
    }

    /// Renumbers paths.
    pub(crate) fn move_paths(&mut self, moves: &PathMoves) {
        for row in &mut self.table.rows {
            row.path = moves.to[row.path as usize];
        }
    }

    /// The table so far.
    pub(crate) fn table(&self) -> &BlockTable {
        &self.table
    }

    pub(crate) fn finish(self) -> BlockTable {
        self.table
    }

    /// Drops half of the rows.
    fn thin(&mut self) {
        let BlockTable { rows, ends, promotions, trace_ends, level, rates } = &mut self.table;
        *level += 1;
        // For each number of rows, how many of them stay.
        let mut stay = Vec::with_capacity(rows.len() + 1);
        stay.push(0_u32);
        for row in &*rows {
            let stays = is_tracked(row.id, rates.thinning_size(row.samples), *level);
            stay.push(stay.last().copied().unwrap_or(0) + u32::from(stays));
        }
        let stays = |row: u32| stay[row as usize + 1] > stay[row as usize];
        let moved = |row: u32| stay[row as usize];
        rows.retain(|row| is_tracked(row.id, rates.thinning_size(row.samples), *level));
        let (mut from, mut kept) = (0, 0);
        for trace in trace_ends {
            let before = &ends[from..trace.ends as usize];
            from = trace.ends as usize;
            kept += before.iter().filter(|end| stays(end.row)).count() as u32;
            *trace = TraceEnd { births: moved(trace.births), ends: kept, ..*trace };
        }
        ends.retain(|end| stays(end.row));
        for end in &mut *ends {
            (end.row, end.births) = (moved(end.row), moved(end.births));
        }
        promotions.retain(|promotion| stays(promotion.row));
        for promotion in &mut *promotions {
            (promotion.row, promotion.births) = (moved(promotion.row), moved(promotion.births));
        }
        self.alive.retain(|_, row| {
            let kept = stays(*row);
            *row = moved(*row);
            kept
        });
    }
}
