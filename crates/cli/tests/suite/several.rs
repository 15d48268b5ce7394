//! Several traces, and directories of them, as one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use heaptap_trace::{Block, Format, Source, TraceInfo};
use serde_json::Value;

use crate::program::{Place, Run, command, heaptap, heaptap_reading};
use crate::traces::{PID, START, Sources, Writer, real, trace_info, workload};

const ANALYSING: [&str; 5] = ["report", "leaks", "hot", "export --to folded", "export --to pprof"];

fn json(call: &str, files: &[&Path]) -> Value {
    serde_json::from_str(&heaptap(&format!("{call} --json"), files).text(0)).unwrap()
}

/// Samples of each row.
fn rows(report: &Value) -> BTreeMap<String, u64> {
    let mut samples = BTreeMap::new();
    for row in report["table"]["rows"].as_array().unwrap() {
        let name = format!("{} {} {}", row["name"], row["file"], row["line"]);
        *samples.entry(name).or_default() += row["samples"].as_u64().unwrap();
    }
    samples
}

/// Fails unless every sum over the merge is the sum over the traces.
#[track_caller]
fn assert_sums(files: &[&Path]) {
    for options in [
        "--by function",
        "--by location",
        "--by domain",
        "--by source",
        "--metric promoted",
        "--metric live",
        "--min-lifetime 1ms",
        "--max-lifetime 1ms --metric promoted",
        "--min-size 64",
    ] {
        let call = format!("report --top 0 {options}");
        let merged = json(&call, files);
        let single: Vec<Value> = files.iter().map(|file| json(&call, &[file])).collect();
        let mut expected: BTreeMap<String, u64> = BTreeMap::new();
        for (name, samples) in single.iter().flat_map(rows) {
            *expected.entry(name).or_default() += samples;
        }
        assert_eq!(rows(&merged), expected, "{options}");
        for total in ["/totals/samples", "/table/total/samples", "/events"] {
            let sum: u64 = single.iter().map(|r| r.pointer(total).unwrap().as_u64().unwrap()).sum();
            assert_eq!(merged.pointer(total).unwrap(), sum, "{total} {options}");
        }
        for total in ["allocated", "live", "live_young"] {
            let bytes = |report: &Value| report["totals"][total]["bytes"].as_f64().unwrap();
            let sum: f64 = single.iter().map(bytes).sum();
            assert!((bytes(&merged) - sum).abs() <= 1e-9 * sum, "{total} {options}");
        }
    }
    let folded = |files: &[&Path]| -> BTreeMap<String, u64> {
        let text = heaptap("export --to folded --no-fold", files).text(0);
        let mut stacks = BTreeMap::new();
        for line in text.lines() {
            let (stack, bytes) = line.rsplit_once(' ').unwrap();
            *stacks.entry(stack.to_owned()).or_default() += bytes.parse::<u64>().unwrap();
        }
        stacks
    };
    let mut expected: BTreeMap<String, u64> = BTreeMap::new();
    for (stack, bytes) in files.iter().flat_map(|file| folded(&[file])) {
        *expected.entry(stack).or_default() += bytes;
    }
    let merged = folded(files);
    assert_eq!(merged.len(), expected.len());
    for (stack, bytes) in expected {
        // Each trace's bytes are rounded.
        assert!(merged[&stack].abs_diff(bytes) <= files.len() as u64, "{stack}");
    }
}

#[test]
fn sums_over_a_merge_are_those_of_its_traces() {
    let place = Place::new();
    let traces = [
        workload(Format::V2, 1, 4000, 90),
        workload(Format::V3, 3, 4000, 91),
        workload(Format::V2, 1, 3000, 92),
        started(START + 5_000_000, 200),
    ];
    let files: Vec<PathBuf> =
        (0..).zip(&traces).map(|(n, trace): (u32, _)| place.file(&format!("{n}"), trace)).collect();
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    assert_sums(&files);
}

#[test]
fn sums_over_real_traces_are_those_of_each() {
    for names in [
        ["ocamlopt.v2.ctf", "ocamlopt.v3.ctf", "made-maps.v2.ctf"],
        ["ocamlopt.v3.ctf", "made-maps.v2.ctf", "ocamlopt.v2.ctf"],
    ] {
        let files: Option<Vec<PathBuf>> = names.into_iter().map(real).collect();
        let Some(files) = files else { return };
        let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
        assert_sums(&files);
    }
}

