//! The figures of `heaptap leaks`.

use crate::aggregate::Metric;
use crate::blocks::LiveHistory;
use crate::callers::Caller;
use crate::leaks::{Leak, Leaks, Outlook, Suspect, Suspects, Verdict};
use crate::library_calls::LibraryCall;
use crate::own_code::SiteFrame;
use serde::Serialize;

use crate::estimate::Sampled;
use crate::figures::held_growth::HeldGrowth;
use crate::figures::leak_holders::{HolderSize, SnapshotFigures};
use crate::figures::leak_verdicts::{JudgedFigures, ReachableAt, reachable};
use crate::figures::size::Size;
use crate::figures::snapshot_holders::{BlockHolders, JoinedSnapshot};
use crate::figures::trace::TraceFigures;
use crate::figures::units::{count, percent, short_duration};
use crate::rows::Site;

/// What is shown. The field names are those of the JSON.
#[derive(Serialize)]
pub struct LeakReport {
    pub trace: String,
    pub duration_us: u64,
    pub verdict: String,
    /// Whether the trace can show leaks; that there are none only if all of it was read.
    pub conclusive: bool,
    /// Why not all that the program did was read, if that is so.
    pub incomplete: Option<String>,
    /// Which frame of a stack is its site.
    pub sites: SiteFrame,
    pub leaks: Vec<LeakRow>,
    /// If the trace cannot show leaks: the sites that grew most, which may.
    pub suspects: SuspectReport,
    /// Up to when it is known what was reachable; 0 if nothing is.
    pub known_until_us: u64,
    /// What was reachable when the collector's cycles began, if they are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reachable: Vec<ReachableAt>,
    /// The snapshot that was joined, if one was: the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<JoinedSnapshot>,
    /// What the snapshots say of the whole heap, if any were joined.
    #[serde(flatten)]
    pub snapshots: Option<SnapshotFigures>,
}

/// Sites that may leak, in a trace that cannot show whether they do.
#[derive(Default, Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Suspects"))]
pub struct SuspectReport {
    /// They grew since then: the middle of the run.
    pub since_us: u64,
    /// Those that grew most come first.
    pub rows: Vec<SuspectRow>,
    pub other_rows: usize,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS), ts(rename = "Suspect"))]
pub struct SuspectRow {
    pub site: Site,
    pub growth: Size,
    pub live: Size,
    pub allocated: Size,
    /// Why it is not decided.
    pub undecided: String,
    /// The verdict by the collector's cycles, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub judged: Option<JudgedFigures>,
    /// The holder of most of its blocks in the last snapshot, with all that it keeps, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub keeper: Option<HolderSize>,
    /// What it and its holders did between two snapshots, if two were joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub between: Option<HeldGrowth>,
    /// What holds its blocks, if a snapshot was joined.
    #[serde(flatten)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub held: Option<BlockHolders>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct LeakRow {
    pub site: Site,
    pub live: Size,
    pub allocated: Size,
    pub growth_per_second: Size,
    pub slowing: bool,
    pub survivors_from_us: u64,
    pub survivors_to_us: u64,
    /// Bytes still alive, by the window of that time in which they were allocated.
    pub survivors: Vec<f64>,
    /// The library functions through which the site allocates at least a quarter of it, if the site
    /// is own code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<Vec<Site>>"))]
    pub via: Vec<Site>,
    /// The callers under which nearly all of it lives, the nearest first.
    pub called_from: Vec<CallerSite>,
    /// The verdict by the collector's cycles, if they are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub judged: Option<JudgedFigures>,
    /// What of it was alive when the trace started.
    #[serde(flatten)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub older: Option<OlderBlocks>,
    /// The holder of most of its blocks in the last snapshot, with all that it keeps, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub keeper: Option<HolderSize>,
    /// What it and its holders did between two snapshots, if two were joined.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub between: Option<HeldGrowth>,
    /// What holds its blocks, if a snapshot was joined.
    #[serde(flatten)]
    #[cfg_attr(feature = "typescript", ts(skip))]
    pub held: Option<BlockHolders>,
}

/// Blocks of a leak that were alive when the trace started: parts of a series before it are not there
/// any more.
#[derive(Serialize)]
pub struct OlderBlocks {
    /// The part of what is alive.
    pub live_from_before: Size,
    /// How long before the start the oldest of it was allocated.
    pub oldest_before_us: u64,
}

