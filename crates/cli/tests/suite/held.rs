//! `heaptap report --heap` and `heaptap leaks --heap`: what holds the blocks of a trace, on a trace and a snapshot that
//! are made together. What they find in real programs is the matter of `ocaml-tests/tests/heap.py`.

use std::path::{Path, PathBuf};

use heaptap_heap::{Encoder, MetaKey, Root, RootOwner, Segment, SegmentKind, Tracked, Workspace};
use heaptap_trace::{Block, Format, Source, TraceInfo};
use serde_json::Value;

use crate::program::{Place, command, heaptap, heaptap_reading};
use crate::traces::{Sources, Writer, trace_info};

/// Bytes of a block: three words and a header.
const SIZE: u64 = 32;
const TURNS: usize = 12_000;
const PID: u64 = 4711;

pub(crate) fn info(rate: f64) -> TraceInfo {
    TraceInfo { sample_rate: rate, pid: PID, ..trace_info() }
}

/// A program whose two functions take turns to leak. Returns the trace, and the ids of the blocks that stay alive: those of
/// the first function and those of the second.
pub(crate) fn trace(info: &TraceInfo, samples: u64) -> (Vec<u8>, [Vec<u64>; 2]) {
    let mut writer = Writer::of(Format::V3, info);
    let mut ids = Vec::new();
    for turn in 0..TURNS {
        writer.time += 500;
        let function = Sources::FIRST + 2 * (turn as u64 % 2);
        let block = Block { length: 3, samples, source: Source::Minor };
        let id = writer.alloc(0, block, &[Sources::FIRST + 4, function]);
        writer.promote(0, id);
        ids.push(id);
        // Some are collected, so that leaks can be found.
        if is_collected(turn) {
            writer.collect(0, ids[turn - 600]);
        }
    }
    let mut survivors = [Vec::new(), Vec::new()];
    for (turn, id) in ids.iter().enumerate() {
        if turn + 600 >= TURNS || !is_collected(turn + 600) {
            survivors[turn % 2].push(*id);
        }
    }
    (writer.finish(), survivors)
}

fn is_collected(turn: usize) -> bool {
    turn.is_multiple_of(3) && turn > 600
}

/// Who holds the blocks of a function, by their number: a variable holds half of them, a hook a quarter, and the rest is
/// garbage.
fn holder(number: usize) -> Option<RootOwner> {
    match number % 4 {
        0 => Some(RootOwner::Hook { slot: 8 }),
        1 => None,
        _ => Some(RootOwner::Global { module: 0, field: 3 }),
    }
}

/// A snapshot of these blocks, of which the trace has the ids. Each holder has its blocks in a list.
fn snapshot(info: &TraceInfo, words: u64, ids: &[u64]) -> Vec<u8> {
    snapshot_without(info, words, ids, 0)
}

/// The same, which says that it does not list so many more.
fn snapshot_without(info: &TraceInfo, words: u64, ids: &[u64], left_out: u64) -> Vec<u8> {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let address = |number: usize| 0x1_0008 + number as u64 * (words + 1) * 8;
    let mut write = || -> Result<(), i32> {
        encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
        encoder.meta_number(MetaKey::PID, info.pid)?;
        let taken = info.start_time + 6_000_000;
        encoder.meta_number(MetaKey::TIME, 1000 * taken)?;
        encoder.meta(MetaKey::TRACE_FILE, b"/tmp/its-own.ctf")?;
        encoder.meta_number(MetaKey::TRACE_START, info.start_time)?;
        if left_out > 0 {
            encoder.meta_number(MetaKey::TRACKED_LEFT_OUT, left_out)?;
        }
        let words_in_all = ids.len() as u64 * (words + 1);
        let segment = Segment { kind: SegmentKind::Major, start: 0x1_0000, words: words_in_all };
        encoder.segment(segment)?;
        for number in 0..ids.len() {
            encoder.begin_block(address(number), words, 0)?;
            let next = (number + 1..ids.len()).find(|next| holder(*next) == holder(number));
            if let Some(next) = next.filter(|_| holder(number).is_some()) {
                encoder.pointer(1, address(next))?;
            }
            encoder.end_block()?;
        }
        encoder.module(0, b"Main")?;
        for first in [0, 2] {
            let root = Root { owner: holder(first).unwrap(), target: address(first) };
            encoder.root(root)?;
        }
        for (number, &id) in ids.iter().enumerate() {
            encoder.tracked(Tracked { address: address(number), id })?;
        }
        Ok(())
    };
    write().unwrap();
    encoder.finish().unwrap().1
}

