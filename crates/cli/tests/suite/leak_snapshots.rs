//! `heaptap leaks --heap`: heap snapshots as evidence, on a trace and snapshots that are made together. Both functions
//! of the trace leak; what a snapshot has of their blocks, and who holds them, differs.

use std::path::{Path, PathBuf};

use heaptap_heap::{Encoder, MetaKey, Root, RootOwner, Segment, SegmentKind, Tracked, Workspace};
use heaptap_trace::TraceInfo;
use serde_json::Value;

use crate::held::{info, trace};
use crate::program::{Place, heaptap};

/// Microseconds from one allocation to the next, and how many blocks live before one is collected.
const TURN: u64 = 500;
const RING: u64 = 600;

/// A block of a snapshot: its id, if it is tracked, its words, and what holds it.
type HeldBlock = (Option<u64>, u64, Option<RootOwner>);

/// The variable with this number.
fn variable(field: u32) -> Option<RootOwner> {
    Some(RootOwner::Global { module: 0, field })
}

/// The ids of the blocks that are alive at this time: those of the first function, and those of the second.
fn alive(taken_us: u64) -> [Vec<u64>; 2] {
    let born = taken_us / TURN;
    let is_alive = |id: &u64| *id == 0 || !id.is_multiple_of(3) || id + RING >= born;
    [0, 1].map(|function| (0..born).filter(|id| id % 2 == function).filter(is_alive).collect())
}

/// A snapshot that was taken so many microseconds after the start of the trace; or before, without a trace.
fn snapshot(info: &TraceInfo, taken_us: i64, blocks: &[HeldBlock]) -> Vec<u8> {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let mut addresses = vec![0x1_0008];
    addresses.extend(blocks.iter().scan(0x1_0008, |address, block| {
        *address += (block.1 + 1) * 8;
        Some(*address)
    }));
    let mut write = || -> Result<(), i32> {
        encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
        encoder.meta_number(MetaKey::PID, info.pid)?;
        encoder.meta_number(MetaKey::HEADER_WORDS, 1)?;
        encoder
            .meta_number(MetaKey::TIME, 1000 * info.start_time.saturating_add_signed(taken_us))?;
        if taken_us >= 0 {
            encoder.meta(MetaKey::TRACE_FILE, b"/tmp/its-own.ctf")?;
            encoder.meta_number(MetaKey::TRACE_START, info.start_time)?;
        }
        let words = blocks.iter().map(|block| block.1 + 1).sum();
        encoder.segment(Segment { kind: SegmentKind::Major, start: 0x1_0000, words })?;
        // The blocks of a holder are a list.
        let mut next = std::collections::HashMap::new();
        let mut pointers = vec![None; blocks.len()];
        for (number, block) in
            blocks.iter().enumerate().rev().filter(|(_, block)| block.2.is_some())
        {
            pointers[number] = next.insert(format!("{:?}", block.2), number);
        }
        for (number, block) in blocks.iter().enumerate() {
            encoder.begin_block(addresses[number], block.1, 0)?;
            if let Some(next) = pointers[number] {
                encoder.pointer(1, addresses[next])?;
            }
            encoder.end_block()?;
        }
        encoder.module(0, b"Main")?;
        for first in next.into_values() {
            let owner = blocks[first].2.expect("only those that are held");
            encoder.root(Root { owner, target: addresses[first] })?;
        }
        for (block, address) in blocks.iter().zip(&addresses) {
            if let Some(id) = block.0 {
                encoder.tracked(Tracked { address: *address, id })?;
            }
        }
        Ok(())
    };
    write().unwrap();
    encoder.finish().unwrap().1
}

/// A trace of both functions, and snapshots of it: at each time, what holds the blocks of each function, and
/// untracked words that the second variable has besides.
fn files(taken: &[(u64, [Option<RootOwner>; 2], u64)]) -> (Place, PathBuf, Vec<PathBuf>) {
    let (place, info) = (Place::new(), info(1.0));
    let trace = place.file("a.ctf", &trace(&info, 4).0);
    let snapshots = taken.iter().enumerate().map(|(number, &(at, owners, ballast))| {
        let mut blocks: Vec<HeldBlock> = Vec::new();
        for (ids, owner) in alive(at).into_iter().zip(owners) {
            blocks.extend(ids.into_iter().map(|id| (Some(id), 3, owner)));
        }
        blocks.extend((ballast > 0).then_some((None, ballast, variable(4))));
        place.file(&format!("{number}.heap"), &snapshot(&info, at as i64, &blocks))
    });
    let snapshots = snapshots.collect();
    (place, trace, snapshots)
}

fn options(snapshots: &[PathBuf]) -> String {
    snapshots.iter().map(|path| format!(" --heap {}", path.display())).collect()
}

fn leaks(trace: &Path, snapshots: &[PathBuf]) -> Value {
    let call = format!("leaks --json{}", options(snapshots));
    serde_json::from_str(&heaptap(&call, &[trace]).text(0)).unwrap()
}

fn row<'a>(rows: &'a Value, function: &str) -> Option<&'a Value> {
    rows.as_array().unwrap().iter().find(|row| row["site"]["name"] == function)
}

const FIRST: &str = "Module0.function_0_0";
const SECOND: &str = "Module2.function_2_0";

