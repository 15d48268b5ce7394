//! Speedscope's file format: a profile for each metric, over the same frames.
//! Its schema is <https://www.speedscope.app/file-format-schema.json>.

use heaptap_report::Metric;
use serde::Serialize;

use super::Exported;
use crate::json;

#[derive(Serialize)]
struct File {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: &'static str,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active: usize,
    shared: Shared,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared {
    frames: Vec<Frame>,
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
struct Profile {
    r#type: &'static str,
    name: &'static str,
    unit: &'static str,
    start_value: f64,
    end_value: f64,
    /// Each from `main` on.
    samples: Vec<Vec<u32>>,
    weights: Vec<f64>,
}

pub(super) fn write(exported: &Exported<'_>) -> Vec<u8> {
    let frames = exported.stacks.sites.iter().map(|site| Frame {
        name: site.name.clone(),
        file: site.file.clone(),
        line: (site.line > 0).then_some(site.line),
    });
    let metrics = [
        ("allocated", Metric::Allocated),
        ("live at the peak", Metric::Peak),
        ("live at the end", Metric::Live),
        ("promoted", Metric::Promoted),
    ];
    let file = File {
        schema: "https://www.speedscope.app/file-format-schema.json",
        exporter: concat!("heaptap ", env!("CARGO_PKG_VERSION")),
        name: exported.program(),
        active: 0,
        shared: Shared { frames: frames.collect() },
        profiles: metrics.map(|(name, metric)| profile(exported, name, metric)).into(),
    };
    let mut text = Vec::new();
    json::put(&mut text, &file);
    text.push(b'\n');
    text
}

fn profile(exported: &Exported<'_>, name: &'static str, metric: Metric) -> Profile {
    let (mut samples, mut weights) = (Vec::new(), Vec::new());
    for (sites, counts) in &exported.stacks.stacks {
        let bytes = exported.bytes(metric, counts);
        if bytes > 0.0 {
            samples.push(sites.iter().rev().copied().collect());
            weights.push(bytes);
        }
    }
    let all = weights.iter().sum();
    let (r#type, unit) = ("sampled", "bytes");
    Profile { r#type, name, unit, start_value: 0.0, end_value: all, samples, weights }
}
