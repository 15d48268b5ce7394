//! `heaptap heap-diff`: what has grown between two snapshots.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_graph::{HeapAnalysis, Level};
use heaptap_report::figures::heap::growth::{
    Change, GrowthRow, GrowthRows, GrowthSize, GrowthTable, growth,
};
use heaptap_report::figures::heap::sets::change;
use heaptap_report::figures::heap::sites::{SiteGrowthRow, SiteGrowthTable};
use heaptap_report::figures::heap::tables::HeapRows;
use heaptap_report::figures::heap::types::TypeFiles;
use heaptap_report::figures::units::bytes;
use serde::Serialize;

use crate::analysis::filters::parse_size;
use crate::analysis::heap::load::load_with_types;
use crate::analysis::heap::row_kind::HeapRowKind;
use crate::analysis::heap::site_growth::{JoinedSnapshot, site_growth};
use crate::analysis::ocaml_types::TypeOptions;
use crate::exit_status::{Failure, VerbResult, Verdict};
use crate::io::output::print_figures;
use crate::text::csv::quoted;
use crate::text::names::{escaped, signed};
use crate::text::terminal::{Layout, fit, wrap_indented};

/// Compare two heap snapshots: what has grown, what is new, what is gone
///
/// Holders by what only they hold, blocks that are alike by what they take, and sets, blocks that are
/// alike and held alike, by what they retain; memory outside the heap beside it. Give two snapshots of one run, or of
/// two runs of one program.
#[derive(Args)]
#[command(after_help = "Examples:
  heaptap heap-diff before.heap after.heap
  heaptap heap-diff before.heap after.heap --by module --top 0
  heaptap heap-diff before.heap after.heap --fail-over 1MiB
  heaptap heap-diff before.heap after.heap --by site
  heaptap heap-diff --json before.heap after.heap | jq '.tables[0].rows[0]'

Exit status:
  0  both snapshots are complete
  1  a snapshot is defective or cut short
  2  a wrong call, or a file that is no snapshot or cannot be read
  3  with --fail-over: what is reachable, in the heap and outside, grew by more
     than the limit")]
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

    /// End with status 3 if what is reachable, in the heap and outside, grew by more than this: 4096, 64KiB, 1MiB
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    fail_over: Option<u64>,

    /// With --by site: the trace that was being written (default: the one that each snapshot names). Give it twice for
    /// snapshots of two runs
    #[arg(long, value_name = "TRACE", value_hint = ValueHint::FilePath)]
    trace: Vec<PathBuf>,

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
struct HeapGrowth<T> {
    before: GrowthSize,
    after: GrowthSize,
    type_files: TypeFilesOfBoth,
    tables: Vec<T>,
}

/// The files of types, if they were looked for.
#[derive(Serialize)]
struct TypeFilesOfBoth {
    before: Option<TypeFiles>,
    after: Option<TypeFiles>,
}

impl TypeFilesOfBoth {
    /// One line, or one for each snapshot if they say different things.
    fn lines(&self) -> Vec<String> {
        let text = |files: &Option<TypeFiles>| files.as_ref().map(|files| escaped(&files.text));
        match (text(&self.before), text(&self.after)) {
            (Some(before), Some(after)) if before != after => {
                vec![format!("{before} (before)"), format!("{after} (after)")]
            }
            (before, after) => after.or(before).into_iter().collect(),
        }
    }
}

/// A table in all forms.
trait PrintedTable: Serialize {
    const CSV_HEADING: &'static str;

    fn append_text(&self, text: &mut String, layout: Layout);
    fn append_csv(&self, text: &mut String);
}

impl HeapDiff {
    pub(crate) fn run(&self) -> VerbResult {
        self.types.check(self.by == Some(HeapRowKind::Type))?;
        self.check_traces()?;
        let (before, earlier_types) = load_with_types(&self.before, &self.types)?;
        let (after, types) = load_with_types(&self.after, &self.types)?;
        for types in [&earlier_types, &types] {
            types.check(self.by == Some(HeapRowKind::Type))?;
        }
        let files = TypeFilesOfBoth { before: earlier_types.files, after: types.files };
        let by_default = [
            GrowthRows::Rows(HeapRows::Holders(Level::Variable)),
            GrowthRows::Rows(HeapRows::Blocks),
            GrowthRows::Sets,
        ];
        let kinds = match self.by {
            Some(by) => match by.rows() {
                Some(rows) => vec![GrowthRows::Rows(rows)],
                None => return self.show_sites(&before, &after, files),
            },
            None => by_default.to_vec(),
        };
        let table = |by| growth(&before, &after, by, self.top);
        self.show(&before, &after, files, kinds.into_iter().map(table).collect())
    }