#[test]
fn a_site_that_grows_while_its_holder_shrinks_is_no_leak() {
    let held = [variable(3), variable(4)];
    let (_place, trace, heaps) = files(&[(2_500_000, held, 60_000), (5_900_000, held, 0)]);
    let figures = leaks(&trace, &heaps);
    assert_eq!(figures["leaks"].as_array().unwrap().len(), 1, "{figures}");
    let leak = row(&figures["leaks"], FIRST).unwrap();
    assert_eq!(leak["between"]["holders_grow"], true, "{leak}");
    assert_eq!(leak["between"]["holders"][0], "Main, field 3");
    assert_eq!(leak["judged"]["verdict"], "keeps growing");
    let growth = |row: &Value| row["between"]["growth_per_second"]["bytes"].as_f64().unwrap() * 3.4;
    let grew = (alive(5_900_000)[0].len() - alive(2_500_000)[0].len()) as f64 * 32.0;
    assert!((growth(leak) / grew - 1.0).abs() < 1e-6, "{} instead of {grew}", growth(leak));
    let other = row(&figures["suspects"]["rows"], SECOND).unwrap();
    assert_eq!(other["between"]["holders_grow"], false, "{other}");
    assert_eq!(other["judged"]["verdict"], "holder steady");
    let sizes = figures["snapshots"].as_array().unwrap();
    assert_eq!(sizes.len(), 2, "{sizes:?}");
    assert_eq!(sizes[0]["taken_us"], 2_500_000);
    assert_eq!(sizes[0]["holders"][0]["holder"], "Main, field 4");
    assert_eq!(figures["holder_growth"]["rows"][0]["holder"], "Main, field 3");
    // In whatever order they are named.
    let reversed: Vec<PathBuf> = heaps.iter().rev().cloned().collect();
    assert_eq!(leaks(&trace, &reversed), figures);
    let text = heaptap(&format!("leaks{}", options(&heaps)), &[&trace]).text(0);
    let words = [
        "1 site keeps growing",
        "no leak, since its holder does not grow",
        "shrank by",
        "From 2.5 s to 5.9 s",
        "Main, field 3 (+",
    ];
    for words in words {
        assert!(
            text.replace("\n                ", " ").contains(words),
            "`{words}` is not in {text}"
        );
    }
}

#[test]
fn garbage_in_a_snapshot_is_not_alive() {
    let held = [variable(3), None];
    let (_place, trace, heaps) = files(&[(2_500_000, held, 0), (5_900_000, held, 0)]);
    let figures = leaks(&trace, &heaps);
    assert!(row(&figures["leaks"], FIRST).is_some(), "{figures}");
    assert!(row(&figures["leaks"], SECOND).is_none(), "{figures}");
    // What was reachable then is known at rate 1, but for what was born in the last thousandth of the time: times of birth
    // are kept with ten bits.
    let reachable = figures["reachable"].as_array().unwrap();
    let sizes: Vec<f64> =
        reachable.iter().map(|one| one["size"]["bytes"].as_f64().unwrap()).collect();
    let exact = [2_500_000, 5_900_000].map(|at| alive(at)[0].len() as f64 * 32.0);
    for (size, exact) in sizes.iter().zip(exact) {
        assert!((size / exact - 1.0).abs() < 0.005, "{sizes:?} instead of {exact:?}");
    }
    assert_eq!(figures["known_until_us"], 5_900_000);
    assert_eq!(figures["snapshots"][1]["garbage_bytes"], alive(5_900_000)[1].len() as u64 * 32);
}

#[test]
fn a_snapshot_is_shown_where_the_trace_cannot_tell() {
    let held = [variable(3), variable(4)];
    let (_place, trace, heaps) = files(&[(200_000, held, 0)]);
    let call = format!("leaks --until 0.01s --heap {}", heaps[0].display());
    let text = heaptap(&call, &[&trace]).text(0);
    assert!(text.contains("cannot tell"), "{text}");
    for words in ["0.heap", "taken at    200 ms", "kept by     Main, field"] {
        assert!(text.contains(words), "`{words}` is not in {text}");
    }
}

#[test]
fn snapshots_that_do_not_go_together_are_refused() {
    let held = [variable(3), variable(4)];
    let (place, trace, heaps) = files(&[(2_500_000, held, 0), (5_900_000, held, 0)]);
    let twice = [heaps[0].clone(), heaps[0].clone()];
    heaptap(&format!("leaks{}", options(&twice)), &[&trace])
        .says(2, &["0.heap", "same time", "once"]);
    let other = TraceInfo { pid: 1, ..info(1.0) };
    let other = place.file("other.heap", &snapshot(&other, 9, &[(Some(1), 3, variable(3))]));
    heaptap(&format!("leaks{}", options(&[heaps[0].clone(), other])), &[&trace])
        .says(2, &["a.ctf", "another process"]);
    let before = crate::heap_snapshots::snapshot(crate::heap_snapshots::Flaw::None);
    let before = place.file("untraced.heap", &before);
    heaptap("leaks --heap", &[&before, &trace])
        .says(2, &["untraced.heap", "no trace was being written"]);
    let early = place.file("early.heap", &snapshot(&info(1.0), -5, &[(None, 3, variable(3))]));
    heaptap("leaks --heap", &[&early, &trace])
        .says(2, &["early.heap", "before the trace", "heaptap snapshot 4711"]);
}
