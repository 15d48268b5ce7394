//! The lines of a source file, with what was allocated at each.

use std::collections::{BTreeMap, BTreeSet};

use heaptap_report::figures::Sum;
use heaptap_report::rows::By;
use serde::Serialize;

use crate::answer::{Stated, json, sum};
use crate::request::TraceRequest;
use crate::traces::Traces;

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SourceLines"))]
pub(crate) struct SourceAnswer {
    file: String,
    lines: Vec<Line>,
    total: Sum,
}

#[derive(Serialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(rename = "SourceLine"))]
struct Line {
    line: u32,
    sum: Sum,
    functions: BTreeSet<String>,
}

pub(crate) fn source(traces: &mut Traces, of: &TraceRequest, file: &str) -> Result<String, String> {
    let of = TraceRequest { by: By::Location, ..of.clone() };
    let found = traces.find(&of)?;
    let figures = traces.figures(&of, &found)?;
    let (aggregate, metric) = (figures.aggregate, of.metric);
    let mut lines: BTreeMap<u32, (u64, BTreeSet<String>)> = BTreeMap::new();
    for row in aggregate.rows(figures.locations, of.grouping(), metric) {
        if row.site.file == file {
            let (samples, functions) = lines.entry(row.site.line).or_default();
            *samples = samples.saturating_add(metric.samples(&row.counts));
            functions.insert(row.site.name);
        }
    }
    let all = lines.values().fold(0_u64, |sum, (samples, _)| sum.saturating_add(*samples));
    let line = |(line, (samples, functions))| Line {
        line,
        sum: sum(aggregate, metric, samples),
        functions,
    };
    let answer = SourceAnswer {
        file: file.to_owned(),
        lines: lines.into_iter().map(line).collect(),
        total: sum(aggregate, metric, all),
    };
    json(&Stated { answer, exact: found.exact })
}
