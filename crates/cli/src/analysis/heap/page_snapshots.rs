//! Heap snapshots as the web page shows them: one bounded document, computed here. The page asks no
//! question about a snapshot that is not answered in it.

use std::path::{Path, PathBuf};

use heaptap_graph::{HeapAnalysis, LabelId, Level, Node, PathFinder};
use heaptap_heap::{Item, MetaKey, Reader};
use heaptap_trace::TraceInfo;
use serde::Serialize;

use super::figures::{HeapRows, HeapSummary, HeapTable, RowSelection, table};
use super::findings::{Finding, compare, findings};
use super::followed::check_origin;
use super::growth::{GrowthRows, GrowthTable, growth};
use super::load::load;
use super::page_tree::PageTree;
use super::path_steps::{PathLine, path_lines};
use super::sites::{SiteFigures, sites, trace_of};
use super::titles::Titles;
use crate::analysis::archive::{Compression, compressed};
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::Failure;
use crate::io::input::Input;
use crate::io::trace_files::{is_snapshot, page_names};
use crate::text::json;

/// Rows of each table. What 32 rows reach is found at once.
const ROWS: usize = 32;
/// Rows of each stack.
const STACK_ROWS: usize = 64;
/// Of a long path, this many steps from either end.
const PATH_ENDS: usize = 12;
const MOST_HOLDERS: usize = 20;

/// The files of a page: traces and snapshots.
pub(crate) struct PageFiles {
    pub(crate) traces: Vec<PathBuf>,
    pub(crate) snapshots: Vec<PathBuf>,
}

impl PageFiles {
    pub(crate) fn new(files: &[PathBuf]) -> PageFiles {
        let (snapshots, traces) = files.iter().cloned().partition(|path| is_snapshot(path));
        PageFiles { traces, snapshots }
    }
}

/// All snapshots of a page, in the order in which they were taken. The field names are those of its JSON.
#[derive(Default, Serialize)]
pub(crate) struct PageSnapshots {
    pub(crate) snapshots: Vec<PageSnapshot>,
    pub(crate) failed: Vec<FailedSnapshot>,
    /// Of each snapshot, what changed since the one before it; nothing of the first.
    growths: Vec<Vec<GrowthTable>>,
}

/// A file that could not be shown.
#[derive(Serialize)]
pub(crate) struct FailedSnapshot {
    pub(crate) name: String,
    pub(crate) error: String,
}

/// A snapshot.
#[derive(Serialize)]
pub(crate) struct PageSnapshot {
    pub(crate) name: String,
    #[serde(flatten)]
    summary: HeapSummary,
    pid: Option<u64>,
    /// The trace of the page that was being written then, and the time in it.
    trace: Option<usize>,
    at_us: Option<u64>,
    tables: Vec<HeapTable>,
    stacks: Vec<StackedRows>,
    findings: Vec<Finding>,
    tree: PageTree,
    paths: Vec<HeldBlock>,
    /// Where it was allocated, if its trace is there.
    sites: Option<SiteFigures>,
}

/// The rows of a table that reach most first, which the page stacks over time. Those of the table itself are the
/// ones that hold most alone.
#[derive(Serialize)]
struct StackedRows {
    by: &'static str,
    /// Names and the bytes that they reach first, the most first.
    rows: Vec<(String, u64)>,
}

/// What holds the block that retains most of those that a row of a table stands for.
#[derive(Serialize)]
struct HeldBlock {
    row: String,
    block: String,
    retained_bytes: u64,
    shortest: Vec<String>,
    /// Without any of these it would go.
    dominators: Vec<String>,
    holders: Vec<String>,
    other_holders: usize,
}

/// A trace of the page, which a snapshot may belong to.
struct PageTrace<'a> {
    path: &'a Path,
    info: TraceInfo,
}

impl PageSnapshots {
    /// Reads snapshots. `traces` are those of the page.
    pub(crate) fn read(
        files: &[PathBuf],
        traces: &[PathBuf],
        types: &TypeOptions,
    ) -> PageSnapshots {
        let traces: Vec<Option<PageTrace<'_>>> = traces.iter().map(|path| trace(path)).collect();
        let names = page_names(files);
        let mut files: Vec<_> = files.iter().zip(names).collect();
        files.sort_by_cached_key(|(path, _)| taken(path));
        let mut page = PageSnapshots::default();
        let mut before: Option<HeapAnalysis> = None;
        for (path, name) in files {
            // Paths name fields.
            match load(path, types, true) {
                Ok((analysis, _)) => {
                    page.add(path, name, &analysis, before.as_ref(), &traces);
                    before = Some(analysis);
                }
                Err(failure) => page.failed.push(FailedSnapshot {
                    name,
                    error: failure.message().unwrap_or("it cannot be read").to_owned(),
                }),
            }
        }
        page
    }

    /// As compressed JSON.
    pub(crate) fn packed(&self, effort: Compression) -> Vec<u8> {
        let mut text = Vec::new();
        json::put(&mut text, self);
        compressed(&text, effort)
    }

