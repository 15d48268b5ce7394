//! Labels and domains: what the program was doing, and where.
//!
//! A label is the outermost frame of a stack, in a file called `label` without a
//! line (`src/tracer/locate.rs` writes it so).

use std::collections::BTreeMap;
use std::path::Path;

use heaptap_trace::{Block, Code, Encoder, Format, Frames, Locate, Location, LocationList, Source};
use serde_json::Value;

use crate::program::{Place, heaptap};
use crate::traces::{RATE, Sources, trace_info};

pub(crate) const LABELS: [&str; 3] = ["login", "report, \"monthly\"", "browse"];
const FIRST_LABEL: Code = 0x100;
/// A function in a file that happens to be called `label`.
const IMPOSTOR: Code = 0x200;

struct Labelled;

impl Locate for Labelled {
    fn locate(&mut self, code: Code, list: &mut LocationList) {
        let label = (code.wrapping_sub(FIRST_LABEL)) as usize;
        let (definition, line) = match (LABELS.get(label), code) {
            (Some(name), _) => (*name, 0),
            (None, IMPOSTOR) => ("Label.impostor", 12),
            _ => return Sources.locate(code, list),
        };
        list.add(Location {
            file: b"label",
            line,
            start_char: 0,
            end_char: 0,
            definition: definition.as_bytes(),
        });
    }
}

/// What was written: samples by label and domain.
pub(crate) type Written = BTreeMap<(Option<usize>, u16), u64>;

/// A program of two domains that does something under each label, and under none.
pub(crate) fn trace() -> (Vec<u8>, Written) {
    let info = trace_info();
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &info).unwrap();
    let mut written = Written::new();
    for turn in 0..4000_u64 {
        let domain = (turn % 3 / 2) as u16;
        let label = [Some(0), Some(1), Some(1), Some(2), None, None, None][(turn % 7) as usize];
        let outermost = label.map_or(IMPOSTOR, |label| FIRST_LABEL + label as Code);
        let stack = [outermost, Sources::FIRST, Sources::FIRST + 2 * (turn % 5)];
        let samples = 1 + turn % 4;
        let block = Block { length: 5, samples, source: Source::Minor };
        let time = info.start_time + 10 * turn;
        let frames = Frames::Whole(&stack);
        let id = encoder.domain(domain).alloc(time, block, frames, &mut Labelled).unwrap();
        if turn % 2 == 0 {
            encoder.domain(domain).collect(time + 1, id, &mut Labelled).unwrap();
        }
        *written.entry((label, domain)).or_default() += samples;
    }
    (encoder.finish(&mut Labelled).unwrap(), written)
}

fn json(call: &str, path: &Path) -> Value {
    serde_json::from_str(&heaptap(&format!("{call} --json"), &[path]).text(0)).unwrap()
}

/// Samples by name of the row, from the JSON.
fn rows(call: &str, path: &Path) -> BTreeMap<String, u64> {
    let report = json(call, path);
    let rows = report["table"]["rows"].as_array().unwrap();
    let row =
        |row: &Value| (row["name"].as_str().unwrap().to_owned(), row["samples"].as_u64().unwrap());
    rows.iter().map(row).collect()
}

fn sum(written: &Written, of: impl Fn(Option<usize>, u16) -> bool) -> u64 {
    written.iter().filter(|&(&(label, domain), _)| of(label, domain)).map(|(_, n)| n).sum()
}

#[test]
fn reports_group_by_label_and_by_domain() {
    let place = Place::new();
    let (trace, written) = trace();
    let path = place.file("trace.ctf", &trace);
    let mut expected: BTreeMap<String, u64> = (0..LABELS.len())
        .map(|label| (LABELS[label].to_owned(), sum(&written, |l, _| l == Some(label))))
        .collect();
    expected.insert("(no label)".into(), sum(&written, |label, _| label.is_none()));
    assert_eq!(rows("report --by label", &path), expected);
    let domains: BTreeMap<String, u64> =
        (0..2).map(|d| (format!("domain {d}"), sum(&written, |_, domain| domain == d))).collect();
    assert_eq!(rows("report --by domain", &path), domains);
    // The other metrics are grouped in the same way, and nothing is lost.
    for metric in ["live", "peak"] {
        for by in ["label", "domain"] {
            let grouped: u64 =
                rows(&format!("report --by {by} --metric {metric}"), &path).values().sum();
            let total = json(&format!("report --metric {metric}"), &path);
            assert_eq!(total["table"]["total"]["samples"], grouped);
        }
    }
}

