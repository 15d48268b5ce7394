//! The rule of agreement: what the viewer's page answers is what the command line
//! prints, for real traces and for made ones, with filters and without.

use std::path::{Path, PathBuf};

use heaptap_query::Engine;
use heaptap_trace::Format;
use serde_json::{Value, json};

use crate::export::archives;
use crate::labels;
use crate::program::{Place, heaptap};
use crate::traces::{real, workload};

/// Filters of the command line, and of a page.
pub(crate) fn filters() -> Vec<(&'static str, Value)> {
    vec![
        ("", json!({})),
        ("--filter a --exclude z", json!({ "include": ["a"], "exclude": ["z"] })),
        ("--min-size 32 --max-size 4096", json!({ "size": [32, 4096] })),
        ("--min-lifetime 1ms", json!({ "lifetime": [1000, null] })),
        ("--domain 0", json!({ "domains": [0] })),
        ("--source minor", json!({ "sources": ["minor"] })),
        ("--since 2ms --until 60ms", json!({ "time": [2000, 60_000] })),
    ]
}

/// What the command line prints as JSON.
pub(crate) fn printed(call: &str, files: &[&Path]) -> Value {
    serde_json::from_str(&heaptap(&format!("{call} --json"), files).text(0)).unwrap()
}

/// What a page answers, without what only a page says.
fn answered(engine: &mut Engine, request: &Value) -> Value {
    let mut answer: Value =
        serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap();
    assert!(answer["error"].is_null(), "{request}: {answer}");
    let exact = answer.as_object_mut().and_then(|answer| answer.remove("exact"));
    assert_eq!(exact, Some(Value::Bool(true)), "{request}");
    answer
}

/// A page of these traces, as `heaptap export --to html` writes it with these options.
fn engine_with(options: &str, files: &[&Path], place: &Place) -> Engine {
    let to = place.path("page.html");
    heaptap(&format!("export --to html {options} -o {}", to.display()), files).text(0);
    let mut engine = Engine::default();
    for archive in archives(&std::fs::read_to_string(to).unwrap()) {
        engine.add(archive);
    }
    engine
}

fn engine_of(files: &[&Path], place: &Place) -> Engine {
    engine_with("", files, place)
}

fn traces(place: &Place) -> Vec<PathBuf> {
    let names = ["lists_and_sets.v1.ctf", "made-threads.v2.ctf", "made-trees.v3.ctf"];
    let mut traces: Vec<PathBuf> = names.into_iter().filter_map(real).collect();
    for seed in [1, 2] {
        let name = format!("made{seed}.ctf");
        traces.push(place.file(&name, &workload(Format::V3, 3, 2000, seed)));
    }
    traces.push(place.file("labelled.ctf", &labels::trace().0));
    traces
}

pub(crate) const ROWS: [&str; 7] =
    ["function", "location", "file", "module", "label", "domain", "source"];
const METRICS: [&str; 5] = ["allocated", "promoted", "peak", "live", "survived"];

/// Fails unless two figures are the same. Names of traces differ by their directory.
#[track_caller]
pub(crate) fn assert_same(mut answer: Value, mut expected: Value, what: &str) {
    for figures in [&mut answer, &mut expected] {
        for name in ["trace", "before", "after"] {
            figures.as_object_mut().and_then(|figures| figures.remove(name));
        }
        // The time line of a leak is the page's alone.
        for leak in figures["leaks"].as_array_mut().into_iter().flatten() {
            if let Some(leak) = leak.as_object_mut() {
                leak.remove("growth");
            }
        }
    }
    assert_eq!(answer, expected, "{what}");
}