    /// The failure of a page that has nothing to show but these snapshots.
    pub(crate) fn failure(&self) -> Option<Failure> {
        let failed = self.failed.first().filter(|_| self.snapshots.is_empty())?;
        Some(Failure::Trouble(failed.error.clone()))
    }

    fn add(
        &mut self,
        path: &Path,
        name: String,
        analysis: &HeapAnalysis,
        before: Option<&HeapAnalysis>,
        traces: &[Option<PageTrace<'_>>],
    ) {
        let mut snapshot = PageSnapshot::new(path, name, analysis, traces);
        let rows = [
            GrowthRows::Rows(HeapRows::Holders(Level::Variable)),
            GrowthRows::Rows(HeapRows::Blocks),
            GrowthRows::Sets,
        ];
        let grown = before.map(|before| {
            compare(&mut snapshot.findings, analysis, before);
            rows.map(|by| growth(before, analysis, by, ROWS)).to_vec()
        });
        self.growths.push(grown.unwrap_or_default());
        self.snapshots.push(snapshot);
    }
}

impl PageSnapshot {
    fn new(
        path: &Path,
        name: String,
        analysis: &HeapAnalysis,
        traces: &[Option<PageTrace<'_>>],
    ) -> PageSnapshot {
        let summary = HeapSummary::new(analysis);
        let pid = analysis.graph.facts().number(MetaKey::PID);
        let since = |trace: &PageTrace<'_>| summary.taken_us?.checked_sub(trace.info.start_time);
        let is_its = |trace: &PageTrace<'_>| {
            pid.is_some() && since(trace).is_some() && check_origin(analysis, &trace.info).is_ok()
        };
        let trace = traces.iter().position(|trace| trace.as_ref().is_some_and(is_its));
        let its = trace.and_then(|number| traces.get(number)?.as_ref());
        PageSnapshot {
            name,
            pid,
            trace,
            at_us: its.and_then(since),
            summary,
            tables: tables(analysis),
            stacks: stacks(analysis),
            findings: findings(analysis),
            tree: PageTree::new(analysis),
            paths: paths(analysis),
            sites: trace_of(analysis, path, its.map(|trace| trace.path))
                .and_then(|trace| sites(analysis, &trace, None, ROWS))
                .ok(),
        }
    }
}

/// When a snapshot was taken. One that cannot be read comes first; loading it says why.
fn taken(path: &Path) -> Option<u64> {
    let input = Input::open(path).ok()?.quietly();
    let mut reader = Reader::new(input.snapshot_bytes()).ok()?;
    while let Some(item) = reader.next_item().ok()? {
        match item {
            Item::Meta { key: MetaKey::TIME, value } => {
                return std::str::from_utf8(value).ok()?.parse().ok();
            }
            // What a snapshot is about comes before its blocks.
            Item::Block(_) => return None,
            _ => {}
        }
    }
    None
}

/// A trace that can be read again; `None` for others.
fn trace(path: &Path) -> Option<PageTrace<'_>> {
    if !path.is_file() {
        return None;
    }
    let events = Input::open(path).map(Input::quietly).and_then(|input| input.in_file_order());
    Some(PageTrace { path, info: events.ok()?.info().clone() })
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
fn stacks(analysis: &HeapAnalysis) -> Vec<StackedRows> {
    let titles = Titles::new(analysis);
    let holders = |level| {
        let rows = analysis.holder_rows(level).into_iter();
        let rows = rows.map(|row| (row.holder, row.first_reached.reach.bytes)).collect();
        let rows = biggest(rows).map(|(holder, bytes)| (titles.holder(holder), bytes)).collect();
        StackedRows { by: HeapRows::Holders(level).name(), rows }
    };
    let blocks = analysis.label_rows().iter().map(|row| (row.label, row.own.bytes)).collect();
    let rows = biggest(blocks).map(|(label, bytes)| (titles.label(label), bytes)).collect();
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
    let labels: Vec<LabelId> =
        analysis.label_rows().iter().take(ROWS).map(|row| row.label).collect();
    let finder = PathFinder::new(analysis);
    let names = |nodes: &[Node]| ends(path_lines(analysis, nodes));
    let held = |(label, block): (LabelId, u32)| {
        let held = finder.held_by(block)?;
        let holders = held.holders.iter().take(MOST_HOLDERS);
        Some(HeldBlock {
            row: titles.label(label),
            block: titles.node(Node::Block(block)),
            retained_bytes: analysis.retained_by(block),
            shortest: names(&held.shortest),
            dominators: names(&held.dominators),
            holders: holders.map(|holder| titles.holder(*holder)).collect(),
            other_holders: held.holders.len().saturating_sub(MOST_HOLDERS),
        })
    };
    let biggest = analysis.biggest_of(&labels);
    labels.into_iter().zip(biggest).filter_map(|(label, block)| held((label, block?))).collect()
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
