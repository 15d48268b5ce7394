//! The figures of `heaptap leaks`, each leak with its live size over time.

use heaptap_report::figures::{
    LeakReport, LeakRow, ReachableAt, SuspectReport, TraceFigures, leak_report,
    selected_leak_report,
};
use heaptap_report::rows::{By, Grouping, Site};
use heaptap_report::{
    ALL_SITE_FRAMES, Aggregate, Archive, Depth, Metric, Options, SelectedRows, SiteFrame,
};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::block_rows::Rows;
use crate::evolution::{Counted, Evolution, Steps, evolutions};
use crate::request::TraceRequest;
use crate::traces::{Traces, whole_figures};

/// The name under which an archive has the leaks of the whole trace, with these sites.
fn stored_name(site: SiteFrame) -> &'static str {
    match site {
        SiteFrame::Innermost => "leaks",
        SiteFrame::Own => "leaks of own code",
    }
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Leaks"))]
pub(crate) struct Answer {
    trace: String,
    duration_us: u64,
    verdict: String,
    conclusive: bool,
    incomplete: Option<String>,
    sites: SiteFrame,
    leaks: Vec<GrowingRow>,
    suspects: SuspectReport,
    known_until_us: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(test, ts(optional, as = "Option<Vec<ReachableAt>>"))]
    reachable: Vec<ReachableAt>,
}

/// A leak with its live size over time, and the 95 % interval of that.
#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "Leak"))]
struct GrowingRow {
    #[serde(flatten)]
    row: LeakRow,
    growth: Growth,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "LeakGrowth"))]
struct Growth {
    times: Vec<u64>,
    live: Vec<f64>,
    low: Vec<f64>,
    high: Vec<f64>,
}

pub(crate) fn leaks(traces: &mut Traces, of: &TraceRequest) -> Result<String, String> {
    let of = TraceRequest { by: By::Function, ..of.clone() };
    let archive = traces.archive(of.trace)?;
    if archive.blocks.thinning() > 0
        && traces.is_read_with_filter(&of)
        && let Some((_, answer)) =
            archive.answers.iter().find(|(name, _)| name == stored_name(of.sites))
    {
        return Ok(answer.clone());
    }
    let found = traces.find(&of)?;
    let selected = traces.selected_rows(&of)?;
    let archive = traces.archive(of.trace)?;
    let figures = traces.figures(&of, &found)?;
    let history =
        archive.blocks.history(&archive.aggregate, &archive.locations, of.sites, &selected);
    let report = selected_leak_report(&figures, &history);
    json(&Stated {
        answer: answer(archive, report, figures.aggregate, &selected),
        exact: found.exact,
    })
}

/// The leaks of the whole trace by each kind of site, for an archive whose table cannot give them
/// exactly. Needs the aggregate of the reading itself, which tracked live sizes. `selected`: only selected
/// blocks were read.
pub fn stored_leaks(archive: &Archive, selected: bool) -> Result<Vec<(String, String)>, String> {
    // What is drawn over time comes from the table.
    let all = Options { depth: Depth::Whole, ..Options::default() };
    let of_table = archive.blocks.aggregate(&archive.aggregate, &archive.locations, &all);
    let rows = archive.blocks.all(&archive.aggregate);
    let stored = |site| {
        let report = leak_report(&TraceFigures { selected, ..whole_figures(archive) }, site);
        let answer = answer(archive, report, &of_table, &rows);
        Ok((stored_name(site).to_owned(), json(&Stated { answer, exact: true })?))
    };
    ALL_SITE_FRAMES.into_iter().map(stored).collect()
}

/// The report with live sizes over time. `of_table` is the aggregate of the table's rows,
/// for their errors.
fn answer(
    archive: &Archive,
    report: LeakReport,
    of_table: &Aggregate,
    selected: &SelectedRows,
) -> Answer {
    const POINTS: usize = 64;
    let LeakReport { leaks, sites, .. } = report;
    let stated = |leaks| Answer {
        trace: report.trace,
        duration_us: report.duration_us,
        verdict: report.verdict,
        conclusive: report.conclusive,
        incomplete: report.incomplete,
        sites,
        leaks,
        suspects: report.suspects,
        known_until_us: report.known_until_us,
        reachable: report.reachable,
    };
    if leaks.is_empty() {
        return stated(Vec::new());
    }
    let steps = Steps::of(of_table, POINTS, None);
    let growing_sites: Vec<Site> = leaks.iter().map(|row| row.site.clone()).collect();
    let rows = Rows::new(archive, Grouping { by: By::Location, site: sites });
    let counted = Counted { selected, inside: None, rows: &rows, sites: &growing_sites };
    let lines = evolutions(archive, &counted, &steps).of_sites;
    let growing = |(row, line): (LeakRow, Evolution)| {
        let size = |sampled| of_table.estimate(Metric::Live, sampled);
        let sizes: Vec<_> = line.live_sampled().map(size).collect();
        GrowingRow {
            row,
            growth: Growth {
                times: steps.times(),
                live: sizes.iter().map(|size| size.bytes).collect(),
                low: sizes.iter().map(|size| size.low).collect(),
                high: sizes.iter().map(|size| size.high).collect(),
            },
        }
    };
    stated(leaks.into_iter().zip(lines).map(growing).collect())
}
