//! Heap snapshots: `heaptap info`, `heaptap snapshot --check`, and what other verbs say to one.

use heaptap_heap::{
    Encoder, Finaliser, FinaliserKind, MetaKey, Root, RootOwner, Segment, SegmentKind, Workspace,
};
use heaptap_trace::Format;
use serde_json::Value;

use crate::program::{Place, heaptap, heaptap_reading};
use crate::traces::workload;

/// What is wrong with a snapshot.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Flaw {
    None,
    DanglingPointer,
    /// Of the block that nobody holds.
    DanglingGarbage,
}

/// Blocks at 0x1008 … of 2 words each: the first three in a chain from a global, the fourth
/// held by a hook, the fifth by nobody.
pub(crate) fn snapshot(flaw: Flaw) -> Vec<u8> {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let address = |number: u64| 0x1008 + number * 24;
    let mut write = || -> Result<(), i32> {
        encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
        encoder.meta(MetaKey::PROGRAM, b"/usr/bin/\x1b[31mserver")?;
        encoder.meta_number(MetaKey::PID, 4711)?;
        encoder.meta_number(MetaKey::TIME, 1_700_000_000_123_456_789)?;
        encoder.meta(MetaKey::REASON, b"request")?;
        encoder.segment(Segment { kind: SegmentKind::Major, start: 0x1000, words: 512 })?;
        for number in 0..5 {
            encoder.begin_block(address(number), 2, 0)?;
            if number < 2 {
                encoder.pointer(1, address(number + 1))?;
            }
            if number == 3 {
                encoder.custom(0x700, 1 << 20)?;
            }
            let has_flaw = match flaw {
                Flaw::None => false,
                Flaw::DanglingPointer => number == 2,
                Flaw::DanglingGarbage => number == 4,
            };
            if has_flaw {
                encoder.pointer(0, 0x9000)?;
            }
            encoder.end_block()?;
        }
        encoder.custom_kind(0x700, b"_bigarr02")?;
        encoder.module(0, b"Main")?;
        let owner = RootOwner::Global { module: 0, field: 3 };
        encoder.root(Root { owner, target: address(0) })?;
        encoder.root(Root { owner: RootOwner::Hook { slot: 8 }, target: address(3) })?;
        let kind = FinaliserKind::Last;
        encoder.finaliser(Finaliser { kind, value: address(4), function: address(2) })
    };
    write().unwrap();
    encoder.finish().unwrap().1
}