    fn check_traces(&self) -> Result<(), Failure> {
        if self.by != Some(HeapRowKind::Site) && !self.trace.is_empty() {
            return Err(Failure::Trouble("--trace goes with --by site".into()));
        }
        if self.trace.len() > 2 {
            let message = "--trace: give it once, or twice for BEFORE and AFTER";
            return Err(Failure::Trouble(message.into()));
        }
        Ok(())
    }

    /// Joins each snapshot with its trace.
    fn show_sites(
        &self,
        before: &HeapAnalysis,
        after: &HeapAnalysis,
        files: TypeFilesOfBoth,
    ) -> VerbResult {
        let old =
            JoinedSnapshot { analysis: before, file: &self.before, trace: self.trace.first() };
        let new = JoinedSnapshot { analysis: after, file: &self.after, trace: self.trace.last() };
        let table = site_growth(&old, &new, self.top)?;
        self.show(before, after, files, vec![table])
    }

    fn show<T: PrintedTable>(
        &self,
        before: &HeapAnalysis,
        after: &HeapAnalysis,
        type_files: TypeFilesOfBoth,
        tables: Vec<T>,
    ) -> VerbResult {
        let [before, after] = [before, after].map(GrowthSize::reachable);
        let figures = HeapGrowth { before, after, type_files, tables };
        print_figures(&figures, self.json, |layout| match self.csv {
            true => csv(&figures),
            false => text(&figures, layout),
        })?;
        let grown = after.all_bytes().saturating_sub(before.all_bytes());
        let is_over = self.fail_over.is_some_and(|limit| grown > limit);
        Ok(if is_over { Verdict::OverLimit } else { Verdict::Sound })
    }
}

fn csv<T: PrintedTable>(figures: &HeapGrowth<T>) -> String {
    let mut text = T::CSV_HEADING.to_owned();
    figures.tables.iter().for_each(|table| table.append_csv(&mut text));
    text
}

fn text<T: PrintedTable>(figures: &HeapGrowth<T>, layout: Layout) -> String {
    let (before, after) = (figures.before, figures.after);
    let sizes = |before: u64, after: u64| {
        let growth = signed(change(before, after) as f64);
        format!("{} -> {} ({growth})", bytes(before as f64), bytes(after as f64))
    };
    let mut text = format!(
        "{} {}, {} -> {} blocks\n",
        layout.strong("reachable"),
        sizes(before.bytes, after.bytes),
        before.blocks,
        after.blocks
    );
    if before.outside_bytes > 0 || after.outside_bytes > 0 {
        let outside = sizes(before.outside_bytes, after.outside_bytes);
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {outside}, outside the heap", layout.strong("outside  "));
    }
    for line in figures.type_files.lines() {
        let line = wrap_indented(&line, 10, layout.width);
        let _ = writeln!(text, "{} {line}", layout.strong("types    "));
    }
    for table in &figures.tables {
        table.append_text(&mut text, layout);
    }
    text
}

/// Columns before the name.
const NUMBERS: usize = 3 * 12 + 8;

fn append_head(text: &mut String, by: &str, is_empty: bool, layout: Layout) {
    let head = format!("{:>11} {:>11} {:>11}  {:<6} {by}", "change", "before", "after", "");
    let _ = writeln!(text, "\n{}", layout.strong(&fit(&head, layout.width)));
    if is_empty {
        let _ = writeln!(text, "{:>11}", "none");
    }
}

