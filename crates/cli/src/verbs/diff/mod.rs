//! `heaptap diff`: what grew and what shrank between two traces; `gate` decides whether that is
//! too much.

mod gate;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::slice;

use clap::{Args, ValueHint};
use heaptap_report::Options;
use heaptap_report::figures::units::count;
use heaptap_report::figures::{ChangeRow, Comparison, TableView, TraceFigures, comparison, sized};
use serde::Serialize;

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::filters::{Filters, parse_share};
use crate::analysis::view::{SiteOption, View};
use crate::exit_status::{Failure, VerbResult, gate_help_end};
use crate::io::output::print_figures;
use crate::text::names::{signed, site_name, two_columns};
use crate::text::terminal::{Layout, pad, wrap};
use gate::{Gate, Side};

/// Compare two traces: what grew, what shrank, what is new, and what is chance
///
/// A difference is shown if it is more than the sampling of the two traces makes
/// by chance in one of 20 comparisons. With --fail-over the exit status is 3 if
/// the total grew by more than that share, beyond the sampling error: a gate for
/// continuous integration. A gate compares whole traces only: if one is cut short or
/// damaged, its program was killed or still runs, the status is 4, unless
/// --allow-incomplete compares what there is.
#[derive(Args)]
#[command(after_help = gate_help_end!(
    "  heaptap diff before.ctf after.ctf
  heaptap diff before.ctf after.ctf --metric peak --fail-over 5%
  heaptap diff before.ctf after.ctf --by location --filter '^Parser'
  heaptap diff traces-before/ traces-after/
  heaptap diff before-*.ctf --to after-*.ctf"
))]
pub(crate) struct Diff {
    /// The trace before and the trace after; a directory stands for the traces in it,
    /// which are merged by time. With --to, all are before
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    /// The traces after, if there are several on a side
    #[arg(long, value_name = "FILE", num_args = 1.., value_hint = ValueHint::AnyPath)]
    to: Vec<PathBuf>,

    #[command(flatten)]
    view: View,

    #[command(flatten)]
    sites: SiteOption,

    #[command(flatten)]
    filters: Filters,

    /// Exit with 3 if the total grew by more than this
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    fail_over: Option<f64>,

    /// Let --fail-over compare traces that are cut short or damaged
    #[arg(long, requires = "fail_over")]
    allow_incomplete: bool,

    /// How many rows; 0 for all
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    top: usize,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// A comparison, and whether it passes the gate that was asked for.
#[derive(Serialize)]
struct GatedComparison {
    #[serde(flatten)]
    comparison: Comparison,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<Gate>,
}

impl Diff {
    pub(crate) fn run(&self) -> VerbResult {
        let (before, after) = self.sides()?;
        let (before, after) = (self.read(before)?, self.read(after)?);
        let comparison = self.compare(&before, &after);
        print_figures(&comparison, self.json, |layout| text(&comparison, layout))?;
        let verdict = before.verdict().max(after.verdict());
        Ok(match &comparison.gate {
            Some(gate) => verdict.max(gate.verdict()),
            None => verdict,
        })
    }

    /// What the table shows.
    fn table(&self) -> TableView {
        self.view.table(self.sites.choice(self.json))
    }

    /// The traces before, and those after.
    fn sides(&self) -> Result<(&[PathBuf], &[PathBuf]), Failure> {
        match (&self.files[..], &self.to[..]) {
            (files, []) => match files {
                [before, after] => Ok((slice::from_ref(before), slice::from_ref(after))),
                _ => Err(Failure::Trouble(format!(
                    "{} given, where two are compared; for several on a side: \
                     heaptap diff BEFORE… --to AFTER…",
                    count(files.len() as u64, "trace", "traces")
                ))),
            },
            sides => Ok(sides),
        }
    }

    fn read(&self, files: &[PathBuf]) -> Result<AggregatedTrace, Failure> {
        let options = Options {
            selection: self.filters.selection()?,
            depth: self.table().grouping().depth(),
            at: self.view.at,
            ..Options::default()
        };
        let trace = AggregatedTrace::read(files, options)?;
        self.view.check(&trace)?;
        Ok(trace)
    }

