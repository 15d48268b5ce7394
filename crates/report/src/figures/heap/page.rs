//! Heap snapshots as the web page shows them: one bounded document. The page asks no
//! question about a snapshot that is not answered in it.

use heaptap_graph::{HeapAnalysis, KindId, Level, Node, PathFinder};
use heaptap_heap::MetaKey;
use serde::Serialize;

use crate::own_code::SiteFrame;
use crate::rows::Site;

use super::findings::{Finding, compare, findings};
use super::growth::{GrowthRows, GrowthSide, GrowthTable};
use super::page_tree::PageTree;
use super::path_steps::{PathLine, path_lines};
use super::sets::SetNames;
use super::sites::SiteFigures;
use super::tables::{HeapRows, HeapSummary, HeapTable, RowSelection, table};
use super::titles::Titles;

/// Rows of each table. What 32 rows reach is found at once.
pub const ROWS: usize = 32;
/// Rows of each stack.
const STACK_ROWS: usize = 64;
/// Of a long path, this many steps from either end.
const PATH_ENDS: usize = 12;
const MOST_HOLDERS: usize = 20;
/// Of this many snapshots, any two are compared; of more, those that are next to each other, and each with
/// the first and the last.
pub const COMPARED: usize = 12;
/// What rows of a comparison are.
const GROWTH_ROWS: [GrowthRows; 3] = [
    GrowthRows::Rows(HeapRows::Holders(Level::Variable)),
    GrowthRows::Rows(HeapRows::Blocks),
    GrowthRows::Sets,
];

/// All snapshots of a page, in the order in which they were taken. The field names are those of its JSON.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "SnapshotDocument"))]
pub struct PageSnapshots {
    pub snapshots: Vec<PageSnapshot>,
    pub failed: Vec<FailedSnapshot>,
    pub growths: Vec<PairGrowth>,
}

/// What changed from one snapshot to a later one.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct PairGrowth {
    pub before: usize,
    pub after: usize,
    pub tables: Vec<GrowthTable>,
}

/// A file that could not be shown.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct FailedSnapshot {
    pub name: String,
    pub error: String,
}

/// A snapshot.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Snapshot"))]
pub struct PageSnapshot {
    pub name: String,
    #[serde(flatten)]
    pub summary: HeapSummary,
    pub pid: Option<u64>,
    /// The trace of the page that was being written then, and the time in it.
    pub trace: Option<usize>,
    pub at_us: Option<u64>,
    pub tables: Vec<HeapTable>,
    pub stacked_rows: Vec<StackedRows>,
    pub findings: Vec<Finding>,
    pub tree: PageTree,
    pub paths: Vec<HeldBlock>,
    /// Where it was allocated, if its trace is there.
    pub sites: Option<SiteFigures>,
    /// What holds the blocks of the sites that have most in it, by the samples of its trace.
    pub held_sites: Vec<HeldSite>,
}

/// What holds the blocks of a site, as `heaptap leaks --heap` says it.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeldSite {
    /// Which frame of a stack the site is.
    pub sites: SiteFrame,
    pub site: Site,
    /// The holders with their shares.
    pub text: String,
    /// The one that holds most, unless that is garbage.
    pub holder: Option<String>,
}

/// The rows of a table that reach most first, which the page stacks over time. Those of the table itself are the
/// ones that hold most alone.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct StackedRows {
    pub by: &'static str,
    /// Names and the bytes that they reach first, the most first.
    pub rows: Vec<(String, u64)>,
}

/// What holds the block that retains most of those that a row of a table stands for.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct HeldBlock {
    pub row: String,
    pub block: String,
    pub retained_bytes: u64,
    pub shortest: Vec<String>,
    /// Without any of these it would go.
    pub dominators: Vec<String>,
    pub holders: Vec<String>,
    pub other_holders: usize,
}

/// Snapshots as they are read, one after the other. The heap of an earlier one need not be kept.
#[derive(Default)]
pub struct SnapshotPages {
    page: PageSnapshots,
    names: SetNames,
    sides: Vec<[GrowthSide; 3]>,
}

impl SnapshotPages {
    /// Adds a snapshot; its findings say what changed since the one `before` it.
    pub fn add(
        &mut self,
        mut snapshot: PageSnapshot,
        analysis: &HeapAnalysis,
        before: Option<&HeapAnalysis>,
    ) {
        if let Some(before) = before {
            compare(&mut snapshot.findings, analysis, before);
        }
        self.sides.push(GROWTH_ROWS.map(|by| GrowthSide::of(analysis, by, &mut self.names)));
        self.page.snapshots.push(snapshot);
    }

    /// Adds a file that could not be shown.
    pub fn fail(&mut self, name: String, error: String) {
        self.page.failed.push(FailedSnapshot { name, error });
    }