/// A caller of a leak.
#[derive(Serialize)]
#[cfg_attr(feature = "typescript", derive(ts_rs::TS))]
pub struct CallerSite {
    #[serde(flatten)]
    pub site: Site,
    /// It is library code, the function that own code calls, and stands for all that is called inside.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[cfg_attr(feature = "typescript", ts(optional, as = "Option<bool>"))]
    pub library: bool,
}

/// The most callers of a leak.
const LEVELS: usize = 6;

/// The report of a reading that tracked live sizes.
pub fn leak_report(trace: &TraceFigures<'_>, site: SiteFrame) -> LeakReport {
    report(trace, site, &trace.aggregate.leaks(trace.locations, site, LEVELS))
}

/// The report of blocks that were selected from a table, with their history.
pub fn selected_leak_report(trace: &TraceFigures<'_>, history: &LiveHistory) -> LeakReport {
    report(trace, history.site, &trace.aggregate.leaks_with(history, trace.locations, LEVELS))
}

fn report(trace: &TraceFigures<'_>, site: SiteFrame, leaks: &Leaks) -> LeakReport {
    let carried_over = trace.aggregate.is_carried_over();
    let found = if carried_over { &[][..] } else { &leaks.found[..] };
    let (clear, incomplete) = (leaks.outlook == Outlook::Clear, trace.incomplete);
    let partly = partly(incomplete);
    let verdict = match (leaks.outlook, found.len() as u64) {
        _ if carried_over => "cannot tell: the files are parts of one process's trace, and none \
            says which blocks of an earlier one were collected; trace it into one file"
            .to_owned(),
        (outlook @ (Outlook::TooShort | Outlook::TooFew | Outlook::RarelyCollected), _) => {
            undecided(trace, outlook)
        }
        (Outlook::Clear, 0) => not_seen(leaks, &partly),
        (Outlook::Clear, number) => growing(number, &partly),
    };
    let suspects = match carried_over {
        true => SuspectReport::default(),
        false => suspects(&leaks.suspects, leaks.outlook),
    };
    LeakReport {
        trace: trace.name.to_owned(),
        duration_us: trace.aggregate.duration(),
        verdict,
        conclusive: clear && !carried_over && (incomplete.is_none() || !found.is_empty()),
        incomplete: incomplete.map(str::to_owned),
        sites: site,
        leaks: found.iter().map(row).collect(),
        suspects,
        known_until_us: leaks.known_until,
        reachable: leaks.by_cycles.as_ref().map(reachable).unwrap_or_default(),
        snapshot: None,
        snapshots: None,
    }
}

/// What was not seen may hold a leak, or the end of what seems to be one.
pub(super) fn partly(incomplete: Option<&str>) -> String {
    incomplete.map_or_else(String::new, |why| format!(" in what was read, which is not all: {why}"))
}

/// The verdict if so many sites leak.
pub(super) fn growing(sites: u64, partly: &str) -> String {
    format!("{} growing{partly}", count(sites, "site keeps", "sites keep"))
}

/// The verdict if no site keeps growing, as far as is known.
fn not_seen(leaks: &Leaks, partly: &str) -> String {
    let until = short_duration(leaks.known_until as f64);
    let judged = leaks.suspects.sites.iter().filter_map(|suspect| suspect.judged.as_ref());
    let was = judged.filter(|judged| judged.judgement.verdict == Verdict::WasGrowing).count();
    if was == 0 {
        return format!("no site seen growing up to {until}{partly}");
    }
    format!(
        "{} growing up to {until}{partly}; what is reachable since then is not known: take a snapshot, \
         or trace a longer run",
        count(was as u64, "site was", "sites were")
    )
}

