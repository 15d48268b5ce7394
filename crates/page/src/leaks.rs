//! The figures of `heaptap leaks`, each leak with its live size over time.

use heaptap_figures::{CallSite, LeakReport, LeakRow, TraceFigures, leak_report};
use heaptap_report::rows::{By, Site};
use heaptap_report::{Aggregate, Archive, Depth, Follow, Metric, Options, Selection};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::evolution::{Followed, Steps, evolutions};
use crate::request::TraceRequest;
use crate::traces::Traces;

/// The name under which an archive has the leaks of the whole trace.
const STORED: &str = "leaks";

#[derive(Serialize)]
struct Answer {
    trace: String,
    duration_us: u64,
    verdict: String,
    conclusive: bool,
    leaks: Vec<GrowingRow>,
}

/// A leak with its live size over time, and the 95 % interval of that.
#[derive(Serialize)]
struct GrowingRow {
    #[serde(flatten)]
    row: LeakRow,
    growth: Growth,
}

#[derive(Serialize)]
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
        && let Some((_, answer)) = archive.answers.iter().find(|(name, _)| name == STORED)
    {
        return Ok(answer.clone());
    }
    let found = traces.find(&of, Follow::LiveSize)?;
    let exact = traces.is_exact(&of, &found);
    let selection = of.filter.selection()?;
    let archive = traces.archive(of.trace)?;
    let figures = traces.figures(&of, &found)?;
    json(&Stated { answer: answer(archive, &figures, figures.aggregate, &selection), exact })
}

/// The leaks of the whole trace, for an archive whose table cannot give them exactly.
/// Needs the aggregate of the reading itself, which followed live sizes.
pub fn stored_leaks(archive: &Archive) -> Result<(String, String), String> {
    let figures = TraceFigures {
        name: &archive.name,
        info: &archive.info,
        cut_short: archive.cut_short.as_deref(),
        aggregate: &archive.aggregate,
        locations: &archive.locations,
        selected: false,
    };
    // What is drawn over time comes from the table.
    let all = Options { depth: Depth::Whole, ..Options::default() };
    let of_table = archive.blocks.aggregate(&archive.aggregate, &archive.locations, &all);
    let answer = answer(archive, &figures, &of_table, &all.selection);
    Ok((STORED.to_owned(), json(&Stated { answer, exact: true })?))
}

/// `of_table` is the aggregate of the table's rows, for the error of live sizes.
fn answer(
    archive: &Archive,
    figures: &TraceFigures<'_>,
    of_table: &Aggregate,
    selection: &Selection,
) -> Answer {
    const POINTS: usize = 64;
    let LeakReport { trace, duration_us, verdict, conclusive, leaks } = leak_report(figures);
    let site_of = |row: &LeakRow| {
        let CallSite { name, file, line, chars } = row.site.clone();
        Site { name, file, line, chars }
    };
    let steps = Steps::of(of_table, POINTS);
    let sites = leaks.iter().map(site_of).collect();
    let followed = Followed { selection, inside: None, by: By::Location, sites: Some(&sites) };
    let evolutions = evolutions(archive, &followed, &steps);
    let none = steps.evolution();
    let growing = |row: LeakRow| {
        let live = &evolutions.get(&site_of(&row)).unwrap_or(&none).live;
        let size = |&samples: &i64| of_table.estimate(Metric::Live, samples.max(0) as u64);
        let sizes: Vec<_> = live.iter().map(size).collect();
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
    let leaks = leaks.into_iter().map(growing).collect();
    Answer { trace, duration_us, verdict, conclusive, leaks }
}
