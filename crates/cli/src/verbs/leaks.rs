//! `heaptap leaks`: sites whose live size keeps growing.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::{Args, ValueHint};
use heaptap_report::figures::units::{bytes, count, percent, short_duration};
use heaptap_report::figures::{
    BlockHolders, CallerSite, HolderGrowth, HolderSize, HolderSizes, JoinedSnapshot, LeakReport,
    LeakRow, SnapshotFigures, SuspectReport, sized,
};
use heaptap_report::rows::Site;

use crate::analysis::filters::Filters;
use crate::analysis::heap::snapshot_evidence::{
    EvidenceOptions, LeakEvidence, LeakQuestion, leaks_with_snapshots,
};
use crate::analysis::view::SiteOption;
use crate::exit_status::{VerbResult, help_end};
use crate::io::newest::named_or_newest;
use crate::io::output::print_figures;
use crate::text::names::{signed, site_name, with_file};
use crate::text::terminal::{Layout, fit, sparkline, wrap, wrap_indented};

/// Find leaks: allocation sites whose live size keeps growing
///
/// A site leaks if about the same share of its blocks is still alive, whenever they
/// were allocated, and if its live size grows by more than sampling explains.
/// Blocks that have not been through two collections are no evidence: they may be
/// garbage that is not collected yet.
///
/// A site is named after your own code, and below it is the library function that it allocates through.
///
/// If a trace cannot show leaks, the sites that grew most are named, with why each is undecided.
///
/// With --heap, what was reachable when the snapshot was taken counts as evidence too, what was garbage does not, and
/// each leak also has what held its blocks then: the variable or stack frame to look at. With two snapshots or more, a
/// site leaks only if what holds it grows as well.
#[derive(Args)]
#[command(after_help = help_end!(
    "  heaptap leaks trace.ctf
  heaptap leaks trace.ctf --exclude '^Cache\\.'
  heaptap leaks trace.ctf --heap exit.heap
  heaptap leaks trace.ctf --heap noon.heap --heap evening.heap
  heaptap leaks --json trace.ctf | jq '.leaks[0].site'"
))]
pub(crate) struct Leaks {
    /// Traces, which are merged by time; a directory stands for the traces in it, `-` for
    /// standard input [default: the newest trace in this directory]
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    files: Vec<PathBuf>,

    #[command(flatten)]
    sites: SiteOption,

    #[command(flatten)]
    filters: Filters,

    #[command(flatten)]
    evidence: EvidenceOptions,

    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl Leaks {
    pub(crate) fn run(&self) -> VerbResult {
        let files = named_or_newest(&self.files)?;
        let (snapshots, types) = self.evidence.snapshots()?;
        let LeakEvidence { trace, report } = leaks_with_snapshots(LeakQuestion {
            files: &files,
            snapshots,
            types,
            selection: self.filters.selection()?,
            selected: !self.filters.is_all(),
            site: self.sites.choice(self.json),
        })?;
        print_figures(&report, self.json, |layout| text(&report, layout))?;
        Ok(trace.verdict())
    }
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
        put(&mut text, line, report.snapshot.as_ref(), layout);
    }
    put_suspects(&mut text, report, layout);
    if let Some(snapshots) = &report.snapshots {
        put_snapshots(&mut text, snapshots, layout);
    }
    text
}

/// What the snapshots say of the whole heap.
fn put_snapshots(text: &mut String, figures: &SnapshotFigures, layout: Layout) {
    for sizes in &figures.snapshots {
        let HolderSizes { file, taken_us, reachable_bytes, outside_bytes, garbage_bytes, .. } =
            sizes;
        let _ = writeln!(text, "\n{}", layout.strong(&fit(file, layout.width)));
        let size = |size: u64| bytes(size as f64);
        let outside = match outside_bytes {
            0 => String::new(),
            _ => format!(", {} outside the heap", size(*outside_bytes)),
        };
        let reachable = format!("{}{outside}", size(*reachable_bytes));
        let holders = sizes.holders.iter().take(MOST_HOLDERS);
        let keeps = |one: &HolderSize| format!("{} ({})", one.holder, size(one.all_bytes()));
        let kept: Vec<String> = holders.map(keeps).collect();
        let facts = [
            ("taken at", short_duration(*taken_us as f64)),
            ("reachable", reachable),
            ("garbage", size(*garbage_bytes)),
            ("kept by", kept.join(", ")),
        ];
        put_facts(text, facts, layout);
    }
    if let Some(growth) = &figures.holder_growth {
        put_growth(text, growth, layout);
    }
}

/// The holders that grew from the first snapshot to the last.
fn put_growth(text: &mut String, growth: &HolderGrowth, layout: Layout) {
    let HolderGrowth { from_us, to_us, growth_bytes, rows, .. } = growth;
    let (from, to) = (short_duration(*from_us as f64), short_duration(*to_us as f64));
    let head = format!("From {from} to {to}");
    let _ = writeln!(text, "\n{}", layout.strong(&head));
    let grown = rows.iter().filter(|row| row.growth_bytes > 0).take(MOST_HOLDERS);
    let grown: Vec<String> = grown
        .map(|row| format!("{} ({})", row.size.holder, signed(row.growth_bytes as f64)))
        .collect();
    let grown = if grown.is_empty() { "nothing".to_owned() } else { grown.join(", ") };
    let facts = [("reachable", signed(*growth_bytes as f64)), ("grew", grown)];
    put_facts(text, facts, layout);
}

