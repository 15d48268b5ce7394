//! What is not known is not given as a number: no sample, incomplete traces, files of one process
//! that were written one after the other.

use std::path::{Path, PathBuf};

use heaptap_trace::{Block, Completion, Format, Source, TraceInfo};
use serde_json::Value;

use crate::program::{Place, heaptap};
use crate::traces::{PID, START, Sources, Writer, small_block, trace_info, workload};

fn json(call: &str, files: &[&Path]) -> Value {
    serde_json::from_str(&heaptap(&format!("{call} --json"), files).text(0)).unwrap()
}

/// A trace of no sample, at a rate.
fn without_samples(sample_rate: f64) -> Vec<u8> {
    Writer::of(Format::V2, &TraceInfo { sample_rate, ..trace_info() }).finish()
}

#[test]
fn no_sample_is_not_zero() {
    let place = Place::new();
    let none = place.file("none.ctf", &without_samples(1e-4));
    let text = heaptap("report", &[&none]).text(0);
    for line in ["allocated    less than 234.0 KiB (no sample)", "29956 words", "--rate 1 for more"]
    {
        assert!(text.contains(line), "`{line}` is not in: {text}");
    }
    assert!(!text.contains("0 bytes") && !text.contains("± 0"), "{text}");
    let totals = &json("report", &[&none])["totals"];
    for total in ["allocated", "external", "peak", "live", "live_external"] {
        assert!(totals[total]["error"].is_null(), "{total}: {totals}");
        assert_eq!(totals[total]["high"], 8.0 * 29_956.0, "{total}");
    }
    assert!(totals["promotion"]["error"].is_null(), "{totals}");
    let text = heaptap("info", &[&none]).text(0);
    assert!(text.contains("fewer than 29956 words, 234.0 KiB (no sample"), "{text}");
    let words = &json("info", &[&none])["words"];
    assert!(words["relative_error"].is_null(), "{words}");
    assert_eq!(words["high_words"], 29_956.0);
    let text = heaptap("top --once", &[&none]).text(0);
    assert!(text.contains("less than 234.0 KiB (no sample)"), "{text}");
    let text = heaptap("hot", &[&none]).text(0);
    assert!(text.contains("less than 234.0 KiB (no sample)"), "{text}");
    let text = heaptap("diff", &[&none, &none]).text(0);
    assert!(text.contains("less than 234.0 KiB (no sample) →"), "{text}");
    // At rate 1 nothing is nothing.
    let exact = place.file("exact.ctf", &without_samples(1.0));
    let text = heaptap("report", &[&exact]).text(0);
    assert!(text.contains("allocated    0 bytes ± 0 %"), "{text}");
}

#[test]
fn a_site_without_a_sample_is_not_zero_either() {
    let place = Place::new();
    let sites = |first: u64| {
        let mut writer = Writer::new(Format::V2);
        for _ in 0..200 {
            let block = Block { length: 9, samples: 3, source: Source::Minor };
            let id = writer.alloc(0, block, &[Sources::FIRST, Sources::FIRST + first]);
            writer.collect(0, id);
        }
        writer.finish()
    };
    let (one, other) = (place.file("one.ctf", &sites(2)), place.file("other.ctf", &sites(4)));
    let text = heaptap("diff", &[&one, &other]).text(0);
    // At a rate of 1 %, 299 words have a sample with a probability of 95 %.
    assert_eq!(text.matches("<2.3 KiB").count(), 2, "{text}");
    let changes = &json("diff", &[&one, &other])["changes"];
    for change in changes.as_array().unwrap() {
        let side = if change["kind"] == "new" { "before" } else { "after" };
        assert!(change[side]["error"].is_null(), "{change}");
        assert_eq!(change[side]["high"], 8.0 * 299.0);
    }
    // All of it was collected.
    let text = heaptap("report", &[&one]).text(0);
    assert!(text.contains("live at end  less than 2.3 KiB (no sample)"), "{text}");
}