#[test]
fn info_sums_up_a_snapshot() {
    let place = Place::new();
    let path = place.file("a.heap", &snapshot(Flaw::None));
    let text = heaptap("info", &[&path]).text(0);
    for words in [
        "OCaml 4.14.1 native",
        "2023-11-14",
        "request",
        "blocks          5",
        "10 words",
        "1 major, 512 words",
        "1 of globals",
        "1 of hooks",
        "0 first, 1 last, 0 pending",
        "1 of _bigarr02, 1.0 MiB outside",
        "complete",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
    assert!(!text.contains('\x1b'), "{text}");

    let facts: Value = serde_json::from_str(&heaptap("info --json", &[&path]).text(0)).unwrap();
    assert_eq!(facts["kind"], "heap snapshot");
    assert_eq!(facts["pid"], 4711);
    assert_eq!(facts["blocks"], 5);
    assert_eq!(facts["words"], 10);
    assert_eq!(facts["complete"], true);
    assert_eq!(facts["roots"][1]["kind"], "hooks");
    assert_eq!(facts["customs"][0]["outside_bytes"], 1 << 20);
}

/// A pipe can be read only once, and its kind is known only from its first bytes.
#[test]
fn a_piped_snapshot_is_recognised() {
    let place = Place::new();
    let file = snapshot(Flaw::None);
    let path = place.file("a.heap", &file);
    for verb in ["info --json", "dump"] {
        let of_file = heaptap(verb, &[&path]).text(0);
        let piped = heaptap_reading(&format!("{verb} -"), &[], &file).text(0);
        let named = of_file.replace(&format!("{:?}", path.display()), "\"standard input\"");
        assert_eq!(piped, named, "{verb}");
    }
    heaptap_reading("dump --json -", &[], &file)
        .says(2, &["standard input: a heap snapshot", "--json and --merge are for traces"]);
    // What is shorter than any magic number is no trace, and no snapshot either.
    heaptap_reading("info -", &[], &file[..3]).says(2, &["standard input"]);
}

#[test]
fn check_finds_a_snapshot_sound() {
    let place = Place::new();
    let file = snapshot(Flaw::None);
    let path = place.file("a.heap", &file);
    let text = heaptap("snapshot --check", &[&path]).text(0);
    assert!(text.contains("a.heap: sound\n"), "{text}");
    assert!(text.contains("5 blocks, 10 words"), "{text}");
    let piped = heaptap_reading("snapshot --check -", &[], &file).text(0);
    assert!(piped.contains("standard input: sound\n"), "{piped}");
}

#[test]
fn reachable_blocks_are_counted_by_kind_of_root() {
    let place = Place::new();
    let path = place.file("a.heap", &snapshot(Flaw::None));
    let text = heaptap("snapshot --reachable --check", &[&path]).text(0);
    for words in [
        "  reachable: 4 blocks, 8 words (80.0 %)",
        "  not reachable: 1 block, 2 words (20.0 %)",
        "from globals (1 root): 3 blocks, 6 words (60.0 %); not from the kinds above: 3 blocks",
        "from hooks (1 root): 1 block, 2 words",
        "from finalisers (1 root): 1 block, 2 words (20.0 %); not from the kinds above: 0 blocks",
    ] {
        assert!(text.contains(words), "`{words}` is not in: {text}");
    }
}

#[test]
fn a_dangling_pointer_is_a_defect() {
    let place = Place::new();
    let path = place.file("a.heap", &snapshot(Flaw::DanglingPointer));
    let text = heaptap("snapshot --check", &[&path]).text(1);
    assert!(text.contains("defective"), "{text}");
    assert!(text.contains("field 0 of the block at 0x1038 points to 0x9000"), "{text}");
    let heap = heaptap("heap", &[&path]).text(0);
    assert!(heap.contains("1 pointer leads to no block"), "{heap}");
}

#[test]
fn garbage_may_point_to_what_is_gone() {
    let place = Place::new();
    let path = place.file("a.heap", &snapshot(Flaw::DanglingGarbage));
    let text = heaptap("snapshot --check", &[&path]).text(0);
    assert!(text.contains("a.heap: sound\n"), "{text}");
    assert!(text.contains("  garbage: 1 pointer leads to no block"), "{text}");
    let heap = heaptap("heap", &[&path]).text(0);
    assert!(!heap.contains("to no block"), "{heap}");
    let sound = place.file("b.heap", &snapshot(Flaw::None));
    let text = heaptap("snapshot --check", &[&sound]).text(0);
    assert!(!text.contains("garbage:"), "{text}");
}

#[test]
fn a_snapshot_that_is_cut_short_is_sound_and_said_to_be() {
    let place = Place::new();
    let file = snapshot(Flaw::DanglingPointer);
    let path = place.file("a.heap", &file[..file.len() - 5]);
    let text = heaptap("snapshot --reachable --check", &[&path]).text(0);
    assert!(text.contains("sound, but cut short"), "{text}");
    assert!(text.contains("what is reachable is not known"), "{text}");
    let info = heaptap("info", &[&path]);
    info.says(0, &["cut short after byte"]);
    assert!(info.text(0).contains("cut short"));
}

#[test]
fn a_damaged_snapshot_is_defective() {
    let place = Place::new();
    let mut file = snapshot(Flaw::None);
    let middle = file.len() / 2;
    file[middle] ^= 1;
    let path = place.file("a.heap", &file);
    let text = heaptap("snapshot --check", &[&path]).text(1);
    assert!(text.contains("checksum does not match"), "{text}");
    heaptap("info", &[&path]).says(1, &["checksum does not match", "chunk"]);
}

#[test]
fn verbs_for_traces_say_what_a_snapshot_is() {
    let place = Place::new();
    let path = place.file("a.heap", &snapshot(Flaw::None));
    for verb in ["report", "leaks", "hot", "check"] {
        let words = ["a.heap", "it is a heap snapshot", "heaptap snapshot --check FILE"];
        heaptap(verb, &[&path]).says(2, &words);
    }
    // A pipe is taken for a trace where the format is for both.
    for format in ["folded", "pprof", "html"] {
        let out = place.path("out");
        let call = format!("export - --to {format} -o {}", out.display());
        heaptap_reading(&call, &[], &snapshot(Flaw::None))
            .says(2, &["standard input", "it is a heap snapshot", "from a file, not from a pipe"]);
        assert!(!out.exists(), "{format}");
    }
    let (first, second) = (place.path("b.ctf"), place.path("c.ctf"));
    heaptap("diff", &[&path, &path]).says(2, &["it is a heap snapshot"]);
    heaptap("recode", &[&path, &first]).says(2, &["it is a heap snapshot"]);
    heaptap("anonymise", &[&path, &second]).says(2, &["it is a heap snapshot"]);
}

#[test]
fn check_says_what_another_file_is() {
    let place = Place::new();
    let trace = place.file("a.ctf", &workload(Format::V3, 1, 100, 1));
    heaptap("snapshot --check", &[&trace])
        .says(2, &["a.ctf: not a heap snapshot but a trace", "heaptap check FILE"]);
    let other = place.file("notes", b"something else");
    heaptap("snapshot --check", &[&other]).says(2, &["notes: not a heap snapshot"]);
    let empty = place.file("empty.heap", b"");
    heaptap("snapshot --check", &[&empty]).says(2, &["empty.heap: not a heap snapshot"]);
    heaptap("snapshot --check", &[&place.path("none")]).says(2, &["no such file"]);
}
