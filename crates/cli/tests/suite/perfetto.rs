//! `export --to perfetto`, read by Perfetto's own schema. What its trace processor would show must
//! be what `report` says, and what the sidecar says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use heaptap_trace::Format;
use serde_json::Value;

use crate::consumers::{python_package, text};
use crate::made_sidecar::{HOSTILE, TICKS, sidecar, sidecar_of};
use crate::program::{Place, heaptap};
use crate::traces::{START, real, trace_info, workload, workload_of};

/// The export of a trace as the schema reads it.
fn exported(package: &Path, trace: &Path, options: &str) -> Value {
    let place = Place::new();
    let out = place.path("out.pftrace");
    let call = format!("export --to perfetto --no-fold {options} -o {}", out.display());
    assert_eq!(heaptap(&call, &[trace]).text(0), "");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/consumers/perfetto_trace.py");
    let output = Command::new("python3").arg(script).args([package, &out]).output().unwrap();
    serde_json::from_str(&text(&output)).unwrap()
}

fn report(trace: &Path, options: &str) -> Value {
    let call = format!("report --json --top 0 {options}");
    serde_json::from_str(&heaptap(&call, &[trace]).text(0)).unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The points of a counter.
#[track_caller]
fn counter<'a>(file: &'a Value, name: &str) -> &'a [Value] {
    let points = file["counters"][name].as_array();
    points.unwrap_or_else(|| panic!("no counter {name}"))
}

#[track_caller]
fn last(file: &Value, name: &str) -> f64 {
    number(&counter(file, name).last().unwrap()[1])
}

fn site(name: &Value, file: &Value, line: &Value) -> String {
    match line.as_u64().unwrap_or(0) {
        0 => name.as_str().unwrap().to_owned(),
        line => format!("{} ({}:{line})", name.as_str().unwrap(), file.as_str().unwrap()),
    }
}

/// Fails unless the figures of the export are those of the report.
fn assert_figures(package: &Path, trace: &Path) {
    let file = exported(package, trace, "");
    let totals = report(trace, "")["totals"].clone();
    let (allocated, live) =
        (number(&totals["allocated"]["bytes"]), number(&totals["live"]["bytes"]));
    let samples = file["samples"].as_array().unwrap();
    // Each stack is rounded.
    let close = |what: &str, found: f64, expected: f64| {
        let most = samples.len() as f64 + 1.0;
        assert!((found - expected).abs() <= most, "{what}: {found}, not {expected}");
    };
    let sum = |field: &str| samples.iter().map(|sample| number(&sample[field])).sum::<f64>();
    close("allocated", sum("allocated"), allocated);
    close("live", sum("allocated") - sum("freed"), live);
    close("allocated by the counter", last(&file, "allocated"), allocated);
    close("live by the counter", last(&file, "live size"), live);
    assert!(sum("freed_blocks") <= sum("blocks"));

    // By the innermost frame, which comes last.
    let mut by_site: BTreeMap<String, [f64; 2]> = BTreeMap::new();
    for sample in samples {
        let frame = sample["stack"].as_array().unwrap().last().unwrap();
        let sums = by_site.entry(site(&frame["name"], &frame["file"], &frame["line"])).or_default();
        sums[0] += number(&sample["allocated"]);
        sums[1] += number(&sample["allocated"]) - number(&sample["freed"]);
    }
    for (metric, at, group) in
        [("allocated", 0, "allocated by site"), ("live", 1, "live size by site")]
    {
        let mut rows: BTreeMap<String, f64> = BTreeMap::new();
        let table = report(trace, &format!("--metric {metric} --by location"))["table"].clone();
        for row in table["rows"].as_array().unwrap() {
            let name = site(&row["name"], &row["file"], &row["line"]);
            *rows.entry(name).or_default() += number(&row["bytes"]);
        }
        let known = rows.iter().filter(|(name, _)| !name.starts_with("(unknown"));
        for (name, &bytes) in known {
            close(name, by_site.get(name).map_or(0.0, |sums| sums[at]), bytes);
        }
        let counters = file["counters"].as_object().unwrap().keys();
        let counters: Vec<&String> = counters.filter(|name| name.starts_with(group)).collect();
        assert!((1..=10).contains(&counters.len()), "{counters:?}");
        for name in counters {
            let name = name[group.len()..].strip_prefix('/').unwrap();
            if !name.starts_with("(unknown") {
                let expected = rows.get(name).copied().unwrap_or(0.0);
                let found = last(&file, &format!("{group}/{name}"));
                assert!((found - expected).abs() <= 1.0, "{name}: {found}, not {expected}");
            }
        }
    }
    let start = number(&file["start"]);
    assert!(counter(&file, "live size").iter().all(|point| number(&point[0]) >= start));
    assert!(counter(&file, "live size").iter().all(|point| point[2] == 3), "bytes");
}