/// A trace whose program was killed.
fn killed() -> Vec<u8> {
    let mut trace = workload(Format::V2, 1, 500, 71);
    let at = Completion::OFFSET as usize;
    trace[at..at + 4].copy_from_slice(&Completion::Unfinished.bytes());
    trace
}

#[test]
fn a_gate_refuses_incomplete_traces() {
    let place = Place::new();
    let whole_bytes = workload(Format::V2, 1, 20_000, 70);
    let whole = place.file("whole.ctf", &whole_bytes);
    let cut = place.file("cut.ctf", &whole_bytes[..whole_bytes.len() / 3]);
    let killed = place.file("killed.ctf", &killed());
    for (before, after, name) in
        [(&whole, &cut, "cut.ctf"), (&cut, &whole, "cut.ctf"), (&whole, &killed, "killed.ctf")]
    {
        let text = heaptap("diff --fail-over 5%", &[before, after]).text(4);
        assert!(text.contains("not decided: ") && text.contains(name), "{text}");
        assert!(!text.contains("passed"), "{text}");
        let gate = heaptap("diff --json --fail-over 5%", &[before, after]).text(4);
        let gate = serde_json::from_str::<Value>(&gate).unwrap()["gate"].take();
        assert_eq!((&gate["passed"], &gate["outcome"]), (&false.into(), &"incomplete".into()));
    }
    let text = heaptap("diff --fail-over 5% --allow-incomplete", &[&whole, &killed]).text(0);
    assert!(text.contains("passed: -"), "{text}");
    // One of several traces.
    let files: [&Path; 4] = [&whole, Path::new("--to"), &whole, &killed];
    let text = heaptap("diff --fail-over 500%", &files).text(4);
    assert!(text.contains("killed.ctf: the trace is cut short"), "{text}");
    heaptap("diff --allow-incomplete", &[&whole, &whole]).says(2, &["--fail-over"]);
}

#[test]
fn a_gate_says_why_it_passes() {
    let place = Place::new();
    let blocks = |count: u64| {
        let mut writer = Writer::new(Format::V2);
        (0..count).for_each(|_| _ = writer.small());
        writer.finish()
    };
    let (before, after) =
        (place.file("before.ctf", &blocks(1000)), place.file("after.ctf", &blocks(1040)));
    let text = heaptap("diff --fail-over 2%", &[&before, &after]).text(0);
    assert!(text.contains("passed: 4.0 % ± 4.6 % of growth, 2.0 % allowed; "), "{text}");
    assert!(text.contains("within the sampling error"), "{text}");
    let text = heaptap("diff --fail-over 5%", &[&before, &after]).text(0);
    assert!(text.ends_with("of growth, 5.0 % allowed\n"), "{text}");
}

/// Two files of one process: 100 blocks, then 150, of which 30 are collected.
fn rotated(place: &Place) -> (PathBuf, PathBuf) {
    let info = TraceInfo { sample_rate: 1.0, ..trace_info() };
    let mut first = Writer::of(Format::V2, &info);
    (0..100).for_each(|_| _ = first.small());
    let later = TraceInfo { start_time: START + 1_000_000, ..info };
    let mut second = Writer::of(Format::V2, &later);
    let ids: Vec<u64> = (0..150).map(|_| second.small()).collect();
    ids[..30].iter().for_each(|&id| second.collect(0, id));
    (place.file("1.ctf", &first.finish()), place.file("2.ctf", &second.finish()))
}

