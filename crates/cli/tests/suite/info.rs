//! `heaptap info`.

use heaptap_probes::Event;
use heaptap_trace::Format;
use serde_json::Value;

use crate::made_sidecar::{SidecarWriter, sidecar_of};
use crate::program::{Place, dump, heaptap, info};
use crate::traces::{PID, START, Writer, real, trace_info, workload};

#[test]
fn the_real_traces_have_the_counts_that_the_original_tool_finds() {
    // allocations, promotions, collections, locations, samples, frames, deepest
    let known: [(&str, [u64; 7]); 4] = [
        ("lists_and_sets.v1.ctf", [756, 216, 755, 22, 758, 780_843, 9982]),
        ("ocamlopt.v1.ctf", [84_270, 12_007, 78_758, 6356, 84_485, 9_810_710, 639]),
        ("ocamlopt.v2.ctf", [1676, 257, 1566, 1950, 1676, 194_241, 547]),
        ("ocamlopt.v3.ctf", [1676, 257, 1566, 1950, 1676, 194_241, 547]),
    ];
    for (name, [allocations, promotions, collections, locations, samples, frames, deepest]) in known
    {
        let Some(path) = real(name) else { return };
        let facts = info(&path);
        let events = &facts["events"];
        assert_eq!(events["allocations"], allocations, "{name}");
        assert_eq!(events["promotions"], promotions, "{name}");
        assert_eq!(events["collections"], collections, "{name}");
        assert_eq!(events["locations"], locations, "{name}");
        assert_eq!(events["samples"], samples, "{name}");
        assert_eq!(facts["depth"]["max"], deepest, "{name}");
        let mean = facts["depth"]["mean"].as_f64().unwrap();
        assert!((mean - frames as f64 / allocations as f64).abs() < 1e-9, "{name}: {mean}");
        assert_eq!(facts["host"], "tarski");
    }
}

#[test]
fn facts_are_those_of_the_trace_and_parts_add_up_to_the_file() {
    let place = Place::new();
    let trace = workload(Format::V3, 3, 4000, 1);
    let path = place.file("trace.ctf", &trace);
    let facts = info(&path);
    assert_eq!(facts["bytes"], trace.len());
    assert_eq!(facts["version"], 3);
    assert_eq!(facts["sample_rate"], 0.01);
    assert_eq!(facts["word_bits"], 64);
    assert_eq!(facts["executable"], "/usr/bin/secretive-program");
    assert_eq!(facts["context"], "customer 42");
    assert_eq!(facts["pid"], PID);
    assert_eq!(facts["start_unix_us"], START);
    let mut domains: Vec<u64> =
        facts["domains"].as_array().unwrap().iter().map(|d| d.as_u64().unwrap()).collect();
    domains.sort_unstable();
    assert_eq!(domains, [0, 1, 2]);
    let parts = facts["parts"].as_array().unwrap();
    let sum: u64 = parts[..7].iter().map(|part| part["bytes"].as_u64().unwrap()).sum();
    assert_eq!(sum, trace.len() as u64);
    assert_eq!(parts[7]["part"], "all");
    assert_eq!(parts[7]["bytes"], trace.len());
    let words = facts["events"]["samples"].as_f64().unwrap() / 0.01;
    assert!((facts["words"]["words"].as_f64().unwrap() - words).abs() < 1e-6 * words);
    assert!((facts["words"]["bytes"].as_f64().unwrap() - 8.0 * words).abs() < 1e-5 * words);
}

#[test]
fn the_duration_reaches_to_the_last_event_of_the_dump() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V3, 4, 3000, 2));
    let last = dump(&path)
        .iter()
        .map(|line| line.split(' ').next().unwrap().parse::<u64>().unwrap())
        .max();
    assert_eq!(info(&path)["duration_us"].as_u64(), last);
}

#[test]
fn the_text_shows_what_the_json_has() {
    let place = Place::new();
    let path = place.file("trace.ctf", &workload(Format::V2, 1, 2000, 3));
    let facts = info(&path);
    let text = heaptap("info", &[&path]).text(0);
    let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), String::from);
    for name in ["executable", "host", "runtime_params", "context", "pid"] {
        assert!(text.contains(&shown(&facts[name])), "{name} is not in {text}");
    }
    for name in ["allocations", "promotions", "collections", "packets", "samples"] {
        assert!(text.contains(&shown(&facts["events"][name])), "{name} is not in {text}");
    }
    for part in facts["parts"].as_array().unwrap() {
        assert!(text.contains(&shown(&part["bytes"])), "{part} is not in {text}");
    }
    assert!(text.contains("2020-09-13 12:26:40.123456 UTC"), "{text}");
    assert!(text.contains("MiB ±"), "{text}");
}

/// Time goes by for a program that allocates nothing.
#[test]
fn a_trace_without_samples_lasts_as_long_as_its_program() {
    let place = Place::new();
    let path = place.file("idle.ctf", &Writer::of(Format::V2, &trace_info()).finish());
    assert_eq!(info(&path)["duration_us"], 0);
    let mut sidecar = SidecarWriter::new(PID, "elsewhere");
    sidecar.time = 60_000_000_000;
    sidecar.add(Event::End);
    place.file("idle.ctf.probes", &sidecar.finish());
    let facts = info(&path);
    assert_eq!(facts["duration_us"], 60_000_000);
    assert_eq!(facts["end_unix_us"], START + 60_000_000);
    assert!(heaptap("info", &[&path]).text(0).contains("duration        1.0 min"));
    // That of another trace says nothing of this one.
    place.file("idle.ctf.probes", &sidecar_of(START - 1));
    assert_eq!(info(&path)["duration_us"], 0);
}
