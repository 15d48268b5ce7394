//! `heaptap leaks`: sites whose live size keeps growing.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::{Caller, Depth, Follow, Leak, Options, Outlook};
use serde::Serialize;

use crate::analysis::aggregate::AggregatedTrace;
use crate::analysis::call_site::CallSite;
use crate::analysis::filters::Filters;
use crate::analysis::size::{Size, sized};
use crate::exit_status::{VerbResult, help_end};
use crate::io::output::{print, print_json};
use crate::text::escape::Escaped;
use crate::text::names::with_file;
use crate::text::terminal::{Layout, sparkline, wrap, wrap_indented};
use crate::text::units::{bytes, count, percent, short_duration};

/// Find leaks: allocation sites whose live size keeps growing
///
/// A site leaks if about the same share of its blocks is still alive, whenever they
/// were allocated, and if its live size grows by more than sampling explains.
/// Blocks that have not been through two collections are no evidence: they may be
/// garbage that is not collected yet.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap leaks trace.ctf
  heaptap leaks trace.ctf --exclude '^Cache\\.'
  heaptap leaks --json trace.ctf | jq '.leaks[0].site'"
))]
pub(crate) struct Leaks {
    /// Traces, which are merged by time; a directory stands for the traces in it, `-` for
    /// standard input
    #[arg(value_name = "FILE", required = true, value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    filters: Filters,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
struct LeakReport {
    trace: String,
    duration_us: u64,
    verdict: String,
    /// Whether the trace can show leaks.
    conclusive: bool,
    leaks: Vec<LeakRow>,
}

#[derive(Serialize)]
struct LeakRow {
    site: CallSite,
    live: Size,
    allocated: Size,
    growth_per_second: Size,
    slowing: bool,
    survivors_from_us: u64,
    survivors_to_us: u64,
    /// Bytes still alive, by the window of that time in which they were allocated.
    survivors: Vec<f64>,
    /// The callers under which nearly all of it lives, the nearest first.
    called_from: Vec<CallSite>,
}

impl Leaks {
    pub(crate) fn run(&self) -> VerbResult {
        let options = Options {
            selection: self.filters.selection()?,
            depth: Depth::Whole,
            follow: Follow::LiveSize,
            ..Options::default()
        };
        let trace = AggregatedTrace::read(&self.files, options)?;
        let report = leak_report(&trace);
        if self.json {
            print_json(&report)?;
        } else {
            print(text(&report, Layout::of_stdout()).as_bytes())?;
        }
        Ok(trace.verdict())
    }
}

fn leak_report(trace: &AggregatedTrace) -> LeakReport {
    const LEVELS: usize = 6;
    let leaks = trace.aggregate.leaks(trace.locations(), LEVELS);
    let verdict = match (leaks.outlook, leaks.found.len() as u64) {
        (Outlook::TooShort, _) => {
            "cannot tell: the trace is too short; trace a longer run, or at a higher rate"
                .to_owned()
        }
        (Outlook::RarelyCollected, _) => "cannot tell: old blocks were collected too rarely to \
            tell a leak from garbage that waits; trace a longer run"
            .to_owned(),
        (Outlook::Clear, 0) => "no leak: no site keeps growing".to_owned(),
        (Outlook::Clear, number) => {
            format!("{} growing", count(number, "site keeps", "sites keep"))
        }
    };
    LeakReport {
        trace: trace.name().to_owned(),
        duration_us: trace.aggregate.duration(),
        verdict,
        conclusive: leaks.outlook == Outlook::Clear,
        leaks: leaks.found.iter().map(row).collect(),
    }
}

fn row(leak: &Leak) -> LeakRow {
    let live: u64 = leak.callers.iter().map(|caller| caller.samples).sum();
    LeakRow {
        site: CallSite::from(&leak.site),
        live: leak.live.into(),
        allocated: leak.allocated.into(),
        growth_per_second: leak.growth.into(),
        slowing: leak.slowing,
        survivors_from_us: leak.window.0,
        survivors_to_us: leak.window.1,
        survivors: leak.survivors.clone(),
        called_from: main_callers(&leak.callers, live),
    }
}

/// The chain of callers that nine tenths of the size have in common.
fn main_callers(callers: &[Caller], all: u64) -> Vec<CallSite> {
    let mut chain = Vec::new();
    let mut level = callers;
    while let Some(caller) = level.first() {
        if caller.samples.saturating_mul(10) < all.saturating_mul(9) {
            break;
        }
        chain.push(CallSite::from(&caller.site));
        level = &caller.callers;
    }
    chain
}

fn text(report: &LeakReport, layout: Layout) -> String {
    let seen = format!("in {}", short_duration(report.duration_us as f64));
    let colour = |text: &str| match (report.conclusive, report.leaks.is_empty()) {
        (true, true) => layout.good(text),
        (true, false) => layout.bad(text),
        (false, _) => layout.strong(text),
    };
    let verdict = wrap(&format!("{} ({seen})", report.verdict), layout.width).join("\n");
    let mut text = format!("{}\n", colour(&verdict));
    for line in &report.leaks {
        put(&mut text, line, layout);
    }
    text
}

/// Columns before the facts about a leak.
const INDENT: usize = 14;

fn put(text: &mut String, line: &LeakRow, layout: Layout) {
    let named = |site: &CallSite, room: usize| {
        let (name, file) = site.parts();
        let escaped = |text: String| Escaped(text.as_bytes()).to_string();
        with_file(&(escaped(name), escaped(file)), room)
    };
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{}", layout.strong(&named(&line.site, layout.width)));
    for (label, fact) in facts(line, layout) {
        let fact = wrap_indented(&fact, INDENT, layout.width);
        let _ = writeln!(text, "  {label:<11} {fact}");
    }
    for (at, caller) in line.called_from.iter().enumerate() {
        let label = if at == 0 { "called from" } else { "" };
        let name = named(caller, layout.width - INDENT);
        let _ = writeln!(text, "  {label:<11} {name}");
    }
}

fn facts(line: &LeakRow, layout: Layout) -> [(&'static str, String); 4] {
    let growth = &line.growth_per_second;
    let minute = bytes(60.0 * growth.bytes);
    let kept =
        if line.allocated.bytes > 0.0 { line.live.bytes / line.allocated.bytes } else { 0.0 };
    let survivors = sparkline(&line.survivors, layout.width - INDENT);
    let verdict = if line.slowing {
        "grows less and less: perhaps a cache that fills; look again after a longer run"
    } else {
        "a leak: what it allocates is kept, whenever it was allocated"
    };
    [
        ("grows by", format!("{minute} ± {} a minute", percent(growth.relative()))),
        ("alive", format!("{}, {} of what it allocated", sized(&line.live), percent(kept))),
        (
            "survivors",
            format!(
                "{survivors}  by age, from {} to {}",
                short_duration(line.survivors_from_us as f64),
                short_duration(line.survivors_to_us as f64)
            ),
        ),
        ("verdict", verdict.to_owned()),
    ]
}
