//! The lines of a source file, with what was allocated at each and while it was on the stack.

use std::collections::{BTreeMap, BTreeSet};

use heaptap_report::figures::{Sum, TraceFigures};
use heaptap_report::rows::{By, Site, Sites};
use heaptap_report::{FileLines, Frame, Metric, Sampled};
use serde::Serialize;

use crate::answer::{Stated, json, sum};
use crate::request::TraceRequest;
use crate::totals::{Counted, Counting};
use crate::traces::Traces;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SourceLines"))]
pub(crate) struct SourceAnswer {
    file: String,
    lines: Vec<Line>,
    /// What the file allocates itself, and with all that it calls.
    sum: Sum,
    total: Option<Sum>,
    /// Why there are no totals.
    no_totals: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SourceLine"))]
struct Line {
    line: u32,
    /// What it allocates itself, with the library code that it calls if sites are own code.
    sum: Sum,
    /// With all that it calls.
    total: Option<Sum>,
    functions: BTreeSet<String>,
}

/// A line that is being made.
#[derive(Default)]
struct Made {
    samples: Sampled,
    total: Option<Sum>,
    functions: BTreeSet<String>,
}

pub(crate) fn source(traces: &mut Traces, of: &TraceRequest, file: &str) -> Result<String, String> {
    let of = TraceRequest { by: By::Location, ..of.clone() };
    let found = traces.find(&of)?;
    let counted = Counted::of(traces, &of, &found)?;
    let file_lines = match counted {
        Ok(_) => Some(traces.file_lines(of.trace, file)?),
        Err(_) => None,
    };
    let figures = traces.figures(&of, &found)?;
    let archive = traces.archive(of.trace)?;
    let (aggregate, metric) = (figures.aggregate, of.metric);
    let mut lines: BTreeMap<u32, Made> = BTreeMap::new();
    for row in aggregate.rows(figures.locations, of.grouping(), metric) {
        let samples = metric.of(&row.counts);
        if row.site.file == file && samples.count > 0 {
            let made = lines.entry(row.site.line).or_default();
            made.samples = made.samples.plus(samples);
            made.functions.insert(row.site.name);
        }
    }
    let all = lines.values().map(|made| made.samples).sum();
    let mut total = None;
    if let (Ok(counted), Some(file_lines)) = (&counted, &file_lines) {
        let in_file = |site: Site| (site.file == file).then(|| of_line(site.line));
        let counting = Counting::new(&figures, &of, counted.table(archive), in_file);
        total = add_totals(&mut lines, file_lines, &counting, metric, all);
        add_functions(&mut lines, &figures, file);
    }
    let line = |(line, Made { samples, total, functions })| Line {
        line,
        sum: sum(aggregate, metric, samples),
        total,
        functions,
    };
    let answer = SourceAnswer {
        file: file.to_owned(),
        lines: lines.into_iter().map(line).collect(),
        sum: sum(aggregate, metric, all),
        total,
        no_totals: counted.err(),
    };
    json(&Stated { answer, exact: found.exact })
}

/// Stands for a line.
fn of_line(line: u32) -> Site {
    Site { line, ..Site::default() }
}

/// Adds the totals of lines, and returns that of the file, of which `own` samples are its own.
fn add_totals(
    lines: &mut BTreeMap<u32, Made>,
    file_lines: &FileLines,
    counting: &Counting<'_>,
    metric: Metric,
    own: Sampled,
) -> Option<Sum> {
    let totals = file_lines.occurrences.totals(counting.counted(), metric);
    let (&of_file, of_lines) = totals.split_first()?;
    for (&line, &total) in file_lines.lines.iter().zip(of_lines) {
        if total.samples.count > 0 {
            let made = lines.entry(line).or_default();
            made.total = Some(counting.of_row(&of_line(line), made.samples, total));
        }
    }
    for made in lines.values_mut().filter(|made| made.total.is_none()) {
        made.total = counting.without_calls(made.samples);
    }
    Some(counting.of_all(own, of_file))
}

/// Adds the functions of lines that have a total.
fn add_functions(lines: &mut BTreeMap<u32, Made>, figures: &TraceFigures<'_>, file: &str) {
    let names = Sites::new(figures.locations, By::Location);
    for code in figures.aggregate.codes() {
        for site in names.inlined(Frame::Code(code)) {
            if site.file == file
                && let Some(made) = lines.get_mut(&site.line)
            {
                made.functions.insert(site.name);
            }
        }
    }
}