/// A trace that starts at this time: so many blocks, a millisecond apart, none of which
/// is ever collected.
fn started(start_time: u64, blocks: u64) -> Vec<u8> {
    // Each has a process of its own.
    let pid = PID + (start_time - START);
    let mut writer = Writer::of(Format::V2, &TraceInfo { start_time, pid, ..trace_info() });
    for _ in 0..blocks {
        writer.time += 999;
        writer.small();
    }
    writer.finish()
}

/// The largest live size in samples, when, and what is alive at the end.
fn peak(files: &[&Path]) -> (u64, u64, u64) {
    let report = json("report --metric peak", files);
    let live = json("report --metric live", files);
    (
        report["table"]["total"]["samples"].as_u64().unwrap(),
        report["totals"]["peak_us"].as_u64().unwrap(),
        live["table"]["total"]["samples"].as_u64().unwrap(),
    )
}

#[test]
fn the_peak_is_that_of_all_processes_together_at_one_time() {
    let place = Place::new();
    let first = place.file("first.ctf", &started(START, 100));
    let within = place.file("within.ctf", &started(START + 50_000, 100));
    let later = place.file("later.ctf", &started(START + 10_000_000, 150));
    assert_eq!(peak(&[&first]), (100, 100_000, 100));
    // The first ends with 100, when the other has 50.
    assert_eq!(peak(&[&first, &within]), (150, 100_000, 200));
    // A process that has ended has nothing any more.
    assert_eq!(peak(&[&later, &first]), (150, 10_150_000, 250));
    assert_eq!(peak(&[&later, &within, &first]), (150, 100_000, 350));
    // Times count from the start of the earliest.
    let at = |time: &str| {
        let report = json(&format!("report --at {time}"), &[&within, &first]);
        report["table"]["total"]["samples"].as_u64().unwrap()
    };
    assert_eq!((at("40ms"), at("80ms")), (40, 110));
}

#[test]
fn a_directory_stands_for_the_traces_in_it() {
    let place = Place::new();
    let directory = place.path("traces");
    fs::create_dir(&directory).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        fs::write(directory.join(name), bytes).unwrap();
        directory.join(name)
    };
    let one = put("one.ctf", &workload(Format::V2, 1, 1000, 93));
    // A single trace in a directory is that trace, to the byte.
    for call in ANALYSING.into_iter().chain(["report --json", "hot --json"]) {
        let [of_directory, of_file] = [&directory, &one].map(|path| heaptap(call, &[path]));
        assert!(of_directory.status == 0 && of_directory.out == of_file.out, "{call}");
    }
    let other = put("no-extension", &workload(Format::V3, 2, 1000, 94));
    // None of these is a trace.
    put("notes.txt", b"a text");
    put("report.json.gz", &[0x1f, 0x8b, 8, 0]);
    put(".hidden.ctf", &workload(Format::V2, 1, 1000, 95));
    fs::create_dir(directory.join("below")).unwrap();
    put("below/third.ctf", &workload(Format::V2, 1, 1000, 96));
    let merged = json("report --top 0", &[&directory]);
    assert_eq!(rows(&merged), rows(&json("report --top 0", &[&one, &other])));
    let trace = merged["trace"].as_str().unwrap();
    assert!(trace.ends_with("traces (2 traces)"), "{trace}");
    let text = heaptap("report", &[&directory]).text(0);
    assert!(text.contains("secretive-program (2 traces)"), "{text}");
    // Given again under another name.
    let twice = heaptap("report --json --top 0", &[&directory, &one]);
    twice.says(0, &["one.ctf: given twice, counted once"]);
    let twice: Value = serde_json::from_slice(&twice.out).unwrap();
    assert_eq!(rows(&twice), rows(&merged));
}

#[test]
fn a_directory_without_traces_is_an_error() {
    let place = Place::new();
    let directory = place.path("empty");
    fs::create_dir(&directory).unwrap();
    let trace = place.file("trace.ctf", &started(START, 5));
    for call in ANALYSING {
        heaptap(call, &[&directory]).says(2, &["empty: is a directory without a trace in it"]);
        heaptap(call, &[&trace, &directory]).says(2, &["empty: is a directory without"]);
    }
}