/// A row: the growth, both sizes and what became of it, then its name, and `remark`, which is never cut.
fn append_row(
    text: &mut String,
    (growth, [before, after], change): (f64, [f64; 2], Change),
    name: &str,
    remark: &str,
    layout: Layout,
) {
    let room = layout.width.saturating_sub(NUMBERS).max(10);
    let room = room.saturating_sub(remark.chars().count()).max(10);
    let _ = writeln!(
        text,
        "{:>11} {:>11} {:>11}  {:<6} {}{remark}",
        signed(growth),
        bytes(before),
        bytes(after),
        mark(change),
        fit(name, room)
    );
}

/// The sum of the rows that are not shown, if there are any.
fn append_others(text: &mut String, rows: u64, growth: f64, remark: &str) {
    if rows > 0 {
        let (sum, none) = (signed(growth), "");
        let _ =
            writeln!(text, "{sum:>11} {none:>11} {none:>11}  {none:<6} ({rows} others){remark}");
    }
}

fn mark(change: Change) -> &'static str {
    match change {
        Change::New => "new",
        Change::Gone => "gone",
        _ => "",
    }
}

/// What has changed outside the heap.
fn outside(growth: i64) -> String {
    if growth == 0 { String::new() } else { format!(" ({} outside)", signed(growth as f64)) }
}

impl PrintedTable for GrowthTable {
    const CSV_HEADING: &'static str = "by,name,change,growth_bytes,before_bytes,after_bytes,before_blocks,after_blocks,\
                                       growth_outside_bytes,before_outside_bytes,after_outside_bytes\n";

    fn append_text(&self, text: &mut String, layout: Layout) {
        append_head(text, self.by, self.rows.is_empty(), layout);
        for row in &self.rows {
            let GrowthRow { before, after, growth_bytes, growth_outside_bytes, .. } = row;
            let sizes = [before.bytes as f64, after.bytes as f64];
            let numbers = (*growth_bytes as f64, sizes, row.change);
            append_row(text, numbers, &row.name, &outside(*growth_outside_bytes), layout);
        }
        let outside = outside(self.other_growth_outside_bytes);
        append_others(text, self.other_rows, self.other_growth_bytes as f64, &outside);
    }

    fn append_csv(&self, text: &mut String) {
        for row in &self.rows {
            let GrowthRow { before, after, growth_bytes, growth_outside_bytes, .. } = row;
            let _ = writeln!(
                text,
                "{},{},{},{growth_bytes},{},{},{},{},{growth_outside_bytes},{},{}",
                self.by,
                quoted(&row.name),
                format!("{:?}", row.change).to_lowercase(),
                before.bytes,
                after.bytes,
                before.blocks,
                after.blocks,
                before.outside_bytes,
                after.outside_bytes
            );
        }
        if self.other_rows > 0 {
            let (sum, outside) = (self.other_growth_bytes, self.other_growth_outside_bytes);
            let _ =
                writeln!(text, "{},({} others),,{sum},,,,,{outside},,", self.by, self.other_rows);
        }
    }
}

impl PrintedTable for SiteGrowthTable {
    const CSV_HEADING: &'static str =
        "by,name,file,line,change,growth_bytes,growth_error,before_bytes,after_bytes\n";

    fn append_text(&self, text: &mut String, layout: Layout) {
        append_head(text, self.by, self.rows.is_empty(), layout);
        for row in &self.rows {
            let (name, file) = row.site.parts();
            let site = if file.is_empty() { name } else { format!("{name} {file}") };
            let error = format!(" (± {})", bytes(row.growth_error));
            let numbers = (row.growth_bytes, [row.before.bytes, row.after.bytes], row.change);
            append_row(text, numbers, &escaped(&site), &error, layout);
        }
        append_others(text, self.other_rows, self.other_growth_bytes, "");
    }

    fn append_csv(&self, text: &mut String) {
        for row in &self.rows {
            let SiteGrowthRow { site, change, before, after, growth_bytes, growth_error } = row;
            let _ = writeln!(
                text,
                "site,{},{},{},{},{growth_bytes},{growth_error},{},{}",
                quoted(&site.name),
                quoted(&site.file),
                site.line,
                format!("{change:?}").to_lowercase(),
                before.bytes,
                after.bytes
            );
        }
        if self.other_rows > 0 {
            let sum = self.other_growth_bytes;
            let _ = writeln!(text, "site,({} others),,,,{sum},,,", self.other_rows);
        }
    }
}
