//! The figures of `heaptap leaks`, each leak with its live size over time.

use heaptap_figures::{LeakReport, LeakRow, leak_report};
use heaptap_report::rows::{By, Site};
use heaptap_report::{Follow, Metric};
use serde::Serialize;

use crate::answer::{Stated, json};
use crate::request::{RowKind, TraceRequest};
use crate::timeline::{Inside, evolution};
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
    const POINTS: usize = 64;
    let of = TraceRequest { by: RowKind::Function, ..of.clone() };
    let archive = traces.archive(of.trace)?;
    if archive.blocks.thinning() > 0
        && of.filter.is_all()
        && let Some((_, answer)) = archive.answers.iter().find(|(name, _)| name == STORED)
    {
        return Ok(answer.clone());
    }
    let found = traces.find(&of, Follow::LiveSize)?;
    let exact = traces.is_exact(&of, &found);
    let figures = traces.figures(&of, &found)?;
    let archive = traces.archive(of.trace)?;
    let LeakReport { trace, duration_us, verdict, conclusive, leaks } = leak_report(&figures);
    let selection = of.filter.selection()?;
    let rows = leaks.into_iter().map(|row| {
        let site = Site {
            name: row.site.name.clone(),
            file: row.site.file.clone(),
            line: row.site.line,
            chars: row.site.chars,
        };
        let inside = Inside::of(archive, By::Location, &site);
        let (times, samples) = evolution(archive, figures.aggregate, &selection, &inside, POINTS);
        let sizes: Vec<_> = samples
            .iter()
            .map(|&samples| figures.aggregate.estimate(Metric::Live, samples))
            .collect();
        GrowingRow {
            row,
            growth: Growth {
                times,
                live: sizes.iter().map(|size| size.bytes).collect(),
                low: sizes.iter().map(|size| size.low).collect(),
                high: sizes.iter().map(|size| size.high).collect(),
            },
        }
    });
    let leaks = rows.collect();
    json(&Stated { answer: Answer { trace, duration_us, verdict, conclusive, leaks }, exact })
}
