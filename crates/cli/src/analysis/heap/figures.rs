//! The tables as values.

use heaptap_heap::{HeapAnalysis, HolderRow, LabelRow, Level, MetaKey, Reach, Reachability};
use heaptap_report::Regex;
use serde::Serialize;

use super::findings::{Finding, findings};
use super::titles::Titles;
use crate::analysis::ocaml_types::TypeFigures;

/// What a table lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeapRows {
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
pub(crate) struct HeapSize {
    pub(crate) blocks: u64,
    /// With headers.
    pub(crate) bytes: u64,
}

impl From<Reach> for HeapSize {
    fn from(reach: Reach) -> HeapSize {
        HeapSize { blocks: reach.blocks, bytes: reach.bytes }
    }
}

/// A row of a table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HeapRow {
    pub(crate) name: String,
    /// Roots of a holder; absent for blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) roots: Option<u64>,
    /// What is reachable from it.
    pub(crate) reachable_bytes: u64,
    /// What would be freed without it.
    pub(crate) exclusive_bytes: u64,
    /// What it reaches and no row before it does, in a fixed order; for blocks, what they
    /// take themselves. These add up to all that is reachable.
    pub(crate) first_reached: HeapSize,
    /// Outside the heap, freed without it.
    pub(crate) outside_bytes: u64,
}

/// A table; what is not shown is in the last line.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HeapTable {
    pub(crate) by: &'static str,
    pub(crate) rows: Vec<HeapRow>,
    pub(crate) other_rows: u64,
    pub(crate) other_first_reached: HeapSize,
}

/// Everything about a snapshot that `heaptap heap` prints.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct HeapFigures {
    pub(crate) program: String,
    pub(crate) runtime: String,
    /// In microseconds since the Unix epoch; absent if it is not known.
    pub(crate) taken_us: Option<u64>,
    pub(crate) reason: String,
    pub(crate) all: HeapSize,
    pub(crate) reachable: HeapSize,
    pub(crate) outside_bytes: u64,
    /// Pointers that lead to no block.
    pub(crate) dangling: u64,
    pub(crate) kinds: HeapTable,
    pub(crate) table: HeapTable,
    pub(crate) findings: Vec<Finding>,
    /// How much has types, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) types: Option<TypeFigures>,
}

/// Which rows are shown.
pub(crate) struct RowSelection<'a> {
    pub(crate) rows: HeapRows,
    /// The most rows; 0 for all.
    pub(crate) limit: usize,
    pub(crate) include: &'a [Regex],
    pub(crate) exclude: &'a [Regex],
}

impl HeapFigures {
    pub(crate) fn new(analysis: &HeapAnalysis, selection: &RowSelection<'_>) -> HeapFigures {
        let facts = analysis.graph.facts();
        let text = |key| String::from_utf8_lossy(facts.meta(key).unwrap_or_default()).into_owned();
        let Reachability { all, reachable, .. } = analysis.graph.reachable();
        let kinds = RowSelection {
            rows: HeapRows::Holders(Level::Kind),
            limit: 0,
            include: &[],
            exclude: &[],
        };
        HeapFigures {
            program: text(MetaKey::PROGRAM),
            runtime: text(MetaKey::RUNTIME),
            taken_us: facts.number(MetaKey::TIME).map(|nanoseconds| nanoseconds / 1000),
            reason: text(MetaKey::REASON),
            all: all.into(),
            reachable: reachable.into(),
            outside_bytes: analysis.dominators.retained_outside(0),
            dangling: analysis.graph.dangling(),
            kinds: table(analysis, &kinds),
            table: table(analysis, selection),
            findings: findings(analysis),
            types: None,
        }
    }
}

/// A row before what is costly is found: only for those that are shown.
enum Candidate {
    Holder(HolderRow),
    Blocks(LabelRow),
}

fn table(analysis: &HeapAnalysis, selection: &RowSelection<'_>) -> HeapTable {
    let titles = Titles::new(analysis);
    let named: Vec<(String, Candidate)> = match selection.rows {
        HeapRows::Holders(level) => analysis
            .holder_rows(level)
            .into_iter()
            .map(|row| (titles.holder(row.holder), Candidate::Holder(row)))
            .collect(),
        HeapRows::Blocks | HeapRows::Types | HeapRows::Customs => analysis
            .label_rows()
            .into_iter()
            .filter(|row| selection.rows != HeapRows::Customs || row.is_custom(analysis))
            .map(|row| (titles.label(row.label), Candidate::Blocks(row)))
            .collect(),
    };
    let selected = |name: &str| {
        let matches = |pattern: &Regex| pattern.is_match(name.as_bytes());
        selection.include.iter().all(matches) && !selection.exclude.iter().any(matches)
    };
    let named: Vec<_> = named.into_iter().filter(|(name, _)| selected(name)).collect();
    let shown = if selection.limit == 0 { named.len() } else { selection.limit.min(named.len()) };
    let (mut rows, mut others) = (Vec::with_capacity(shown), HeapSize::default());
    let all_rows = named.len();
    for (index, (name, candidate)) in named.into_iter().enumerate() {
        if index < shown {
            rows.push(complete(analysis, name, &candidate));
        } else {
            let own = candidate.first_reached();
            others.blocks += own.blocks;
            others.bytes += own.bytes;
        }
    }
    let other_rows = (all_rows - shown) as u64;
    HeapTable { by: selection.rows.name(), rows, other_rows, other_first_reached: others }
}

fn complete(analysis: &HeapAnalysis, name: String, candidate: &Candidate) -> HeapRow {
    match candidate {
        Candidate::Holder(row) => HeapRow {
            name,
            roots: Some(row.roots),
            reachable_bytes: analysis.holders.reachable(&analysis.graph, row.holder).bytes,
            exclusive_bytes: row.exclusive,
            first_reached: row.first_reached.into(),
            outside_bytes: row.outside,
        },
        Candidate::Blocks(row) => HeapRow {
            name,
            roots: None,
            reachable_bytes: analysis.reachable_from(row.label).bytes,
            exclusive_bytes: analysis.freed_without(row.label),
            first_reached: row.own.into(),
            outside_bytes: row.outside,
        },
    }
}

impl Candidate {
    fn first_reached(&self) -> HeapSize {
        match self {
            Candidate::Holder(row) => row.first_reached.into(),
            Candidate::Blocks(row) => row.own.into(),
        }
    }
}

impl HeapRows {
    pub(crate) fn name(self) -> &'static str {
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
