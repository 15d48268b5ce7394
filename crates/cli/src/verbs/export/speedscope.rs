//! Speedscope's file format: a profile for each metric, over the same frames.
//! Its schema is <https://www.speedscope.app/file-format-schema.json>.

use std::io::{self, Write};

use heaptap_report::rows::By;
use heaptap_report::{Metric, Stack, Stacks};
use serde::Serialize;

use super::Exported;
use crate::text::json::{self, Sequence};

#[derive(Serialize)]
struct File<F, P> {
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
    /// Each from `main` on.
    samples: S,
    weights: W,
}

const METRICS: [(&str, Metric); 4] = [
    ("allocated", Metric::Allocated),
    ("live at the peak", Metric::Peak),
    ("live at the end", Metric::Live),
    ("promoted", Metric::Promoted),
];

pub(super) fn write(exported: &Exported<'_>, out: &mut dyn Write) -> io::Result<()> {
    let stacks = exported.stacks(By::Location);
    let frames = || {
        stacks.sites().iter().map(|site| Frame {
            name: site.name.clone(),
            file: site.file.clone(),
            line: (site.line > 0).then_some(site.line),
        })
    };
    let profiles =
        || METRICS.iter().map(|&(name, metric)| profile(exported, &stacks, (name, metric)));
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("heaptap ", env!("CARGO_PKG_VERSION")),
        name: exported.program(),
        active: 0,
        shared: Shared { frames: Sequence(frames) },
        profiles: Sequence(profiles),
    };
    json::write(out, &file)
}

/// One profile, of the stacks that have anything of the metric.
fn profile(
    exported: &Exported<'_>,
    stacks: &Stacks<'_>,
    (name, metric): (&'static str, Metric),
) -> impl Serialize {
    let some = move || stacks.iter().filter(move |stack| metric.samples(&stack.counts) > 0);
    let weights = move || some().map(move |stack| exported.bytes(metric, &stack.counts));
    let samples = move || {
        some().map(|Stack { mut sites, .. }| {
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