#[test]
fn files_of_one_process_give_bounds() {
    let place = Place::new();
    let (first, second) = rotated(&place);
    let run = heaptap("report --metric live", &[&first, &second]);
    run.says(0, &["1.ctf: its process, ", &PID.to_string(), "known within bounds only"]);
    let text = run.text(0);
    // A sample is a word of eight bytes. None to all of the first 100 blocks are alive.
    for line in [
        "allocated    2.0 KiB ± 0 %",
        "peak live    between 1.2 KiB and 2.0 KiB",
        "live at end  between 960 bytes and 1.7 KiB",
        "lifetimes    not known",
        "files of one process",
    ] {
        assert!(text.contains(line), "`{line}` is not in: {text}");
    }
    assert!(!text.contains("live at end  1.7 KiB ± 0 %"), "{text}");
    let report = json("report --metric live", &[&first, &second]);
    assert_eq!(report["carried_over"], true);
    let (totals, row) = (&report["totals"], &report["table"]["rows"][0]);
    for size in [&totals["live"], row] {
        let bounds = (&size["low"], &size["high"], &size["error"]);
        assert_eq!(bounds, (&960.0.into(), &1760.0.into(), &Value::Null), "{report}");
    }
    let leaks = json("leaks", &[&first, &second]);
    assert_eq!(leaks["conclusive"], false);
    assert!(leaks["verdict"].as_str().unwrap().contains("parts of one process"), "{leaks}");
    let to: [&Path; 4] = [&first, &second, Path::new("--to"), &second];
    let text = heaptap("diff --metric live --fail-over 5%", &to).text(4);
    assert!(text.contains("not decided"), "{text}");
    heaptap("diff --fail-over 5%", &to).text(0);
}

#[test]
fn files_of_other_processes_are_summed_up() {
    let place = Place::new();
    let file = |name: &str, pid, start_time| {
        let info = TraceInfo { pid, start_time, sample_rate: 1.0, ..trace_info() };
        let mut writer = Writer::of(Format::V2, &info);
        (0..100).for_each(|_| _ = writer.small());
        place.file(name, &writer.finish())
    };
    let (one, other) = (file("1.ctf", 7, START), file("2.ctf", 8, START + 1_000_000));
    let run = heaptap("report", &[&one, &other]);
    assert_eq!(run.err, "");
    assert!(run.text(0).contains("live at end  1.6 KiB ± 0 %"), "{}", run.text(0));
}

#[test]
fn promoted_blocks_are_in_the_major_heap_and_totals_are_split() {
    let place = Place::new();
    let mut writer = Writer::of(Format::V2, &TraceInfo { sample_rate: 1.0, ..trace_info() });
    let ids: Vec<u64> = (0..10).map(|_| writer.small()).collect();
    ids[..6].iter().for_each(|&id| writer.promote(0, id));
    let outside = Block { source: Source::External, ..small_block() };
    (0..3).for_each(|_| _ = writer.alloc(0, outside, &[Sources::FIRST]));
    let trace = place.file("trace.ctf", &writer.finish());
    let samples = |metric: &str| -> Vec<(String, u64)> {
        let report = json(&format!("report --by source --metric {metric}"), &[&trace]);
        let rows = report["table"]["rows"].as_array().unwrap().iter();
        rows.map(|row| (row["name"].as_str().unwrap().to_owned(), row["samples"].as_u64().unwrap()))
            .collect()
    };
    let rows = |rows: &[(&str, u64)]| -> Vec<(String, u64)> {
        rows.iter().map(|&(name, samples)| (name.to_owned(), samples)).collect()
    };
    let external = ("external: outside the heap", 3);
    assert_eq!(samples("allocated"), rows(&[("minor heap", 10), external]));
    assert_eq!(samples("live"), rows(&[("major heap", 6), ("minor heap", 4), external]));
    assert_eq!(samples("peak"), rows(&[("major heap", 6), ("minor heap", 4), external]));
    let text = heaptap("report", &[&trace]).text(0);
    for line in [
        "104 bytes ± 0 % at 19 µs, of it 24 bytes ± 0 % outside the heap",
        "live at end  104 bytes ± 0 %, of it 24 bytes ± 0 % outside the heap and 32 bytes ± 0 % that",
    ] {
        assert!(text.contains(line), "`{line}` is not in: {text}");
    }
}