#[test]
fn a_page_answers_what_report_prints() {
    let place = Place::new();
    for trace in traces(&place) {
        let mut engine = engine_of(&[&trace], &place);
        for (options, filter) in filters() {
            for metric in METRICS {
                for by in ROWS.into_iter().take(if metric == "allocated" { 7 } else { 1 }) {
                    let call = format!("report --top 0 --by {by} --metric {metric} {options}");
                    let request =
                        json!({ "q": "report", "filter": filter, "metric": metric, "by": by });
                    let what = format!("{}: {call}", trace.display());
                    assert_same(answered(&mut engine, &request), printed(&call, &[&trace]), &what);
                }
            }
            let call = format!("report --top 5 --at 3ms --callers 3 {options}");
            let request = json!({ "q": "report", "filter": filter, "metric": "at", "at": 3000,
                "top": 5, "callers": 3 });
            assert_same(answered(&mut engine, &request), printed(&call, &[&trace]), &call);
            let call = format!("hot --metric live {options}");
            let request = json!({ "q": "hot", "filter": filter, "metric": "live" });
            assert_same(answered(&mut engine, &request), printed(&call, &[&trace]), &call);
            let request = json!({ "q": "leaks", "filter": filter });
            let expected = printed(&format!("leaks {options}"), &[&trace]);
            assert_same(answered(&mut engine, &request), expected, "leaks");
        }
    }
}

#[test]
fn a_page_by_own_code_answers_what_report_prints() {
    let place = Place::new();
    for trace in traces(&place) {
        let mut engine = engine_of(&[&trace], &place);
        for (options, filter) in filters() {
            let options = format!("--sites own {options}");
            for by in &ROWS[..4] {
                let call = format!("report --top 0 --by {by} --metric live {options}");
                let request = json!({ "q": "report", "filter": filter, "metric": "live", "by": by,
                    "sites": "own" });
                assert_same(answered(&mut engine, &request), printed(&call, &[&trace]), &call);
                // Each row of the table is as large in the legend, and where it is opened.
                let report = answered(&mut engine, &request);
                let request = json!({ "q": "timeline", "filter": filter, "metric": "live",
                    "by": by, "sites": "own", "top": 5 });
                assert_legend(&answered(&mut engine, &request), &report, &call);
                if let Some(row) = report["table"]["rows"].get(0) {
                    let request = json!({ "q": "site", "filter": filter, "metric": "live",
                        "by": by, "sites": "own", "site": row });
                    let site = answered(&mut engine, &request);
                    assert_eq!(site["sum"]["samples"], row["samples"], "{call}: {row}");
                }
            }
            let call = format!("report --top 5 --callers 3 {options}");
            let request = json!({ "q": "report", "filter": filter, "metric": "allocated",
                "top": 5, "callers": 3, "sites": "own" });
            assert_same(answered(&mut engine, &request), printed(&call, &[&trace]), &call);
            let request = json!({ "q": "leaks", "filter": filter, "sites": "own" });
            let expected = printed(&format!("leaks {options}"), &[&trace]);
            assert_same(answered(&mut engine, &request), expected, "leaks of own code");
        }
    }
}

