//! `heaptap diff`: what grew and what shrank between two traces.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use heaptap_report::rows::Site;
use heaptap_report::{Change, Estimate, Options, SingleSample, changes, distance};
use serde::Serialize;

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::call_site::CallSite;
use crate::analysis::filters::{Filters, parse_share};
use crate::analysis::size::{Size, sized};
use crate::analysis::view::View;
use crate::exit_status::{Failure, VerbResult, Verdict, gate_help_end};
use crate::io::output::{print, print_json};
use crate::text::escape::Escaped;
use crate::text::terminal::{Layout, fit};
use crate::text::units::{bytes, count, percent};

/// Compare two traces: what grew, what shrank, what is new, and what is chance
///
/// A difference is shown if it is more than the sampling of the two traces makes
/// by chance in one of 20 comparisons. With --fail-over the exit status is 3 if
/// the total grew by more than that share, beyond the sampling error: a gate for
/// continuous integration.
#[derive(Args)]
#[command(after_help = gate_help_end!(
    "  heaptap diff before.ctf after.ctf
  heaptap diff before.ctf after.ctf --metric peak --fail-over 5%
  heaptap diff before.ctf after.ctf --by location --filter '^Parser'"
))]
pub(crate) struct Diff {
    /// The trace before
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    before: PathBuf,

    /// The trace after
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    after: PathBuf,

    #[command(flatten)]
    view: View,

    #[command(flatten)]
    filters: Filters,

    /// Exit with 3 if the total grew by more than this
    #[arg(long, value_name = "PERCENT", value_parser = parse_share)]
    fail_over: Option<f64>,

    /// How many rows; 0 for all
    #[arg(long, value_name = "ROWS", default_value_t = 20)]
    top: usize,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
struct Comparison {
    before: String,
    after: String,
    metric: String,
    by: &'static str,
    total: ChangeRow,
    /// Differences that are more than chance.
    changes: Vec<ChangeRow>,
    /// How many more there are.
    not_shown: usize,
    /// Sites whose difference may be chance.
    within_chance: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    gate: Option<Gate>,
}

#[derive(Serialize)]
struct ChangeRow {
    #[serde(flatten)]
    site: CallSite,
    before: Size,
    after: Size,
    difference_bytes: f64,
    /// In standard errors.
    distance: f64,
    kind: &'static str,
}

#[derive(Serialize)]
struct Gate {
    limit: f64,
    growth: f64,
    passed: bool,
}

impl Diff {
    pub(crate) fn run(&self) -> VerbResult {
        let (before, after) = (self.read(&self.before)?, self.read(&self.after)?);
        let comparison = self.compare(&before, &after);
        if self.json {
            print_json(&comparison)?;
        } else {
            print(text(&comparison, Layout::of_stdout()).as_bytes())?;
        }
        let sound = [before.verdict(), after.verdict()] == [Verdict::Sound; 2];
        Ok(match &comparison.gate {
            Some(gate) if !gate.passed => Verdict::OverLimit,
            _ if sound => Verdict::Sound,
            _ => Verdict::Defective,
        })
    }

    fn read(&self, path: &Path) -> Result<AggregatedTrace, Failure> {
        let options = Options {
            selection: self.filters.selection()?,
            depth: self.view.by.depth(),
            at: self.view.at,
            ..Options::default()
        };
        let trace = AggregatedTrace::read(path, options)?;
        self.view.check(&trace)?;
        Ok(trace)
    }