/// A trace at this rate and the snapshot that belongs to it. The first function's blocks are in the snapshot, the
/// second's are not.
fn files(rate: f64, samples: u64) -> (Place, PathBuf, PathBuf) {
    let (place, info) = (Place::new(), info(rate));
    let (trace, [first, _]) = trace(&info, samples);
    let (trace, heap) = (place.file("a.ctf", &trace), snapshot(&info, 3, &first));
    let heap = place.file("a.heap", &heap);
    (place, trace, heap)
}

fn json(call: &str, trace: &Path, heap: &Path) -> Value {
    let call = format!("{call} --json --heap {}", heap.display());
    serde_json::from_str(&heaptap(&call, &[trace]).text(0)).unwrap()
}

/// The holder, bytes and share of each part.
fn parts(held_by: &Value) -> Vec<(&str, f64, f64)> {
    let part = |part: &'static str| move |value: &Value| value[part].as_f64().unwrap();
    let list = held_by.as_array().unwrap().iter();
    list.map(|one| (one["holder"].as_str().unwrap(), part("bytes")(one), part("share")(one)))
        .collect()
}

/// The blocks of the first function that are in the snapshot, and the exact parts of its holders.
fn expected(heap: &Path) -> (f64, Vec<(&'static str, f64)>) {
    let figures: Value = serde_json::from_str(&heaptap("heap --json", &[heap]).text(0)).unwrap();
    let blocks = figures["all"]["blocks"].as_u64().unwrap();
    let of = |rest: &[u64]| (0..blocks).filter(|number| rest.contains(&(number % 4))).count();
    let bytes = |rest: &[u64]| (of(rest) as u64 * SIZE) as f64;
    let parts = vec![
        ("Main, field 3", bytes(&[2, 3])),
        ("hooks at 0x8", bytes(&[0])),
        ("(garbage)", bytes(&[1])),
    ];
    ((blocks * SIZE) as f64, parts)
}

#[test]
fn at_rate_one_the_holders_of_a_row_are_exact() {
    let (_place, trace, heap) = files(1.0, 4);
    let (all, exact) = expected(&heap);
    let figures = json("report --metric live", &trace, &heap);
    let rows = figures["table"]["rows"].as_array().unwrap();
    let row = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
    let first = row("Module0.function_0_0");
    assert_eq!(first["in_snapshot"]["bytes"], all);
    assert_eq!(first["bytes"], all, "all that is live is in the snapshot");
    let found = parts(&first["held_by"]);
    for (holder, bytes) in &exact {
        let one = found.iter().find(|part| part.0 == *holder).unwrap();
        assert_eq!(one.1, *bytes, "{holder}");
        // The digits of the JSON are read to within a unit of the last place.
        assert!((one.2 - *bytes / all).abs() < 1e-15, "{holder}: {}", one.2);
    }
    assert_eq!(found.len(), exact.len());
    assert_eq!(found[0].0, "Main, field 3", "the greatest holder comes first");
    let errors = first["held_by"].as_array().unwrap().iter();
    assert!(errors.clone().all(|part| part["error"] == 0.0 && part["share_error"] == 0.0));
    assert_eq!(row("Module2.function_2_0")["held_by"], Value::Array(Vec::new()));
    // All rows together.
    assert_eq!(figures["snapshot"]["held_by"], first["held_by"]);
    assert_eq!(figures["snapshot"]["taken_us"], 6_000_000);
}

#[test]
fn rows_of_every_kind_have_holders() {
    let (_place, trace, heap) = files(1.0, 4);
    let (all, _) = expected(&heap);
    for by in ["function", "location", "file", "module", "label", "domain", "source"] {
        let figures = json(&format!("report --by {by}"), &trace, &heap);
        let rows = figures["table"]["rows"].as_array().unwrap();
        let sum: f64 = rows.iter().map(|r| r["in_snapshot"]["bytes"].as_f64().unwrap()).sum();
        assert_eq!(sum, all, "{by}");
    }
}

#[test]
fn only_selected_blocks_are_joined() {
    let (_place, trace, heap) = files(1.0, 4);
    let (all, _) = expected(&heap);
    let in_snapshot = |options: &str| {
        let figures = json(&format!("report {options}"), &trace, &heap);
        figures["snapshot"]["in_snapshot"]["bytes"].as_f64().unwrap()
    };
    assert_eq!(in_snapshot("--filter function_0"), all);
    assert_eq!(in_snapshot("--filter function_2"), 0.0);
    assert_eq!(in_snapshot("--max-size 23"), 0.0);
    assert_eq!(in_snapshot("--min-lifetime 1us"), all);
    assert_eq!(in_snapshot("--max-lifetime 1us"), 0.0);
    let (early, late) = (in_snapshot("--until 3s"), in_snapshot("--since 3.000001s"));
    assert!(early > 0.0 && late > 0.0, "{early} and {late}");
    assert_eq!(early + late, all);
}

#[test]
fn an_estimate_states_its_error() {
    let (_place, trace, heap) = files(0.01, 1);
    let figures = json("report", &trace, &heap);
    let rows = figures["table"]["rows"].as_array().unwrap();
    let row = rows.iter().find(|row| row["name"] == "Module0.function_0_0").unwrap();
    let table = &row["held_by"][0];
    let (blocks, number) =
        (row["in_snapshot"]["samples"].as_f64().unwrap(), table["samples"].as_f64().unwrap());
    assert_eq!(table["bytes"], number * 800.0);
    let share = number / blocks;
    assert!((table["share"].as_f64().unwrap() - share).abs() < 1e-15, "{table}");
    let error = (share * (1.0 - share) * 0.99 / blocks).sqrt();
    let stated = table["share_error"].as_f64().unwrap();
    assert!((stated / error - 1.0).abs() < 0.01, "{stated} should be {error}");
    let text = heaptap("report --heap", &[&heap, &trace]).text(0);
    assert!(text.contains("held by Main, field 3 (50.0 % ± 0."), "{text}");
}

#[test]
fn text_and_csv_name_the_holders() {
    let (_place, trace, heap) = files(1.0, 4);
    let text = heaptap("report --heap", &[&heap, &trace]).text(0);
    let holders = "held by Main, field 3 (50.0 %), hooks at 0x8 (25.0 %); garbage 25.0 %";
    assert_eq!(text.matches(holders).count(), 2, "of the row and of all rows: {text}");
    assert!(text.contains("a.heap, taken at 6.0 s: "), "{text}");
    let csv = heaptap("report --csv --top 1 --heap", &[&heap, &trace]).text(0);
    let lines: Vec<&str> = csv.lines().collect();
    let columns = |line: &str| {
        // The only quoted field has one comma.
        line.replace("\"Main, field 3\"", "Main").split(',').count()
    };
    assert!(lines.iter().all(|line| columns(line) == columns(lines[0])), "{csv}");
    assert!(lines[0].contains(",share,in_snapshot_bytes,in_snapshot_error,holder_1,"), "{csv}");
    let (_, exact) = expected(&heap);
    let first = format!(",\"Main, field 3\",{},0,0.49", exact[0].1);
    let second = format!(",hooks at 0x8,{},0,0.25", exact[1].1);
    assert!(lines[1].contains(&first) && lines[1].contains(&second), "{csv}");
    let plain = heaptap("report --csv", &[&trace]).text(0);
    assert!(!plain.contains("holder"), "{plain}");
    for width in ["60", "120"] {
        for verb in ["report", "leaks"] {
            let output = command(&format!("{verb} --heap a.heap"), &[&trace])
                .current_dir(heap.parent().unwrap())
                .env("COLUMNS", width)
                .output()
                .unwrap();
            let text = String::from_utf8(output.stdout).unwrap();
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(widest <= width.parse().unwrap(), "{widest} columns: {text}");
        }
    }
}

#[test]
fn each_leak_says_what_holds_it() {
    let (_place, trace, heap) = files(1.0, 4);
    let figures = json("leaks", &trace, &heap);
    let leaks = figures["leaks"].as_array().unwrap();
    assert_eq!(leaks.len(), 2, "{figures}");
    let leak = |name: &str| leaks.iter().find(|leak| leak["site"]["name"] == name).unwrap();
    let (all, exact) = expected(&heap);
    let first = leak("Module0.function_0_0");
    assert_eq!(first["in_snapshot"]["bytes"], all);
    let found = parts(&first["held_by"]);
    assert_eq!((found[0].0, found[0].1), exact[0]);
    assert_eq!(leak("Module2.function_2_0")["held_by"].as_array().unwrap().len(), 0);
    let text = heaptap("leaks --heap", &[&heap, &trace]).text(0);
    for words in [
        "held by     Main, field 3 (50.0 %), hooks at 0x8 (25.0 %); garbage 25.0 %, of ",
        "held by     nothing: none of its sampled blocks was in ",
    ] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
}

#[test]
fn a_snapshot_that_does_not_belong_to_the_trace_is_refused() {
    let (place, trace, heap) = files(1.0, 4);
    let other = place.file("other.ctf", &self::trace(&TraceInfo { pid: 1, ..info(1.0) }, 4).0);
    let later = TraceInfo { start_time: info(1.0).start_time + 1, ..info(1.0) };
    let later = place.file("later.ctf", &self::trace(&later, 4).0);
    let ids: Vec<u64> = (0..100).collect();
    let sizes = place.file("sizes.heap", &snapshot(&info(1.0), 5, &ids));
    let short = place.file("short.heap", &snapshot_without(&info(1.0), 3, &ids, 7));
    for verb in ["report", "leaks"] {
        let call = format!("{verb} --heap {}", heap.display());
        heaptap(&call, &[&other]).says(2, &["other.ctf", "another process", "/tmp/its-own.ctf"]);
        heaptap(&call, &[&later]).says(2, &["later.ctf", "began at another time", "its-own.ctf"]);
        heaptap(&call, &[&trace, &other]).says(2, &["one trace", "here are 2", "heaptap info"]);
        heaptap_reading(&format!("{call} -"), &[], b"").says(2, &["standard input", "a file"]);
        let of_other_sizes = format!("{verb} --heap {}", sizes.display());
        heaptap(&of_other_sizes, &[&trace]).says(2, &["a.ctf", "other sizes", "its-own.ctf"]);
        let short = format!("{verb} --heap {}", short.display());
        heaptap(&short, &[&trace]).says(2, &["7 had no room", "too small", "--rate"]);
        let none = place.path("none.heap");
        heaptap(&format!("{verb} --heap {}", none.display()), &[&trace]).says(2, &["no such file"]);
        heaptap(&format!("{verb} --heap {}", trace.display()), &[&trace])
            .says(2, &["not a heap snapshot but a trace"]);
        heaptap(&format!("{verb} --types ."), &[&trace]).says(2, &["--types goes with --heap"]);
    }
    let untraced = crate::heap_snapshots::snapshot(crate::heap_snapshots::Flaw::None);
    let untraced = place.file("untraced.heap", &untraced);
    heaptap("report --heap", &[&untraced, &trace])
        .says(2, &["untraced.heap", "no trace was being written", "heaptap run"]);
}