    /// The page, with its comparisons.
    pub fn finish(self) -> PageSnapshots {
        let SnapshotPages { mut page, names, sides } = self;
        let last = sides.len().saturating_sub(1);
        let is_compared = |before: usize, after: usize| {
            sides.len() <= COMPARED || after == before + 1 || before == 0 || after == last
        };
        for (after, new) in sides.iter().enumerate() {
            for (before, old) in sides.iter().enumerate().take(after) {
                if is_compared(before, after) {
                    let tables = old.iter().zip(new);
                    let tables = tables.map(|(old, new)| old.until(new, &names, ROWS)).collect();
                    page.growths.push(PairGrowth { before, after, tables });
                }
            }
        }
        page
    }
}

impl PageSnapshot {
    /// Without what its trace says.
    pub fn new(name: String, analysis: &HeapAnalysis) -> PageSnapshot {
        PageSnapshot {
            name,
            pid: analysis.graph.facts().number(MetaKey::PID),
            trace: None,
            at_us: None,
            summary: HeapSummary::new(analysis),
            tables: tables(analysis),
            stacked_rows: stacked_rows(analysis),
            findings: findings(analysis),
            tree: PageTree::new(analysis),
            paths: paths(analysis),
            sites: None,
            held_sites: Vec::new(),
        }
    }
}

/// The tables, without those that have no rows.
fn tables(analysis: &HeapAnalysis) -> Vec<HeapTable> {
    let levels = [Level::Kind, Level::Module, Level::Variable, Level::Thread, Level::Frame];
    let rows = levels.map(HeapRows::Holders).into_iter();
    let rows = rows.chain([HeapRows::Blocks, HeapRows::Customs]);
    rows.map(|rows| {
        table(analysis, &RowSelection { rows, limit: ROWS, include: &[], exclude: &[] })
    })
    .filter(|table| !table.rows.is_empty())
    .collect()
}

/// The rows that reach most first.
fn stacked_rows(analysis: &HeapAnalysis) -> Vec<StackedRows> {
    let titles = Titles::new(analysis);
    let holders = |level| {
        let rows = analysis.holder_rows(level).into_iter();
        let rows = rows.map(|row| (row.holder, row.first_reached.reach.bytes)).collect();
        let rows = biggest(rows).map(|(holder, bytes)| (titles.holder(holder), bytes)).collect();
        StackedRows { by: HeapRows::Holders(level).name(), rows }
    };
    let blocks = analysis.kind_rows().iter().map(|row| (row.kind, row.own.bytes)).collect();
    let rows = biggest(blocks).map(|(kind, bytes)| (titles.kind(kind), bytes)).collect();
    let blocks = StackedRows { by: HeapRows::Blocks.name(), rows };
    vec![holders(Level::Module), blocks, holders(Level::Kind)]
}

fn biggest<T>(mut rows: Vec<(T, u64)>) -> impl Iterator<Item = (T, u64)> {
    rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
    rows.into_iter().take(STACK_ROWS)
}

/// What holds the biggest block of each row of the table of blocks.
fn paths(analysis: &HeapAnalysis) -> Vec<HeldBlock> {
    let titles = Titles::new(analysis);
    let kinds: Vec<KindId> = analysis.kind_rows().iter().take(ROWS).map(|row| row.kind).collect();
    let finder = PathFinder::new(analysis);
    let names = |nodes: &[Node]| ends(path_lines(analysis, nodes));
    let held = |(kind, block): (KindId, u32)| {
        let held = finder.held_by(block)?;
        let holders = held.holders.iter().take(MOST_HOLDERS);
        Some(HeldBlock {
            row: titles.kind(kind),
            block: titles.node(Node::Block(block)),
            retained_bytes: analysis.retained_by(block),
            shortest: names(&held.shortest),
            dominators: names(&held.dominators),
            holders: holders.map(|holder| titles.holder(*holder)).collect(),
            other_holders: held.holders.len().saturating_sub(MOST_HOLDERS),
        })
    };
    let biggest = analysis.biggest_of(&kinds);
    kinds.into_iter().zip(biggest).filter_map(|(kind, block)| held((kind, block?))).collect()
}

/// A long path by its ends.
fn ends(lines: Vec<PathLine>) -> Vec<String> {
    let hidden = lines.len().saturating_sub(2 * PATH_ENDS);
    let mut shown = Vec::new();
    for (index, line) in lines.into_iter().enumerate() {
        match index.checked_sub(PATH_ENDS) {
            Some(0) if hidden > 0 => shown.push(format!("… {hidden} more …")),
            Some(within) if within < hidden => {}
            _ => shown.push(line.text),
        }
    }
    shown
}
