//! The tables as values.

use heaptap_graph::{HeapAnalysis, HolderRow, KindRow, Level, Reach, Share};
use heaptap_heap::MetaKey;
use regex::bytes::Regex;
use serde::Serialize;

use super::findings::{Finding, findings};
use super::titles::Titles;
use super::types::TypeFigures;

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
    /// Pointers that lead to no block.
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
        }
    }
}

/// The table of a selection.
pub fn table(analysis: &HeapAnalysis, selection: &RowSelection<'_>) -> HeapTable {
    match selection.rows {
        HeapRows::Holders(level) => {
            selection.table(analysis.holder_rows(level), &HolderTable(analysis))
        }
        HeapRows::Blocks | HeapRows::Types | HeapRows::Customs => {
            let is_shown = |row: &&KindRow| {
                selection.rows != HeapRows::Customs || row.is_custom(&analysis.kinds)
            };
            let rows = analysis.kind_rows().iter().filter(is_shown).copied().collect();
            selection.table(rows, &KindTable(analysis))
        }
    }
}

/// Rows of one kind. What is costly is found for all that are shown, at once.
trait TableRows {
    type Row;

    fn name(&self, row: &Self::Row) -> String;
    fn first_reached(&self, row: &Self::Row) -> Share;
    /// Rows with their names.
    fn complete(&self, rows: Vec<(String, Self::Row)>) -> Vec<HeapRow>;
}

struct HolderTable<'a>(&'a HeapAnalysis);

impl TableRows for HolderTable<'_> {
    type Row = HolderRow;

    fn name(&self, row: &HolderRow) -> String {
        Titles::new(self.0).holder(row.holder)
    }

    fn first_reached(&self, row: &HolderRow) -> Share {
        row.first_reached
    }

    fn complete(&self, rows: Vec<(String, HolderRow)>) -> Vec<HeapRow> {
        let holders: Vec<_> = rows.iter().map(|(_, row)| row.holder).collect();
        let reachable = self.0.reachable_from_holders(&holders);
        let complete = |((name, row), reachable): ((String, HolderRow), Reach)| HeapRow {
            name,
            roots: Some(row.roots),
            reachable_bytes: reachable.bytes,
            exclusive_bytes: row.exclusive,
            first_reached: row.first_reached.reach.into(),
            outside_bytes: row.outside.allocated,
            first_outside_bytes: row.first_reached.outside.allocated,
            mapped_bytes: row.outside.mapped,
        };
        rows.into_iter().zip(reachable).map(complete).collect()
    }
}

struct KindTable<'a>(&'a HeapAnalysis);

impl TableRows for KindTable<'_> {
    type Row = KindRow;

    fn name(&self, row: &KindRow) -> String {
        Titles::new(self.0).kind(row.kind)
    }

    fn first_reached(&self, row: &KindRow) -> Share {
        Share { reach: row.own, outside: row.outside }
    }

    fn complete(&self, rows: Vec<(String, KindRow)>) -> Vec<HeapRow> {
        let kinds: Vec<_> = rows.iter().map(|(_, row)| row.kind).collect();
        let costly = self.0.reachable_from_kinds(&kinds).into_iter();
        let costly = costly.zip(self.0.freed_without(&kinds));
        let complete =
            |((name, row), (reachable, freed)): ((String, KindRow), (Reach, u64))| HeapRow {
                name,
                roots: None,
                reachable_bytes: reachable.bytes,
                exclusive_bytes: freed,
                first_reached: row.own.into(),
                outside_bytes: row.outside.allocated,
                first_outside_bytes: row.outside.allocated,
                mapped_bytes: row.outside.mapped,
            };
        rows.into_iter().zip(costly).map(complete).collect()
    }
}

impl RowSelection<'_> {
    fn table<T: TableRows>(&self, rows: Vec<T::Row>, kind: &T) -> HeapTable {
        let mut named: Vec<(String, T::Row)> = rows
            .into_iter()
            .map(|row| (kind.name(&row), row))
            .filter(|(name, _)| self.is_selected(name))
            .collect();
        let shown = if self.limit == 0 { named.len() } else { self.limit.min(named.len()) };
        let others = named.split_off(shown);
        let others_share = others
            .iter()
            .map(|(_, row)| kind.first_reached(row))
            .fold(Share::default(), Share::plus);
        HeapTable {
            by: self.rows.name(),
            rows: kind.complete(named),
            other_rows: others.len() as u64,
            other_first_reached: others_share.reach.into(),
            other_first_outside_bytes: others_share.outside.allocated,
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
