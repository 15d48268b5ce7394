//! The tables as values.

use heaptap_graph::{HeapAnalysis, HolderRow, KindRow, Level, OutsideBytes, Reach, Share};
use heaptap_heap::MetaKey;
use regex::bytes::Regex;
use serde::Serialize;

use super::findings::{Finding, findings};
use super::titles::Titles;
use super::types::{TypeFigures, TypeFiles};

/// What a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeapRows {
    /// Holders.
    Holders(Level),
    /// Blocks that are alike.
    Blocks,
    /// The same, where types were given.
    Types,
    /// Custom blocks.
    Customs,
}

/// A size in the heap.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeapSize {
    pub blocks: u64,
    /// With headers.
    pub bytes: u64,
}

impl From<Reach> for HeapSize {
    fn from(reach: Reach) -> HeapSize {
        HeapSize { blocks: reach.blocks, bytes: reach.bytes }
    }
}

/// A row of a table.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeapRow {
    pub name: String,
    /// Roots of a holder; absent for blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub roots: Option<u64>,
    /// What is reachable from it.
    pub reachable_bytes: u64,
    /// What would be freed without it.
    pub exclusive_bytes: u64,
    /// What it reaches and no row before it does, in a fixed order; for blocks, what they
    /// take themselves. These add up to all that is reachable.
    pub first_reached: HeapSize,
    /// Outside the heap, freed without it; for blocks, what they keep.
    pub outside_bytes: u64,
    /// What it reaches first outside the heap; for blocks, what they keep.
    pub first_outside_bytes: u64,
    /// Mapped files, counted as `outside_bytes` is.
    pub mapped_bytes: u64,
}

/// A table; what is not shown is in the last line.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeapTable {
    pub by: &'static str,
    pub rows: Vec<HeapRow>,
    pub other_rows: u64,
    pub other_first_reached: HeapSize,
    /// The same outside the heap.
    pub other_first_outside_bytes: u64,
}

/// What a snapshot is of, and how much it holds.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeapSummary {
    pub program: String,
    pub runtime: String,
    /// In microseconds since the Unix epoch; absent if it is not known.
    pub taken_us: Option<u64>,
    pub reason: String,
    pub all: HeapSize,
    pub reachable: HeapSize,
    pub outside_bytes: u64,
    /// Mapped files, which are not in `outside_bytes`.
    pub mapped_bytes: u64,
    /// Absent if the runtime has no fibers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(optional))]
    pub stacks: Option<FiberStacks>,
    /// Roots, and pointers of what is alive, that lead to no block.
    pub dangling: u64,
}

/// The memory of stacks, outside the heap.
#[derive(Clone, Copy, Debug, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FiberStacks {
    /// With those whose continuations are dead.
    pub suspended_fibers: u64,
    pub suspended_bytes: u64,
    /// Of threads and running fibers.
    pub running_bytes: u64,
    /// That the runtime keeps for later.
    pub free_bytes: u64,
}

impl FiberStacks {
    pub fn new(number: impl Fn(MetaKey) -> Option<u64>) -> Option<FiberStacks> {
        Some(FiberStacks {
            suspended_fibers: number(MetaKey::SUSPENDED_FIBERS)?,
            suspended_bytes: number(MetaKey::SUSPENDED_STACKS)?,
            running_bytes: number(MetaKey::RUNNING_STACKS)?,
            free_bytes: number(MetaKey::FREE_STACKS)?,
        })
    }
}

impl HeapSummary {
    pub fn new(analysis: &HeapAnalysis) -> HeapSummary {
        let facts = analysis.graph.facts();
        let text = |key| String::from_utf8_lossy(facts.meta(key).unwrap_or_default()).into_owned();
        HeapSummary {
            program: text(MetaKey::PROGRAM),
            runtime: text(MetaKey::RUNTIME),
            taken_us: facts.number(MetaKey::TIME).map(|nanoseconds| nanoseconds / 1000),
            reason: text(MetaKey::REASON),
            all: analysis.all().into(),
            reachable: analysis.reachable().into(),
            outside_bytes: analysis.outside().allocated,
            mapped_bytes: analysis.outside().mapped,
            stacks: FiberStacks::new(|key| facts.number(key)),
            dangling: analysis.graph.dangling(),
        }
    }
}

/// Everything about a snapshot that `heaptap heap` prints.
#[derive(Clone, Debug, Serialize)]
pub struct HeapFigures {
    #[serde(flatten)]
    pub summary: HeapSummary,
    pub kinds: HeapTable,
    pub table: HeapTable,
    pub findings: Vec<Finding>,
    /// How much has types, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub types: Option<TypeFigures>,
    /// The files of types, if they were looked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub type_files: Option<TypeFiles>,
}