/// The most holders of a snapshot that are named.
const MOST_HOLDERS: usize = 4;

/// Facts, each with its label.
fn put_facts<'a>(
    text: &mut String,
    facts: impl IntoIterator<Item = (&'a str, String)>,
    layout: Layout,
) {
    for (label, fact) in facts {
        let fact = wrap_indented(&fact, INDENT, layout.width);
        let _ = writeln!(text, "  {label:<11} {fact}");
    }
}

/// What grew most, if the trace cannot show leaks.
fn put_suspects(text: &mut String, report: &LeakReport, layout: Layout) {
    let SuspectReport { since_us, rows, other_rows } = &report.suspects;
    if rows.is_empty() {
        return;
    }
    let since = short_duration(*since_us as f64);
    let head = format!("Grew since {since}, and may leak or not:");
    let _ = writeln!(text, "\n{}", wrap(&head, layout.width).join("\n"));
    for row in rows {
        let name = with_file(&site_name(&row.site), layout.width);
        let _ = writeln!(text, "\n{}", layout.strong(&name));
        let held = row.held.as_ref().zip(report.snapshot.as_ref());
        let held = held.map(|(held, snapshot)| ("held by", held_by(held, snapshot)));
        let facts = [
            match row.growth.bytes {
                more if more > 0.0 => ("grew by", sized(&row.growth)),
                0.0 => ("grew by", "nothing".to_owned()),
                less => ("shrank by", bytes(-less)),
            },
            ("alive", sized(&row.live)),
            ("undecided", row.undecided.clone()),
        ];
        let between = row.between.iter().map(|between| ("snapshots", between.sentence()));
        put_facts(text, facts.into_iter().chain(held).chain(between), layout);
    }
    if *other_rows > 0 {
        let others = count(*other_rows as u64, "other site grew", "other sites grew");
        let _ = writeln!(text, "\n{others}");
    }
}

/// Columns before the facts about a leak.
const INDENT: usize = 14;

fn put(text: &mut String, line: &LeakRow, snapshot: Option<&JoinedSnapshot>, layout: Layout) {
    let named = |site: &Site, room: usize| with_file(&site_name(site), room);
    // Writing to a string does not fail.
    let _ = writeln!(text, "\n{}", layout.strong(&named(&line.site, layout.width)));
    let held = line.held.as_ref().zip(snapshot);
    let held = held.map(|(held, snapshot)| ("held by", held_by(held, snapshot)));
    let between = line.between.iter().map(|between| ("snapshots", between.sentence()));
    put_facts(text, facts(line, layout).into_iter().chain(held).chain(between), layout);
    for (at, called) in line.via.iter().enumerate() {
        let label = if at == 0 { "via" } else { "" };
        let name = named(called, layout.width - INDENT);
        let _ = writeln!(text, "  {label:<11} {name}");
    }
    for (at, CallerSite { site, library }) in line.called_from.iter().enumerate() {
        let label = if at == 0 { "called from" } else { "" };
        let via = if *library { "via " } else { "" };
        let name = named(site, layout.width - INDENT - via.len());
        let _ = writeln!(text, "  {label:<11} {via}{name}");
    }
}

fn facts(line: &LeakRow, layout: Layout) -> Vec<(&'static str, String)> {
    let growth = &line.growth_per_second;
    let minute = bytes(60.0 * growth.bytes);
    let older = line.older.as_ref().map_or(0.0, |older| older.live_from_before.bytes);
    let own = (line.live.bytes - older).max(0.0);
    let kept = if line.allocated.bytes > 0.0 { own / line.allocated.bytes } else { 0.0 };
    let verdict = if let Some(judged) = &line.judged {
        judged.sentence()
    } else if line.slowing {
        "grows less and less: perhaps a cache that fills; look again after a longer run".to_owned()
    } else if kept > 0.9 {
        "a leak: what it allocates is kept, whenever it was allocated".to_owned()
    } else {
        let share = percent(kept);
        format!("a leak: some {share} of what it allocates is kept, whenever it was allocated")
    };
    let mut facts = vec![
        ("grows by", format!("{minute} ± {} a minute", percent(growth.relative().unwrap_or(0.0)))),
        ("alive", alive(line, kept)),
    ];
    if !line.survivors.is_empty() {
        let survivors = sparkline(&line.survivors, layout.width - INDENT);
        let from = short_duration(line.survivors_from_us as f64);
        let to = short_duration(line.survivors_to_us as f64);
        facts.push(("survivors", format!("{survivors}  by age, from {from} to {to}")));
    }
    facts.push(("verdict", verdict));
    facts
}

/// How much is alive, and which share that is of what was allocated.
fn alive(line: &LeakRow, kept: f64) -> String {
    let live = sized(&line.live);
    let Some(older) = &line.older else {
        return format!("{live}, {} of what it allocated", percent(kept));
    };
    format!(
        "{live}; of it {} from before the first of these files, the oldest by {}; {} of what it has \
         allocated since",
        bytes(older.live_from_before.bytes),
        short_duration(older.oldest_before_us as f64),
        percent(kept)
    )
}

/// What held the blocks of a leak when the snapshot was taken.
fn held_by(held: &BlockHolders, snapshot: &JoinedSnapshot) -> String {
    let when =
        format!("in {}, taken at {}", snapshot.file, short_duration(snapshot.taken_us as f64));
    match held.text() {
        Some(holders) => format!("{holders}, of {} {when}", sized(&held.in_snapshot.size)),
        None => format!("nothing: none of its sampled blocks was {when}"),
    }
}
