//! Speedscope's file format: one profile for each metric, over the same frames.
//! The schema is <https://www.speedscope.app/file-format-schema.json>.

use std::io::{self, Write};

use heaptap_report::rows::By;
use heaptap_report::{Metric, Stacks};
use serde::Serialize;

use crate::json::{self, Sequence};
use crate::{ExportInput, Format};

pub(crate) const FORMAT: Format = Format {
    name: "speedscope",
    help: "For speedscope.app",
    is_binary: false,
    takes_sidecar: false,
    by: By::Location,
    write,
};

#[derive(Serialize)]
struct SpeedscopeFile<F, P> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared<F>,
    profiles: P,
}

#[derive(Serialize)]
struct Shared<F> {
    frames: F,
}

#[derive(Serialize)]
struct Frame {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<S, W> {
    r#type: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: f64,
    end_value: f64,
    /// Frame indexes of each stack, the outermost first.
    samples: S,
    weights: W,
}

/// The profiles: name and metric.
const METRICS: [(&str, Metric); 4] = [
    ("allocated", Metric::Allocated),
    ("live at the peak", Metric::Peak),
    ("live at the end", Metric::Live),
    ("promoted", Metric::Promoted),
];

fn write(input: &ExportInput<'_>, stacks: &Stacks<'_>, out: &mut dyn Write) -> io::Result<()> {
    let frames = || {
        stacks.sites().iter().map(|site| Frame {
            name: site.name.clone(),
            file: site.file.clone(),
            line: (site.line > 0).then_some(site.line),
        })
    };
    let profiles = || METRICS.iter().map(|&(name, metric)| profile(input, stacks, name, metric));
    let file = SpeedscopeFile {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("heaptap ", env!("CARGO_PKG_VERSION")),
        name: input.program(),
        active: 0,
        shared: Shared { frames: Sequence(frames) },
        profiles: Sequence(profiles),
    };
    json::write(out, &file)
}

/// One profile, without the stacks that have no samples of the metric.
fn profile(
    input: &ExportInput<'_>,
    stacks: &Stacks<'_>,
    name: &'static str,
    metric: Metric,
) -> impl Serialize {
    let nonzero = move || stacks.iter().filter(move |stack| metric.samples(&stack.counts) > 0);
    let weights = move || nonzero().map(move |stack| input.bytes(metric, &stack.counts));
    let samples = move || {
        nonzero().map(|stack| {
            let mut sites = stack.sites();
            sites.reverse();
            sites
        })
    };
    Profile {
        r#type: "sampled",
        name,
        unit: "bytes",
        start_value: 0.0,
        end_value: weights().sum(),
        samples: Sequence(samples),
        weights: Sequence(weights),
    }
}