/// Which rows are shown.
pub struct RowSelection<'a> {
    pub rows: HeapRows,
    /// The most rows; 0 for all.
    pub limit: usize,
    pub include: &'a [Regex],
    pub exclude: &'a [Regex],
}

impl HeapFigures {
    pub fn new(analysis: &HeapAnalysis, selection: &RowSelection<'_>) -> HeapFigures {
        let kinds = RowSelection {
            rows: HeapRows::Holders(Level::Kind),
            limit: 0,
            include: &[],
            exclude: &[],
        };
        HeapFigures {
            summary: HeapSummary::new(analysis),
            kinds: table(analysis, &kinds),
            table: table(analysis, selection),
            findings: findings(analysis),
            types: None,
            type_files: None,
        }
    }
}

/// The table of a selection. What is costly is found for all rows that are shown, at once.
pub fn table(analysis: &HeapAnalysis, selection: &RowSelection<'_>) -> HeapTable {
    let titles = Titles::new(analysis);
    if let HeapRows::Holders(level) = selection.rows {
        let row = |row: HolderRow| HeapRow {
            roots: Some(row.roots),
            exclusive_bytes: row.exclusive,
            ..HeapRow::new(titles.holder(row.holder), row.first_reached, row.outside)
        };
        let rows = analysis.holder_rows(level).into_iter().map(|found| (found.holder, row(found)));
        return selection.table(rows, |holders, rows| {
            for (row, reachable) in rows.iter_mut().zip(analysis.reachable_from_holders(holders)) {
                row.reachable_bytes = reachable.bytes;
            }
        });
    }
    let is_shown =
        |row: &&KindRow| selection.rows != HeapRows::Customs || row.is_custom(&analysis.kinds);
    let rows = analysis.kind_rows().iter().filter(is_shown).map(|row| {
        let own = Share { reach: row.own, outside: row.outside };
        (row.kind, HeapRow::new(titles.kind(row.kind), own, row.outside))
    });
    selection.table(rows, |kinds, rows| {
        let costly = analysis.reachable_from_kinds(kinds).into_iter();
        for (row, (reachable, freed)) in
            rows.iter_mut().zip(costly.zip(analysis.freed_without(kinds)))
        {
            (row.reachable_bytes, row.exclusive_bytes) = (reachable.bytes, freed);
        }
    })
}

impl HeapRow {
    /// Without what is costly.
    fn new(name: String, first_reached: Share, outside: OutsideBytes) -> HeapRow {
        HeapRow {
            name,
            roots: None,
            reachable_bytes: 0,
            exclusive_bytes: 0,
            first_reached: first_reached.reach.into(),
            outside_bytes: outside.allocated,
            first_outside_bytes: first_reached.outside.allocated,
            mapped_bytes: outside.mapped,
        }
    }
}

impl RowSelection<'_> {
    /// Of rows with the numbers of what they stand for, by which `complete` finds what is costly.
    fn table(
        &self,
        rows: impl Iterator<Item = (u32, HeapRow)>,
        complete: impl FnOnce(&[u32], &mut [HeapRow]),
    ) -> HeapTable {
        let (mut ids, mut rows): (Vec<u32>, Vec<HeapRow>) =
            rows.filter(|(_, row)| self.is_selected(&row.name)).unzip();
        let shown = if self.limit == 0 { rows.len() } else { self.limit.min(rows.len()) };
        let others = rows.split_off(shown);
        ids.truncate(shown);
        complete(&ids, &mut rows);
        let sum = |part: fn(&HeapRow) -> u64| others.iter().map(part).fold(0, u64::saturating_add);
        HeapTable {
            by: self.rows.name(),
            rows,
            other_rows: others.len() as u64,
            other_first_reached: HeapSize {
                blocks: sum(|row| row.first_reached.blocks),
                bytes: sum(|row| row.first_reached.bytes),
            },
            other_first_outside_bytes: sum(|row| row.first_outside_bytes),
        }
    }

    fn is_selected(&self, name: &str) -> bool {
        let matches = |pattern: &Regex| pattern.is_match(name.as_bytes());
        self.include.iter().all(matches) && !self.exclude.iter().any(matches)
    }
}

impl HeapRows {
    pub fn name(self) -> &'static str {
        match self {
            HeapRows::Holders(Level::Kind) => "kind of root",
            HeapRows::Holders(Level::Module) => "module",
            HeapRows::Holders(Level::Variable) => "variable",
            HeapRows::Holders(Level::Domain) => "domain",
            HeapRows::Holders(Level::Thread) => "thread",
            HeapRows::Holders(Level::Frame) => "stack frame",
            HeapRows::Blocks => "block",
            HeapRows::Types => "type",
            HeapRows::Customs => "custom block",
        }
    }
}