/// The verdict on a trace, or on the selected blocks of one, that cannot show leaks.
fn undecided(trace: &TraceFigures<'_>, outlook: Outlook) -> String {
    let samples = trace.aggregate.samples_of(trace.aggregate.total(Metric::Allocated));
    let why = match (outlook, trace.selected, samples) {
        (_, true, 0) => "no block passes the filters; take one of them away".to_owned(),
        (_, false, 0) => "nothing was sampled; trace a longer run, or at a higher rate".to_owned(),
        (Outlook::TooFew, true, _) => {
            let only = count(samples, "sample", "samples");
            format!("the filters leave only {only}; take one of them away, or trace at a higher rate")
        }
        (Outlook::TooFew, false, _) => {
            let only = count(samples, "sample", "samples");
            format!("the trace has only {only}; trace a longer run, or at a higher rate")
        }
        (Outlook::RarelyCollected, true, _) => "of the selected blocks, old ones were collected too \
            rarely to tell a leak from garbage that waits; take a filter away, or trace a longer run"
            .to_owned(),
        (Outlook::RarelyCollected, false, _) => "old blocks were collected too rarely to tell a \
            leak from garbage that waits; take a snapshot, or trace a longer run"
            .to_owned(),
        (Outlook::TooShort | Outlook::Clear, ..) => {
            "the trace is too short; trace a longer run".to_owned()
        }
    };
    format!("cannot tell: {why}")
}

fn suspects(found: &Suspects, outlook: Outlook) -> SuspectReport {
    let row = |suspect: &Suspect| SuspectRow {
        site: suspect.site.clone(),
        growth: suspect.growth.into(),
        live: suspect.live.into(),
        allocated: suspect.allocated.into(),
        undecided: match &suspect.judged {
            Some(judged) => JudgedFigures::of(judged).sentence(),
            None => why_undecided(suspect, found.since, outlook),
        },
        judged: suspect.judged.as_ref().map(JudgedFigures::of),
        keeper: None,
        between: None,
        held: None,
    };
    SuspectReport {
        since_us: found.since,
        rows: found.sites.iter().map(row).collect(),
        other_rows: found.others,
    }
}

/// Why a site that grew is not called a leak.
fn why_undecided(suspect: &Suspect, since: u64, outlook: Outlook) -> String {
    let kept = if suspect.allocated.bytes > 0.0 {
        (suspect.live.bytes / suspect.allocated.bytes).min(1.0)
    } else {
        0.0
    };
    let kept = percent(kept);
    match outlook {
        Outlook::RarelyCollected => {
            format!("{kept} of what it allocated is alive, or garbage that was not collected yet")
        }
        Outlook::TooFew => format!("{kept} of what it allocated is alive, but it is few samples"),
        Outlook::TooShort | Outlook::Clear => format!(
            "{kept} of what it allocated is alive, but {} is too short to see whether it goes on",
            short_duration(since as f64)
        ),
    }
}

fn row(leak: &Leak) -> LeakRow {
    let live = leak.callers.iter().map(|caller| caller.samples).sum::<Sampled>().count;
    LeakRow {
        site: leak.site.clone(),
        live: leak.live.into(),
        allocated: leak.allocated.into(),
        growth_per_second: leak.growth.into(),
        slowing: leak.slowing,
        survivors_from_us: leak.window.0,
        survivors_to_us: leak.window.1,
        survivors: leak.survivors.clone(),
        via: main_library_calls(&leak.library_calls, live),
        called_from: main_callers(&leak.callers, live),
        older: (leak.oldest > 0).then(|| OlderBlocks {
            live_from_before: leak.older.into(),
            oldest_before_us: leak.oldest,
        }),
        judged: leak.judged.as_ref().map(JudgedFigures::of),
        keeper: None,
        between: None,
        held: None,
    }
}

/// The library functions that at least a quarter of the size goes through.
fn main_library_calls(calls: &[LibraryCall], called: u64) -> Vec<Site> {
    let all = calls.iter().fold(0, |sum: u64, call| sum.saturating_add(call.samples.count));
    let all = all.max(called);
    let is_main = |call: &&LibraryCall| call.samples.count.saturating_mul(4) >= all;
    calls.iter().filter(is_main).map(|call| call.site.clone()).collect()
}

/// The chain of callers that nine tenths of the size have in common.
fn main_callers(callers: &[Caller], all: u64) -> Vec<CallerSite> {
    let mut chain = Vec::new();
    let mut level = callers;
    while let Some(caller) = level.first() {
        if caller.samples.count.saturating_mul(10) < all.saturating_mul(9) {
            break;
        }
        chain.push(CallerSite { site: caller.site.clone(), library: caller.library });
        level = &caller.callers;
    }
    chain
}