/// A page with few of the blocks: what needs no table of blocks is what the reading
/// counted, by every kind of row.
#[test]
fn a_thinned_page_without_a_filter_answers_what_report_prints() {
    let place = Place::new();
    for trace in traces(&place) {
        let files: &[&Path] = &[&trace];
        let mut engine = engine_with("--blocks 200", files, &place);
        let info: Value =
            serde_json::from_str(&engine.query(br#"{"q":"info","trace":0}"#)).unwrap();
        assert!(info["blocks_one_in"].as_u64() > Some(1), "{info}");
        for (metric, by) in METRICS.into_iter().flat_map(|metric| ROWS.map(|by| (metric, by))) {
            let call = format!("report --top 0 --by {by} --metric {metric}");
            let request = json!({ "q": "report", "metric": metric, "by": by });
            let expected = printed(&call, files);
            let legend = json!({ "q": "timeline", "metric": metric, "by": by, "top": 5 });
            assert_legend(&answered(&mut engine, &legend), &expected, &call);
            assert_same(answered(&mut engine, &request), expected, &call);
        }
        let request = json!({ "q": "report", "metric": "peak", "top": 5, "callers": 3 });
        let call = "report --top 5 --metric peak --callers 3";
        assert_same(answered(&mut engine, &request), printed(call, files), call);
        let request = json!({ "q": "hot", "metric": "peak" });
        assert_same(answered(&mut engine, &request), printed("hot --metric peak", files), "hot");
        assert_same(
            answered(&mut engine, &json!({ "q": "leaks" })),
            printed("leaks", files),
            "leaks",
        );
        assert_drill_down(&mut engine, files);

        // No reading can count what is alive at every time: the error says so.
        let request = json!({ "q": "report", "metric": "at", "at": 3000, "by": "source" });
        let answer: Value =
            serde_json::from_str(&engine.query(request.to_string().as_bytes())).unwrap();
        assert_eq!(answer["exact"], false);
        let expected = printed("report --at 3ms --by source", files);
        let (rough, exact) = (&answer["table"]["total"], &expected["table"]["total"]);
        let number = |size: &Value, name: &str| size[name].as_f64().unwrap();
        let width = |size: &Value| number(size, "high") - number(size, "low");
        assert!(width(rough) > 2.0 * width(exact), "{rough} for {exact}");
        let truth = number(exact, "bytes");
        assert!(number(rough, "low") <= truth && truth <= number(rough, "high"), "{rough}");
    }
}

/// The sums beside a time line are those of the table.
fn assert_legend(timeline: &Value, report: &Value, call: &str) {
    let series = timeline["series"].as_array().unwrap();
    let rows = report["table"]["rows"].as_array().unwrap();
    assert_eq!(series.len(), rows.len().min(5), "{call}");
    for (series, row) in series.iter().zip(rows) {
        assert_eq!(series["site"]["name"], row["name"], "{call}");
        for figure in ["samples", "bytes", "error", "low", "high"] {
            assert_eq!(series["sum"][figure], row[figure], "{call}: {figure}");
        }
    }
    assert_eq!(timeline["peak"], report["totals"]["peak"]);
    let others: u64 = rows.iter().skip(5).map(|row| row["samples"].as_u64().unwrap()).sum();
    assert_eq!(timeline["others"]["sum"]["samples"], others, "{call}");
}

/// The functions of a module have the sums of the module.
fn assert_drill_down(engine: &mut Engine, files: &[&Path]) {
    let modules = printed("report --by module --metric peak --top 3", files);
    for module in modules["table"]["rows"].as_array().unwrap() {
        let within = json!({ "by": "module", "name": module["name"] });
        let request = json!({ "q": "timeline", "metric": "peak", "by": "function", "top": 3,
            "within": within });
        let answer = answered(engine, &request);
        let samples = |part: &Value| part["sum"]["samples"].as_u64().unwrap();
        let series: u64 = answer["series"].as_array().unwrap().iter().map(samples).sum();
        assert_eq!(series + samples(&answer["others"]), module["samples"].as_u64().unwrap());
    }
}

/// A directory is one trace, merged by time. Its processes end one after the other.
#[test]
fn a_page_of_a_directory_answers_what_report_prints() {
    let place = Place::new();
    let directory = place.path("traces");
    std::fs::create_dir(&directory).unwrap();
    for (number, allocations) in [900, 300, 1500, 300].into_iter().enumerate() {
        let trace = workload(Format::V3, 1 + number as u16, allocations, 40 + number as u64);
        place.file(&format!("traces/{number}.ctf"), &trace);
    }
    let files: &[&Path] = &[&directory];
    let mut engine = engine_of(files, &place);
    for (options, filter) in filters() {
        for (by, metric) in ROWS.into_iter().zip(METRICS.iter().cycle()) {
            let call = format!("report --top 0 --by {by} --metric {metric} {options}");
            let request = json!({ "q": "report", "filter": filter, "metric": metric, "by": by });
            assert_same(answered(&mut engine, &request), printed(&call, files), &call);
        }
        let call = format!("report --top 5 --at 40ms --callers 3 {options}");
        let request = json!({ "q": "report", "filter": filter, "metric": "at", "at": 40_000,
            "top": 5, "callers": 3 });
        assert_same(answered(&mut engine, &request), printed(&call, files), &call);
        let request = json!({ "q": "leaks", "filter": filter });
        assert_same(
            answered(&mut engine, &request),
            printed(&format!("leaks {options}"), files),
            "",
        );
        let request = json!({ "q": "hot", "filter": filter, "metric": "live" });
        let call = format!("hot --metric live {options}");
        assert_same(answered(&mut engine, &request), printed(&call, files), &call);
        assert_adds_up(&mut engine, &filter);
    }
    let mut thinned = engine_with("--blocks 200", files, &place);
    for (metric, by) in METRICS.into_iter().flat_map(|metric| ROWS.map(|by| (metric, by))) {
        let call = format!("report --top 0 --by {by} --metric {metric}");
        let request = json!({ "q": "report", "metric": metric, "by": by });
        assert_same(answered(&mut thinned, &request), printed(&call, files), &call);
    }
}

#[test]
fn a_page_of_two_traces_answers_what_diff_prints() {
    let place = Place::new();
    let traces = traces(&place);
    let [.., one, other] = &traces[..] else { panic!("too few traces") };
    let mut engine = engine_of(&[one, other], &place);
    for (options, filter) in filters() {
        for by in ["function", "module"] {
            let call = format!("diff --top 0 --by {by} --metric peak {options}");
            let request = json!({ "q": "diff", "before": 0, "after": 1, "filter": filter,
                "metric": "peak", "by": by });
            assert_same(answered(&mut engine, &request), printed(&call, &[one, other]), &call);
        }
    }
}

/// The cells of a call tree, the rows of a time line and the lines of a file add up to
/// what the table says.
#[test]
fn views_of_a_page_add_up() {
    let place = Place::new();
    for trace in traces(&place) {
        let mut engine = engine_of(&[&trace], &place);
        for (_, filter) in filters() {
            let total = answered(&mut engine, &json!({ "q": "report", "filter": filter }));
            let total = total["table"]["total"]["samples"].as_u64().unwrap();
            for invert in [false, true] {
                let request = json!({ "q": "tree", "filter": filter, "invert": invert,
                    "min_share": 0.01 });
                let tree = answered(&mut engine, &request);
                let numbers = |name: &str| -> Vec<u64> {
                    let column = tree["cells"][name].as_array().unwrap();
                    column.iter().map(|number| number.as_u64().unwrap()).collect()
                };
                let (parents, samples) = (numbers("parent"), numbers("samples"));
                let own = numbers("self");
                assert_eq!(samples[0], total, "invert {invert}");
                let mut below = own.clone();
                for cell in 1..samples.len() {
                    below[parents[cell] as usize] += samples[cell];
                }
                for cell in 0..samples.len() {
                    let is_joined = tree["cells"]["site"][cell] == -1 && cell > 0;
                    let leaf = below[cell] == own[cell];
                    assert!(is_joined || leaf || below[cell] == samples[cell], "cell {cell}");
                }
            }
            assert_adds_up(&mut engine, &filter);
        }
    }
}

/// The rows of a time line add up to its total.
fn assert_adds_up(engine: &mut Engine, filter: &Value) {
    let request = json!({ "q": "timeline", "filter": filter, "by": "module", "top": 3,
        "points": 50 });
    let line = answered(engine, &request);
    let bytes = |values: &Value| -> f64 {
        values.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).sum()
    };
    for name in ["live", "allocated"] {
        let series = line["series"].as_array().unwrap().iter();
        let parts =
            series.map(|series| bytes(&series[name])).sum::<f64>() + bytes(&line["others"][name]);
        let all = bytes(&line["total"][name]);
        assert!((parts - all).abs() <= 1e-9 * all.max(1.0), "{name}: {parts} of {all}");
    }
}