#[test]
fn the_table_and_the_csv_have_the_same_groups() {
    let place = Place::new();
    let path = place.file("trace.ctf", &trace().0);
    for by in ["label", "domain"] {
        let call = format!("report --by {by}");
        let text = heaptap(&call, &[&path]).text(0);
        assert!(text.contains(&format!("allocated by {by}")), "{text}");
        let csv = heaptap(&format!("{call} --csv"), &[&path]).text(0);
        let report = json(&call, &path);
        let rows = report["table"]["rows"].as_array().unwrap();
        assert!(rows.len() > 1 && csv.lines().count() == rows.len() + 1, "{csv}");
        for (row, line) in rows.iter().zip(csv.lines().skip(1)) {
            let name = row["name"].as_str().unwrap();
            assert!(text.lines().any(|line| line.trim_end().ends_with(name)), "{name}: {text}");
            let quoted = match name.contains(',') {
                true => format!("\"{}\"", name.replace('"', "\"\"")),
                false => name.to_owned(),
            };
            let start =
                format!("{quoted},,,,,{},{},", row["samples"], row["bytes"].as_f64().unwrap());
            assert!(line.starts_with(&start), "{line} for {start}");
        }
    }
}

#[test]
fn labels_and_domains_select_blocks_for_every_verb() {
    let place = Place::new();
    let (trace, written) = trace();
    let path = place.file("trace.ctf", &trace);
    let samples = |options: &str| {
        json(&format!("report {options}"), &path)["totals"]["samples"].as_u64().unwrap()
    };
    let login = sum(&written, |label, _| label == Some(0));
    assert_eq!(samples("--label ^login$"), login);
    // One of several; and a part of a name is enough.
    let both = sum(&written, |label, _| label == Some(0) || label == Some(2));
    assert_eq!(samples("--label login --label rows"), both);
    assert_eq!(samples("--label o"), sum(&written, |label, _| label.is_some()));
    assert_eq!(samples("--label impostor"), 0);
    let one = sum(&written, |label, domain| label == Some(0) && domain == 1);
    assert!(one > 0);
    assert_eq!(samples("--label login --domain 1"), one);
    assert_eq!(samples("--label login --domain 1 --by domain"), one);
    assert_eq!(samples("--label login --filter function_2_0$ --by label"), {
        let filtered = samples("--label login --filter function_2_0$");
        assert!(filtered > 0 && filtered < login);
        filtered
    });
    // A label is a frame like others: filters see it.
    assert_eq!(samples("--filter ^login$"), login);
    let bytes = login as f64 * 8.0 / RATE;
    assert_eq!(json("hot --label ^login$", &path)["total"]["bytes"].as_f64(), Some(bytes));
    let folded = heaptap("export --to folded --label ^login$", &[&path]).text(0);
    assert!(folded.lines().all(|line| line.starts_with("login;")), "{folded}");
    let exported: f64 =
        folded.lines().map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum();
    assert!((exported - bytes).abs() < 1.0);
    let leaks = heaptap("leaks --label nothing", &[&path]).text(0);
    assert!(leaks.contains("cannot tell"), "{leaks}");
}

#[test]
fn groups_are_compared_and_have_no_callers() {
    let place = Place::new();
    let path = place.file("trace.ctf", &trace().0);
    let other = place.path("other.ctf");
    heaptap("thin --rate 0.005 --seed 3", &[&path, &other]).text(0);
    for by in ["label", "domain"] {
        let call = format!("diff --by {by} --json");
        let found: Value = serde_json::from_str(&heaptap(&call, &[&path, &other]).text(0)).unwrap();
        assert_eq!(found["by"], by);
        let groups = if by == "label" { 4 } else { 2 };
        assert_eq!(found["within_chance"], groups, "{found}");
        let refused = ["needs --by function", "--label, --domain or --source"];
        heaptap(&format!("hot --by {by}"), &[&path]).says(2, &refused);
        heaptap(&format!("report --callers 1 --by {by}"), &[&path]).says(2, &refused);
    }
}

#[test]
fn anonymous_labels_have_the_figures_of_the_labels() {
    let place = Place::new();
    let path = place.file("trace.ctf", &trace().0);
    let public = place.path("public.ctf");
    for options in ["", "--drop-lines", "--keep-times"] {
        heaptap(&format!("anonymise {options}"), &[&path, &public]).text(0);
        let rows = |path: &Path| {
            let mut report = json("report --by label --top 0", path);
            report["table"]["rows"].take().as_array().unwrap().clone()
        };
        let (before, after) = (rows(&path), rows(&public));
        assert_eq!(before.len(), 4);
        let mut names = Vec::new();
        for (mut before, mut after) in before.into_iter().zip(after) {
            let [old, new] = [&mut before, &mut after].map(|row| row["name"].take());
            assert_eq!(before, after, "{old} became {new}");
            names.push((old, new.as_str().unwrap().to_owned()));
        }
        for (old, new) in &names {
            let expected = if old == "(no label)" { "(no label)" } else { "label" };
            assert!(new.starts_with(expected), "{old} became {new}");
        }
        let distinct: std::collections::BTreeSet<_> = names.iter().map(|(_, new)| new).collect();
        assert_eq!(distinct.len(), 4);
        let bytes = std::fs::read(&public).unwrap();
        for label in LABELS {
            assert!(!bytes.windows(label.len()).any(|part| part == label.as_bytes()), "{label}");
        }
    }
}