    fn compare(&self, before: &AggregatedTrace, after: &AggregatedTrace) -> GatedComparison {
        let selected = !self.filters.is_all();
        let gate = self.fail_over.map(|limit| {
            let incomplete = [before, after].into_iter().find_map(|trace| {
                let why = trace.incomplete().filter(|_| !self.allow_incomplete)?;
                // Of several traces, the one that is meant is named.
                Some(if trace.parts().is_empty() {
                    format!("{}: {why}", trace.name())
                } else {
                    why.to_owned()
                })
            });
            (limit, incomplete)
        });
        let (before, after) = (before.figures(selected), after.figures(selected));
        let comparison = comparison(&before, &after, &self.table(), self.top);
        let metric = self.view.metric();
        let side = |trace: &TraceFigures<'_>, size| Side {
            size,
            single: trace.aggregate.single_error(metric),
        };
        let ChangeRow { before: earlier, after: later, .. } = &comparison.total;
        let sides = (side(&before, *earlier), side(&after, *later));
        let gate = gate.map(|(limit, incomplete)| Gate::of(&sides.0, &sides.1, limit, incomplete));
        GatedComparison { comparison, gate }
    }
}

fn text(GatedComparison { comparison: found, gate }: &GatedComparison, layout: Layout) -> String {
    let mut text = String::new();
    let total = &found.total;
    let change = match total.kind {
        _ if total.before.is_bounded() || total.after.is_bounded() => {
            "what was alive is known within bounds only".to_owned()
        }
        "unchanged" => "no difference beyond sampling error".to_owned(),
        kind => {
            let kind = if matches!(kind, "new" | "grew") { "grew" } else { "shrank" };
            format!("{kind} by {}", signed(total.difference_bytes).trim_start_matches(['+', '-']))
        }
    };
    let totals = format!("{} → {}: {change}", sized(&total.before), sized(&total.after));
    // Writing to a string does not fail.
    let lines = wrap(&format!("{} {totals}", found.metric), layout.width).join("\n");
    let lines = lines.replacen(&found.metric, &layout.strong(&found.metric), 1);
    let _ = writeln!(text, "{lines}");
    if !found.changes.is_empty() {
        change_table(&mut text, found, layout);
    }
    if found.not_shown > 0 {
        let _ = writeln!(text, "{:>40}  and {} more", "", found.not_shown);
    }
    let sites = count(found.within_chance as u64, "site differs", "sites differ");
    let chance = wrap(&format!("{sites} by no more than chance."), layout.width).join("\n");
    let _ = writeln!(text, "\n{}", layout.faint(&chance));
    if let Some(gate) = gate {
        let _ = writeln!(text, "{}", gate.text(layout));
    }
    text
}

/// Columns before the name.
const NUMBERS: usize = 11 + 2 + 11 + 2 + 12 + 2 + 6 + 2;
/// If there are fewer columns for names, they are on lines of their own, after this many
/// spaces.
const LEAST_ROOM: usize = 40;
const INDENT: usize = 4;

fn change_table(text: &mut String, found: &Comparison, layout: Layout) {
    let beside = layout.width.saturating_sub(NUMBERS) >= LEAST_ROOM;
    let indent = if beside { NUMBERS } else { INDENT };
    let before_name = if beside { "  ".to_owned() } else { format!("\n{}", " ".repeat(INDENT)) };
    let gap = if beside { pad("", 2 + 6) } else { String::new() };
    let heading = format!("{:>11}  {:>11}  {:>12}{gap}", "before", "after", "change");
    let _ = writeln!(text, "\n{}", layout.strong(&(heading + &before_name + &found.row_title())));
    let names: Vec<_> = found.changes.iter().map(|row| site_name(&row.site)).collect();
    let names = two_columns(&names, layout.width.saturating_sub(indent));
    for (row, (name, file)) in found.changes.iter().zip(names) {
        let numbers = change_numbers(row, beside, layout);
        let _ = writeln!(text, "{numbers}{before_name}{name}{}", layout.faint(&file));
    }
}

fn change_numbers(row: &ChangeRow, padded: bool, layout: Layout) -> String {
    let kind = pad(row.kind, if padded { 6 } else { 0 });
    let kind = match row.kind {
        "grew" | "new" => layout.bad(&kind),
        _ => layout.good(&kind),
    };
    let (before, after) = (row.before.columns().0, row.after.columns().0);
    let difference = signed(row.difference_bytes);
    format!("{before:>11}  {after:>11}  {difference:>12}  {kind}")
}