    fn compare(&self, before: &AggregatedTrace, after: &AggregatedTrace) -> Comparison {
        let metric = self.view.metric();
        let table = |trace: &AggregatedTrace| -> Vec<(Site, Estimate)> {
            let rows = trace.aggregate.rows(trace.locations(), self.view.by.by(), metric);
            rows.into_iter()
                .map(|row| {
                    let samples = metric.samples(&row.counts);
                    (row.site, trace.aggregate.estimate(metric, samples))
                })
                .filter(|(_, estimate)| estimate.bytes > 0.0)
                .collect()
        };
        let error = |trace: &AggregatedTrace| trace.aggregate.estimate(metric, 1).error;
        let single = SingleSample { before: error(before), after: error(after) };
        let total = |trace: &AggregatedTrace| {
            trace.aggregate.estimate(metric, trace.aggregate.total(metric))
        };
        let totals = (total(before), total(after));
        let all = changes(table(before), table(after), single);
        let sites = all.len();
        let mut certain: Vec<Change> = all.into_iter().filter(|change| change.certain).collect();
        let within_chance = sites - certain.len();
        let shown = if self.top == 0 { certain.len() } else { self.top.min(certain.len()) };
        let not_shown = certain.split_off(shown).len();
        let apart = distance(&totals.0, &totals.1, single);
        Comparison {
            before: before.input.name().to_owned(),
            after: after.input.name().to_owned(),
            metric: self.view.title(after.aggregate.peak_time()),
            by: self.view.by.name(),
            total: change_row(CallSite::total(), &totals.0, &totals.1, apart, apart.abs() > 1.96),
            changes: certain
                .iter()
                .map(|c| change_row(CallSite::from(&c.site), &c.before, &c.after, c.distance, true))
                .collect(),
            not_shown,
            within_chance,
            gate: self.fail_over.map(|limit| gate(&totals.0, &totals.1, limit)),
        }
    }
}

/// Whether the growth is over the limit by more than the sampling error. A program
/// that grew by exactly the limit passes in 19 of 20 runs.
fn gate(before: &Estimate, after: &Estimate, limit: f64) -> Gate {
    let allowed = before.bytes * (1.0 + limit);
    let noise = after.error.hypot(before.error * (1.0 + limit));
    let growth = if before.bytes > 0.0 { after.bytes / before.bytes - 1.0 } else { 0.0 };
    let grew_from_nothing = before.bytes == 0.0 && after.bytes > 0.0;
    let over = after.bytes - allowed > 1.645 * noise;
    Gate { limit, growth, passed: !over && !grew_from_nothing }
}

fn change_row(
    site: CallSite,
    before: &Estimate,
    after: &Estimate,
    distance: f64,
    certain: bool,
) -> ChangeRow {
    let kind = match (before.bytes > 0.0, after.bytes > 0.0) {
        _ if !certain => "unchanged",
        (false, true) => "new",
        (true, false) => "gone",
        _ if after.bytes > before.bytes => "grew",
        _ => "shrank",
    };
    ChangeRow {
        site,
        before: (*before).into(),
        after: (*after).into(),
        difference_bytes: after.bytes - before.bytes,
        distance,
        kind,
    }
}

fn text(found: &Comparison, layout: Layout) -> String {
    let mut text = String::new();
    let total = &found.total;
    let change = match total.kind {
        "unchanged" => "no difference beyond sampling error".to_owned(),
        kind => {
            format!("{kind} by {}", signed(total.difference_bytes).trim_start_matches(['+', '-']))
        }
    };
    let totals = format!("{} → {}: {change}", sized(&total.before), sized(&total.after));
    // Writing to a string does not fail.
    let _ = writeln!(text, "{} {totals}", layout.strong(&found.metric));
    if !found.changes.is_empty() {
        let heading =
            format!("{:>11}  {:>11}  {:>12}  {:<6}  {}", "before", "after", "change", "", found.by);
        let _ = writeln!(text, "\n{}", layout.strong(&heading));
    }
    for row in &found.changes {
        let _ = writeln!(text, "{}", change_line(row, layout));
    }
    if found.not_shown > 0 {
        let _ = writeln!(text, "{:>40}  and {} more", "", found.not_shown);
    }
    let sites = count(found.within_chance as u64, "site differs", "sites differ");
    let _ = writeln!(text, "\n{}", layout.faint(&format!("{sites} by no more than chance.")));
    if let Some(gate) = &found.gate {
        let _ = writeln!(text, "{}", gate_line(gate, layout));
    }
    text
}

fn change_line(row: &ChangeRow, layout: Layout) -> String {
    let name = Escaped(row.site.label().as_bytes()).to_string();
    let name = fit(&name, layout.width.saturating_sub(50));
    let kind = format!("{:<6}", row.kind);
    let kind = match row.kind {
        "grew" | "new" => layout.bad(&kind),
        _ => layout.good(&kind),
    };
    let (before, after) = (bytes(row.before.bytes), bytes(row.after.bytes));
    let difference = signed(row.difference_bytes);
    format!("{before:>11}  {after:>11}  {difference:>12}  {kind}  {name}")
}

fn gate_line(gate: &Gate, layout: Layout) -> String {
    let (growth, limit) = (percent(gate.growth), percent(gate.limit));
    if gate.passed {
        layout.good(&format!("passed: {growth} of growth, {limit} allowed"))
    } else {
        layout.bad(&format!("failed: {growth} of growth, {limit} allowed"))
    }
}

fn signed(difference: f64) -> String {
    let sign = if difference < 0.0 { '-' } else { '+' };
    format!("{sign}{}", bytes(difference.abs()))
}