/// Runs a report with few open files allowed.
fn with_few_descriptors(files: &[&Path]) -> Run {
    let script = "ulimit -n 24; exec \"$@\"";
    let heaptap = command("report --json --top 0", files);
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(heaptap.get_program())
        .args(heaptap.get_args())
        .output()
        .unwrap();
    Run {
        status: output.status.code().unwrap(),
        out: output.stdout,
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

#[test]
fn any_number_of_traces_takes_few_descriptors() {
    const TRACES: u64 = 300;
    let place = Place::new();
    // The first hundred run at the same time, the others one after the other.
    for number in 0..TRACES {
        let start = START + number.saturating_sub(100) * 100_000;
        place.file(&format!("{number}.ctf"), &started(start, 20));
    }
    let report: Value =
        serde_json::from_str(&with_few_descriptors(&[&place.path("")]).text(0)).unwrap();
    assert_eq!(report["table"]["total"]["samples"], TRACES * 20);
    assert_eq!(report["events"], TRACES * 20);
    let peak = json("report --metric peak", &[&place.path("")]);
    assert_eq!(peak["table"]["total"]["samples"], 101 * 20);
}

#[test]
fn a_trace_that_cannot_be_read_is_named_and_the_others_are_used() {
    let place = Place::new();
    let directory = place.path("traces");
    fs::create_dir(&directory).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        fs::write(directory.join(name), bytes).unwrap();
        directory.join(name)
    };
    let whole = workload(Format::V2, 1, 6000, 97);
    let sound = put("sound.ctf", &whole);
    let mut broken = whole.clone();
    broken[whole.len() / 5 * 2..whole.len() / 5 * 3].fill(0xff);
    let damaged = put("damaged.ctf", &broken);
    let merged = heaptap("report --json --top 0", &[&directory]);
    merged.says(1, &["damaged.ctf: byte ", "allocations missing"]);
    assert!(!merged.err.contains("sound.ctf"), "{}", merged.err);
    let samples = |run: &Run| {
        let report: Value = serde_json::from_slice(&run.out).unwrap();
        report["totals"]["samples"].as_u64().unwrap()
    };
    let [of_sound, of_damaged] = [&sound, &damaged].map(|file| {
        let run = heaptap("report --json --top 0", &[file]);
        samples(&run)
    });
    assert!(0 < of_damaged && of_damaged < of_sound);
    assert_eq!(samples(&merged), of_sound + of_damaged);
    // One that is no trace at all.
    put("empty.ctf", b"");
    for call in ANALYSING {
        let run = heaptap(call, &[&directory]);
        run.says(2, &["empty.ctf: ", "the file is empty", "; left out", "damaged.ctf: "]);
        assert!(!run.out.is_empty(), "{call}");
    }
    let merged = heaptap("report --json", &[&directory]);
    assert_eq!(samples(&merged), of_sound + of_damaged);
    let text = place.file("text.txt", b"This is not a trace.");
    heaptap("report", &[&sound, &text]).says(2, &["text.txt: not a memtrace file", "; left out"]);
    // A name that does not exist is a wrong call.
    let missing = heaptap("report", &[&sound, &place.path("missing.ctf")]);
    missing.says(2, &["missing.ctf: no such file"]);
    assert!(missing.out.is_empty());
    heaptap("report", &[&text, &directory.join("empty.ctf")]).says(2, &["none of the traces"]);
}

#[test]
fn traces_that_cannot_be_added_up_are_refused() {
    let place = Place::new();
    let of = |name: &str, info: TraceInfo| {
        let mut writer = Writer::of(Format::V2, &info);
        writer.small();
        place.file(name, &writer.finish())
    };
    let usual = of("usual.ctf", trace_info());
    let small = of("small.ctf", TraceInfo { word_size: 32, ..trace_info() });
    for call in ANALYSING {
        heaptap(call, &[&usual, &small]).says(2, &["usual.ctf has words of 64 bits", "small.ctf"]);
    }
}

/// Sizes and squared errors of the rows.
fn sizes(report: &Value) -> BTreeMap<String, (f64, f64)> {
    let mut sizes = BTreeMap::new();
    for row in report["table"]["rows"].as_array().unwrap() {
        let name = format!("{} {} {}", row["name"], row["file"], row["line"]);
        let size: &mut (f64, f64) = sizes.entry(name).or_default();
        size.0 += row["bytes"].as_f64().unwrap();
        size.1 += row["error"].as_f64().unwrap().powi(2);
    }
    sizes
}

#[test]
fn traces_of_several_rates_count_by_their_own() {
    let place = Place::new();
    let of = |name: &str, sample_rate: f64, pid: u64, samples: u64| {
        let mut writer = Writer::of(Format::V2, &TraceInfo { sample_rate, pid, ..trace_info() });
        for number in 0..200 {
            let block = Block { length: 6 + samples, samples, source: Source::Minor };
            // Some stacks are in one of the files only.
            let site = if number % 7 == 0 { 100 + samples } else { 2 + number % 5 };
            let id = writer.alloc(0, block, &[Sources::FIRST, Sources::FIRST + site]);
            if number % 3 == 0 {
                writer.promote(0, id);
            }
            if number % 2 == 0 {
                writer.collect(0, id);
            }
        }
        place.file(name, &writer.finish())
    };
    let files =
        [of("low.ctf", 1e-5, 1, 1), of("usual.ctf", 0.01, 2, 2), of("high.ctf", 0.75, 3, 4)];
    let files = files.each_ref().map(PathBuf::as_path);
    let close = |one: f64, other: f64| (one - other).abs() <= 2e-5 * other.abs();
    for options in
        ["--by function", "--by location", "--by source", "--metric promoted", "--metric live"]
    {
        let call = format!("report --top 0 {options}");
        let merged = json(&call, &files);
        assert_eq!(merged["sample_rates"], serde_json::json!([1e-5, 0.01, 0.75]));
        let mut expected: BTreeMap<String, (f64, f64)> = BTreeMap::new();
        for (name, (bytes, square)) in files.iter().flat_map(|file| sizes(&json(&call, &[file]))) {
            let sum = expected.entry(name).or_default();
            *sum = (sum.0 + bytes, sum.1 + square);
        }
        let found = sizes(&merged);
        assert!(found.keys().eq(expected.keys()), "{options}");
        let mut squares = 0.0;
        for (name, (bytes, square)) in expected {
            assert!(close(found[&name].0, bytes), "{options}, {name}: {} {bytes}", found[&name].0);
            // And what the lowest rate may have missed of the row: two samples of it at most.
            let unseen = 2.0 * (8.0 / 1e-5_f64).powi(2);
            let error = found[&name].1;
            assert!(
                error > square * (1.0 - 2e-5) && error < (square + unseen) * (1.0 + 2e-5),
                "{options}, {name}: {error} {square}"
            );
            squares += square;
        }
        // Rows add up, and their errors, without what may have been missed of each.
        let all = sizes(&merged).values().fold(0.0, |sum, row| sum + row.0);
        let total = &merged["table"]["total"];
        assert!(close(total["bytes"].as_f64().unwrap(), all), "{options}");
        assert!(close(total["error"].as_f64().unwrap().powi(2), squares), "{options}");
    }
    let text = heaptap("report", &files).text(0);
    assert!(text.contains("0.00001, 0.01, 0.75: each block counts by its own"), "{text}");
    for call in ANALYSING {
        heaptap(call, &files).says(0, &[]);
    }
    // Where a high rate was used, a low one costs what it may have missed, and no more.
    let in_high = |files: &[&Path]| {
        let all = sizes(&json("report --top 0", files));
        let row = all.into_iter().find(|(name, _)| name.contains("function_104_"));
        row.expect("a site of the last file").1
    };
    let (merged, alone) = (in_high(&files), in_high(&files[2..]));
    let most = alone.1 + 2.0 * (8.0 / 1e-5_f64).powi(2);
    assert!(close(merged.0, alone.0), "{merged:?} {alone:?}");
    assert!((alone.1..most).contains(&merged.1), "{merged:?} {alone:?}");
}

#[test]
fn standard_input_is_one_of_several() {
    let place = Place::new();
    let (one, other) = (workload(Format::V2, 1, 500, 98), workload(Format::V3, 2, 500, 99));
    let files = [place.file("one.ctf", &one), place.file("other.ctf", &other)];
    for call in ["report --json --top 0", "report --json --top 0 --max-lifetime 5ms"] {
        let expected = json(&call.replace("--json", ""), &[&files[0], &files[1]]);
        let run = heaptap_reading(&format!("{call} -"), &[&files[1]], &one);
        let piped: Value = serde_json::from_str(&run.text(0)).unwrap();
        assert_eq!(rows(&piped), rows(&expected));
        let name = piped["trace"].as_str().unwrap();
        assert!(name.starts_with("standard input, "), "{name}");
    }
}

/// A trace in which one site keeps growing, if it leaks. `start` and `duration` are in
/// milliseconds.
fn server(start: u64, duration: u64, leaks: bool) -> Vec<u8> {
    let info = TraceInfo { start_time: START + start * 1000, ..trace_info() };
    let mut writer = Writer::of(Format::V2, &info);
    let block = Block { length: 9, samples: 1, source: Source::Minor };
    let mut kept = std::collections::VecDeque::new();
    for turn in 0..duration / 3 {
        writer.time = info.start_time + turn * 3000;
        if leaks && turn % 50 == 0 {
            let id = writer.alloc(0, block, &[Sources::FIRST + 6, Sources::FIRST + 2]);
            writer.promote(0, id);
        }
        let id = writer.alloc(0, block, &[Sources::FIRST + 6, Sources::FIRST]);
        writer.promote(0, id);
        kept.push_back(id);
        if kept.len() > 200 {
            writer.collect(0, kept.pop_front().unwrap());
        }
    }
    writer.finish()
}

#[test]
fn a_leak_of_a_merge_is_one_of_its_traces() {
    let place = Place::new();
    let leaky = [0, 40]
        .map(|start| place.file(&format!("leaky-{start}.ctf"), &server(start, 60_000, true)));
    let leak = |files: &[&Path]| {
        let found = json("leaks", files);
        assert_eq!(found["leaks"].as_array().unwrap().len(), 1, "{found}");
        assert_eq!(found["leaks"][0]["site"]["line"], 12);
        found["leaks"][0]["live"]["bytes"].as_f64().unwrap()
    };
    let each = [leak(&[&leaky[0]]), leak(&[&leaky[1]])];
    let both = leak(&[&leaky[0], &leaky[1]]);
    assert!((both - each[0] - each[1]).abs() < 1.0, "{both} of {each:?}");
    // Processes that end with something alive, one after the other, do not leak.
    let place = Place::new();
    for number in 0..60 {
        place.file(&format!("{number}.ctf"), &server(number * 1000, 1000, false));
    }
    let found = json("leaks", &[&place.path("")]);
    assert_eq!(found["leaks"].as_array().unwrap().len(), 0, "{found}");
}

#[test]
fn diff_has_two_sides_of_any_number_of_traces() {
    let place = Place::new();
    let [before, after] = ["before", "after"].map(|name| place.path(name));
    for (directory, blocks) in [(&before, 400), (&after, 900)] {
        fs::create_dir(directory).unwrap();
        for number in 0..3_u64 {
            let trace = started(START + number * 10_000, blocks);
            fs::write(directory.join(format!("{number}.ctf")), trace).unwrap();
        }
    }
    let of = |call: &str, files: &[&Path]| {
        let mut found = json(call, files);
        let names = ["before", "after"].map(|side| found[side].take());
        (found, names.map(|name| name.as_str().unwrap().to_owned()))
    };
    let (expected, names) = of("diff", &[&before, &after]);
    assert_eq!(expected["total"]["kind"], "grew");
    assert!(names[0].ends_with("before (3 traces)"), "{names:?}");
    let one_by_one =
        |directory: &PathBuf| [0, 1, 2].map(|number| directory.join(format!("{number}.ctf")));
    let mut files: Vec<PathBuf> = one_by_one(&before).into();
    files.push("--to".into());
    files.extend(one_by_one(&after));
    let files: Vec<&Path> = files.iter().map(PathBuf::as_path).collect();
    assert_eq!(of("diff", &files).0, expected);
    heaptap("diff", &files[..3]).says(2, &["3 traces given", "BEFORE… --to AFTER…"]);
    heaptap("diff --fail-over 5%", &[&before, &after]).says(3, &[]);
    fs::write(after.join("empty.ctf"), b"").unwrap();
    heaptap("diff --fail-over 5%", &[&before, &after]).says(2, &["empty.ctf", "left out"]);
}
