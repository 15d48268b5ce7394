//! `heaptap heap-diff`: what has grown between two snapshots.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_figures::units::bytes;
use heaptap_heap::{HeapAnalysis, Level};
use serde::Serialize;

use crate::analysis::filters::parse_size;
use crate::analysis::heap::figures::{HeapRows, HeapSize};
use crate::analysis::heap::growth::{Change, GrowthRow, GrowthRows, GrowthTable, growth};
use crate::analysis::heap::load::load_with_types;
use crate::analysis::heap::row_kind::HeapRowKind;
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::output::{print, print_json};
use crate::text::csv::quoted;
use crate::text::terminal::{Layout, fit};

/// Compare two heap snapshots: what has grown, what is new, what is gone
///
/// Holders by what only they hold, blocks that are alike by what they take, and sets, blocks that are
/// alike and held alike, by what they retain. Give two snapshots of one run, or of two runs of
/// one program.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap heap-diff before.heap after.heap
  heaptap heap-diff before.heap after.heap --by module --top 0
  heaptap heap-diff before.heap after.heap --fail-over 1MiB
  heaptap heap-diff --json before.heap after.heap | jq '.tables[0].rows[0]'

Exit status:
  0  both snapshots are complete
  1  a snapshot is defective or cut short
  2  a wrong call, or a file that is no snapshot or cannot be read
  3  with --fail-over: what is reachable grew by more than the limit")]
pub(crate) struct HeapDiff {
    /// The earlier snapshot
    #[arg(value_name = "BEFORE", value_hint = ValueHint::FilePath)]
    before: PathBuf,

    /// The later snapshot
    #[arg(value_name = "AFTER", value_hint = ValueHint::FilePath)]
    after: PathBuf,

    /// What a row is; without it, variables, blocks and sets
    #[arg(long, value_enum)]
    by: Option<HeapRowKind>,

    /// How many rows; 0 for all
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 15)]
    top: usize,

    /// End with status 3 if what is reachable grew by more than this: 4096, 64KiB, 1MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    fail_over: Option<u64>,

    /// Print one JSON object
    #[arg(long)]
    json: bool,

    #[command(flatten)]
    types: TypeOptions,

    /// Print the tables as comma-separated values
    #[arg(long, conflicts_with = "json")]
    csv: bool,
}

/// Everything that is printed.
#[derive(Serialize)]
struct HeapGrowth {
    before: HeapSize,
    after: HeapSize,
    tables: Vec<GrowthTable>,
}

impl HeapDiff {
    pub(crate) fn run(&self) -> VerbResult {
        self.types.check(self.by == Some(HeapRowKind::Type))?;
        let (before, _) = load_with_types(&self.before, &self.types)?;
        let (after, _) = load_with_types(&self.after, &self.types)?;
        let kinds = match self.by {
            Some(by) => vec![GrowthRows::Rows(by.rows().ok_or_else(|| {
                Failure::Trouble("--by site: compare the traces with `heaptap diff`".into())
            })?)],
            None => vec![
                GrowthRows::Rows(HeapRows::Holders(Level::Variable)),
                GrowthRows::Rows(HeapRows::Blocks),
                GrowthRows::Sets,
            ],
        };
        let tables = kinds.into_iter().map(|by| growth(&before, &after, by, self.top)).collect();
        let figures = HeapGrowth { before: reachable(&before), after: reachable(&after), tables };
        if self.json {
            print_json(&figures)?;
        } else if self.csv {
            print(csv(&figures).as_bytes())?;
        } else {
            print(text(&figures, Layout::of_stdout()).as_bytes())?;
        }
        let grown = figures.after.bytes.saturating_sub(figures.before.bytes);
        let is_over = self.fail_over.is_some_and(|limit| grown > limit);
        Ok(if is_over { Verdict::OverLimit } else { Verdict::Sound })
    }
}

fn reachable(analysis: &HeapAnalysis) -> HeapSize {
    analysis.reachable().into()
}

/// A size with its sign.
fn change(growth: i64) -> String {
    let sign = if growth < 0 { "-" } else { "+" };
    format!("{sign}{}", bytes(growth.unsigned_abs() as f64))
}

fn text(figures: &HeapGrowth, layout: Layout) -> String {
    let (before, after) = (figures.before, figures.after);
    let growth = after.bytes as i64 - before.bytes as i64;
    let mut text = format!(
        "{} {} -> {} ({}), {} -> {} blocks\n",
        layout.strong("reachable"),
        bytes(before.bytes as f64),
        bytes(after.bytes as f64),
        change(growth),
        before.blocks,
        after.blocks
    );
    for table in &figures.tables {
        append(&mut text, table, layout);
    }
    text
}

/// Columns before the name.
const NUMBERS: usize = 3 * 12 + 8;

fn append(text: &mut String, table: &GrowthTable, layout: Layout) {
    let head = format!("{:>11} {:>11} {:>11}  {:<6} {}", "change", "before", "after", "", table.by);
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{}", layout.strong(&fit(&head, layout.width)));
    if table.rows.is_empty() {
        let _ = writeln!(text, "{:>11}", "none");
    }
    let room = layout.width.saturating_sub(NUMBERS).max(10);
    for GrowthRow { name, change: kind, before, after, growth_bytes } in &table.rows {
        let mark = match kind {
            Change::New => "new",
            Change::Gone => "gone",
            _ => "",
        };
        let _ = writeln!(
            text,
            "{:>11} {:>11} {:>11}  {mark:<6} {}",
            change(*growth_bytes),
            bytes(before.bytes as f64),
            bytes(after.bytes as f64),
            fit(name, room)
        );
    }
    if table.other_rows > 0 {
        let sum = change(table.other_growth_bytes);
        let _ = writeln!(
            text,
            "{sum:>11} {:>11} {:>11}  {:<6} ({} others)",
            "", "", "", table.other_rows
        );
    }
}

fn csv(figures: &HeapGrowth) -> String {
    let mut text = String::from(
        "by,name,change,growth_bytes,before_bytes,after_bytes,before_blocks,after_blocks\n",
    );
    for table in &figures.tables {
        for GrowthRow { name, change, before, after, growth_bytes } in &table.rows {
            let _ = writeln!(
                text,
                "{},{},{},{growth_bytes},{},{},{},{}",
                table.by,
                quoted(name),
                format!("{change:?}").to_lowercase(),
                before.bytes,
                after.bytes,
                before.blocks,
                after.blocks
            );
        }
        if table.other_rows > 0 {
            let (rows, sum) = (table.other_rows, table.other_growth_bytes);
            let _ = writeln!(text, "{},({rows} others),,{sum},,,,", table.by);
        }
    }
    text
}