#[test]
fn figures_are_those_of_the_report() {
    let Some(package) = python_package("perfetto-0.59.1") else { return };
    let place = Place::new();
    let made = place.file("made.ctf", &workload(Format::V3, 2, 6000, 500));
    assert_figures(&package, &made);
    let file = exported(&package, &made, "");
    let process = &file["processes"][0];
    assert_eq!(process["pid"], i64::from(trace_info().pid as i32));
    assert_eq!(process["name"], "/usr/bin/secretive-program");
    assert_eq!(file["start"], START * 1000);
    assert!(file["slices"].as_object().unwrap().is_empty(), "there is no sidecar");
    for name in ["ocamlopt.v3.ctf", "made-trees.v3.ctf"] {
        real(name).iter().for_each(|trace| assert_figures(&package, trace));
    }
}

#[test]
fn the_sidecar_is_beside_it() {
    let Some(package) = python_package("perfetto-0.59.1") else { return };
    let place = Place::new();
    let trace = place.file("trace.ctf", &workload(Format::V3, 1, 500, 501));
    place.file("trace.ctf.probes", &sidecar());
    let file = exported(&package, &trace, "");
    let ticks = TICKS as f64;
    let units = |name: &str| counter(&file, name)[0][2].as_u64().unwrap();
    for (name, unit, value) in [
        ("collector/major heap", 3, 8.0 * (131_072.0 + 1_000.0 * ticks)),
        ("collector/live in major heap", 3, 8.0 * (65_536.0 + 1_000.0 * ticks)),
        ("collector/promoted", 3, 8.0 * 5_000.0 * ticks),
        ("collector/minor collections", 2, 4.0 * ticks),
        ("process/RSS", 3, f64::from(8 << 20) + 16_384.0 * ticks),
        ("process/cgroup limit", 3, f64::from(64 << 20)),
        ("process/threads", 2, 3.0),
        ("probes/parser/tokens", 2, ticks * ticks),
        ("probes/parser/time", 1, 25e6 * ticks),
        ("probes/parser/depth", 0, 0.0),
        ("probes/cache/entries", 2, (TICKS % 7) as f64),
    ] {
        assert_eq!((last(&file, name), units(name)), (value, unit), "{name}");
    }
    let tokens = counter(&file, "probes/parser/tokens");
    assert_eq!(tokens.len() as u64, TICKS);
    assert_eq!(tokens[0][0], START * 1000 + 100_000_000);
    assert_eq!(counter(&file, "process/cgroup usage").len(), 1, "it does not change");
    let counters = file["counters"].as_object().unwrap();
    assert!(!counters.contains_key("probes/unused"));
    assert!(!counters.contains_key(&format!("probes/{HOSTILE}")), "it has no value");
    let slices = file["slices"]["GC of domain 0"].as_array().unwrap();
    assert_eq!(slices.len() as u64, TICKS / 10);
    for slice in slices {
        assert_eq!(
            (&slice[1], &slice[2], &slice[3]),
            (&2_000_000.into(), &"major".into(), &0.into())
        );
    }
    let instants = |name: &str| -> Vec<String> {
        let of_track = file["instants"][name].as_array().unwrap().iter();
        of_track.map(|instant| instant[1].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(instants("log"), ["tick 20", "tick 40", "tick 60", "tick 80", "tick 100"]);
    assert_eq!(instants("pause_here"), ["look at the cache"]);
    assert_eq!(instants("probes/phase"), ["reading", "writing"]);
}

/// Two processes, one of which wrote two traces one after the other, and a trace without a sidecar.
#[test]
fn of_several_traces_each_has_its_sidecar_on_the_track_of_its_process() {
    let Some(package) = python_package("perfetto-0.59.1") else { return };
    let place = Place::new();
    let traces = [("one.ctf", 11, 0), ("two.ctf", 22, 7_000_000), ("again.ctf", 11, 30_000_000)];
    let path = |name: &str| place.path(name).display().to_string();
    for (seed, (name, pid, later)) in (510..).zip(traces) {
        let mut info = trace_info();
        (info.pid, info.start_time) = (pid, START + later);
        info.executable = format!("/bin/program-{pid}").into_bytes();
        place.file(name, &workload_of(&info, Format::V3, 1, 200, seed));
        place.file(&format!("{name}.probes"), &sidecar_of(START + later));
    }
    let mut silent = trace_info();
    silent.pid = 33;
    place.file("silent.ctf", &workload_of(&silent, Format::V3, 1, 200, 513));
    let others = format!("{} {} {}", path("two.ctf"), path("again.ctf"), path("silent.ctf"));
    let file = exported(&package, &place.path("one.ctf"), &others);

    let processes = file["processes"].as_array().unwrap();
    let pids: Vec<&Value> = processes.iter().map(|process| &process["pid"]).collect();
    assert_eq!(pids, [0, 22, 11], "0 is that of all traces");
    assert_eq!(processes[1]["name"], "/bin/program-22");
    assert_eq!(file["owners"]["live size"], 0);
    for (name, pid, later) in traces {
        let within = |track: &str| format!("{}/{track}", path(name));
        for (track, value) in [
            ("collector/promoted", 8.0 * 5_000.0 * TICKS as f64),
            ("process/threads", 3.0),
            ("probes/parser/tokens", (TICKS * TICKS) as f64),
        ] {
            assert_eq!(last(&file, &within(track)), value, "{name}: {track}");
            assert_eq!(file["owners"][within(track)], pid, "{name}: {track}");
        }
        let tokens = counter(&file, &within("probes/parser/tokens"));
        assert_eq!(tokens[0][0], (START + later) * 1000 + 100_000_000, "{name}");
        let slices = file["slices"][within("GC of domain 0")].as_array().unwrap();
        assert_eq!(slices.len() as u64, TICKS / 10, "{name}");
        assert_eq!(file["instants"][within("log")].as_array().unwrap().len(), 5, "{name}");
    }
    let counters = file["counters"].as_object().unwrap();
    assert!(!counters.keys().any(|name| name.contains("silent")), "it has no sidecar");
}

#[test]
fn of_several_sidecars_those_that_are_not_sound_are_reported() {
    let place = Place::new();
    let one = place.file("one.ctf", &workload(Format::V3, 1, 50, 504));
    let two = place.file("two.ctf", &workload(Format::V3, 1, 50, 505));
    place.file("one.ctf.probes", &[9; 200]);
    let bytes = sidecar();
    place.file("two.ctf.probes", &bytes[..bytes.len() - 10]);
    let call = format!("export --to perfetto -o {}", place.path("out").display());
    heaptap(&call, &[&one, &two]).says(
        2,
        &["one.ctf.probes: no sidecar of a trace", "left out", "two.ctf.probes: ends inside"],
    );
    assert!(place.path("out").is_file(), "the rest is written");
}

#[test]
fn a_sidecar_that_is_not_its_own_or_not_sound_is_reported() {
    let place = Place::new();
    let trace = place.file("trace.ctf", &workload(Format::V3, 1, 50, 502));
    let path = place.path("trace.ctf.probes");
    let call = format!("export --to perfetto -o {}", place.path("out").display());
    let bytes = sidecar();
    let mut later = trace_info();
    later.start_time += 1;
    let other = place.file("other.ctf", &workload_of(&later, Format::V3, 1, 50, 503));
    fs::write(place.path("other.ctf.probes"), &bytes).unwrap();
    heaptap(&call, &[&other]).says(0, &["other.ctf.probes", "another trace", "left out"]);
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    heaptap(&call, &[&trace]).says(0, &["trace.ctf.probes", "ends inside"]);
    let mut damaged = bytes.clone();
    damaged[bytes.len() / 2..bytes.len() / 2 + 2000].fill(0xff);
    fs::write(&path, &damaged).unwrap();
    heaptap(&call, &[&trace]).says(1, &["trace.ctf.probes", "damaged"]);
}
