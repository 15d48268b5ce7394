//! Snapshots whose parts do not fit together.

use std::io::Cursor;

use heaptap_graph::{CheckReport, Finding, HeapGraph, LoadOptions, Summary, check};
use heaptap_heap::{
    Encoder, EphemeronKey, Finaliser, FinaliserKind, Pointer, Root, RootKind, RootOwner, Segment,
    SegmentKind, Totals, Tracked, Workspace,
};

use crate::snapshot::{OwnedBlock, Record, write};

const MEMORY: u64 = 1 << 30;
const SEGMENT: Segment = Segment { kind: SegmentKind::Major, start: 0x1000, words: 512 };

fn block(address: u64, words: u64, targets: &[u64]) -> Record {
    let pointers = (0..).zip(targets).map(|(field, &target)| Pointer { field, target }).collect();
    Record::Block(OwnedBlock { address, words, pointers, ..OwnedBlock::default() })
}

fn checked(records: &[Record]) -> CheckReport {
    check(Cursor::new(write(records).1), MEMORY).unwrap()
}

fn findings(records: &[Record]) -> Vec<Finding> {
    let report = checked(records);
    assert_eq!(report.is_sound(), report.findings.is_empty());
    report.findings
}

fn loaded(records: &[Record]) -> HeapGraph {
    let options = LoadOptions { memory: MEMORY, fields: false };
    HeapGraph::load(Cursor::new(write(records).1), options).unwrap()
}

/// A sound snapshot, to which the tests add what is wrong.
fn sound() -> Vec<Record> {
    vec![
        Record::Segment(SEGMENT),
        block(0x1008, 2, &[0x1020]),
        block(0x1020, 3, &[0x1008, 0x1020]),
        Record::Module(7, b"Main".to_vec()),
        Record::Root(Root { owner: RootOwner::Global { module: 7, field: 0 }, target: 0x1008 }),
    ]
}

fn with(further: &[Record]) -> Vec<Record> {
    [sound(), further.to_vec()].concat()
}

#[test]
fn a_sound_snapshot() {
    let report = checked(&sound());
    assert!(report.is_sound(), "{:?}", report.findings);
    assert_eq!((report.counted.blocks, report.counted.words), (2, 5));
}

fn root(target: u64) -> Record {
    Record::Root(Root { owner: RootOwner::Hook { slot: 0x78 }, target })
}

#[test]
fn pointers_to_nowhere() {
    assert_eq!(
        findings(&with(&[block(0x1100, 2, &[0x1008, 0x1018]), root(0x1100)])),
        [Finding::DanglingPointer { block: 0x1100, field: 1, target: 0x1018 }]
    );
    let slot = 0x77;
    let root = Root { owner: RootOwner::Hook { slot }, target: 0x5000 };
    let value = Finaliser { kind: FinaliserKind::Last, value: 0x5008, function: 0 };
    let continuation =
        RootOwner::Continuation { block: 0x5028, depth: 0, return_address: 1, slot: 0 };
    let bad = [
        (Record::Root(root), "root", 0x5000),
        (Record::Finaliser(value), "finaliser", 0x5008),
        (Record::Ephemeron { address: 0x5010, data: None, keys: vec![] }, "ephemeron", 0x5010),
        (
            Record::Ephemeron { address: 0x1008, data: Some(0x5018), keys: vec![] },
            "ephemeron",
            0x5018,
        ),
        (Record::Tracked(Tracked { address: 0x5020, id: 1 }), "followed block", 0x5020),
        (Record::Root(Root { owner: continuation, target: 0x1008 }), "continuation", 0x5028),
    ];
    for (record, from, target) in bad {
        assert_eq!(findings(&with(&[record])), [Finding::NoBlock { from, target }]);
    }
}

#[test]
fn pointers_of_garbage_may_lead_nowhere() {
    let last = Finaliser { kind: FinaliserKind::Last, value: 0x1100, function: 0 };
    let keys = vec![EphemeronKey { index: 0, target: 0x1120 }];
    let garbage = with(&[
        block(0x1100, 2, &[0x5000, 0x1120]),
        block(0x1120, 3, &[0x5000, 0x1020, 0x5008]),
        Record::Finaliser(last),
        Record::Ephemeron { address: 0x1008, data: Some(0x1100), keys },
    ]);
    let report = checked(&garbage);
    assert_eq!((report.findings.as_slice(), report.lost_by_garbage), (&[][..], 3));
    assert!(report.is_sound());
    assert_eq!((loaded(&garbage).dangling(), loaded(&garbage).pointers()), (0, 5));

    // The key holds the data.
    let alive = [garbage, vec![root(0x1120)]].concat();
    let report = checked(&alive);
    let lost = |block, field, target| Finding::DanglingPointer { block, field, target };
    let expected = [lost(0x1100, 0, 0x5000), lost(0x1120, 0, 0x5000), lost(0x1120, 2, 0x5008)];
    assert_eq!((report.findings.as_slice(), report.lost_by_garbage), (&expected[..], 0));
    assert_eq!(loaded(&alive).dangling(), 3);
}

/// Blocks that are alive are missed at the place where the way to them breaks off.
#[test]
fn what_is_missing_below_a_root_is_found() {
    let chain: Vec<_> = (0..8).map(|number| 0x1100 + number * 16).collect();
    for missing in 0..chain.len() {
        let mut records = with(&[root(chain[0])]);
        for (number, address) in chain.iter().enumerate().filter(|(number, _)| *number != missing) {
            records.push(block(*address, 1, &chain[(number + 1) % chain.len()..][..1]));
        }
        let expected = match missing {
            0 => Finding::NoBlock { from: "root", target: chain[0] },
            _ => Finding::DanglingPointer {
                block: chain[missing - 1],
                field: 0,
                target: chain[missing],
            },
        };
        assert_eq!(findings(&records), [expected]);
    }
}

#[test]
fn slots_of_a_suspended_stack_count_as_long_as_its_continuation_is_alive() {
    let slot = |block| {
        let owner = RootOwner::Continuation { block, depth: 0, return_address: 0, slot: 2 };
        Record::Root(Root { owner, target: 0x5000 })
    };
    let dead = with(&[block(0x1100, 1, &[]), slot(0x1100)]);
    assert_eq!(findings(&dead), [], "its stack may be free");
    assert_eq!(loaded(&dead).dangling(), 0);
    let alive = with(&[slot(0x1020)]);
    assert_eq!(findings(&alive), [Finding::NoBlock { from: "root", target: 0x5000 }]);
    assert_eq!(loaded(&alive).dangling(), 1);
    let nowhere = with(&[slot(0x5008)]);
    assert_eq!(findings(&nowhere), [Finding::NoBlock { from: "continuation", target: 0x5008 }]);
}

#[test]
fn blocks_and_segments_that_overlap() {
    assert_eq!(
        findings(&with(&[block(0x1030, 2, &[])])),
        [Finding::Overlap { block: 0x1030, end: 0x1038 }]
    );
    assert_eq!(
        findings(&with(&[block(0x1ff8, 2, &[])])),
        [Finding::OutsideSegments { block: 0x1ff8 }]
    );
    assert_eq!(
        findings(&with(&[block(0x800, 2, &[])])),
        [Finding::OutsideSegments { block: 0x800 }]
    );
    let second = Segment { start: 0x1ff8, ..SEGMENT };
    assert_eq!(
        findings(&with(&[Record::Segment(second)])),
        [Finding::SegmentsOverlap { start: 0x1ff8 }]
    );
}

#[test]
fn neighbours_that_only_touch() {
    let empty = Record::Segment(Segment { words: 0, ..SEGMENT });
    assert_eq!(findings(&with(std::slice::from_ref(&empty))), [], "behind the full one");
    assert_eq!(findings(&[vec![empty], sound()].concat()), [], "before it");
    let lower = Record::Segment(Segment { start: 0xf00, words: 32, ..SEGMENT });
    assert_eq!(findings(&with(&[lower, block(0x1000, 0, &[])])), [], "a block without words");
    assert_eq!(
        findings(&with(&[block(0x1028, 0, &[])])),
        [Finding::Overlap { block: 0x1028, end: 0x1038 }]
    );
}

#[test]
fn ids_that_are_not_listed() {
    let owner = RootOwner::Stack { thread: 3, depth: 0, return_address: 0x400, slot: 0 };
    assert_eq!(
        findings(&with(&[Record::Root(Root { owner, target: 0x1008 })])),
        [Finding::UnknownId { list: "thread", id: 3 }]
    );
    let owner = RootOwner::Global { module: 8, field: 0 };
    assert_eq!(
        findings(&with(&[Record::Root(Root { owner, target: 0x1008 })])),
        [Finding::UnknownId { list: "module", id: 8 }]
    );
}

#[test]
fn totals_that_differ() {
    let mut workspace = Box::new(Workspace::new());
    let encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let (totals, mut file) = encoder.suspend().unwrap();
    let totals = Totals { roots: 3, ..totals };
    Encoder::resume(&mut file, &mut workspace, 1, totals).finish().unwrap();
    let report = check(Cursor::new(&file), MEMORY).unwrap();
    assert_eq!(report.findings, [Finding::TotalDiffers { name: "roots", declared: 3, counted: 0 }]);
}

#[test]
fn many_findings_are_counted_and_not_kept() {
    let targets: Vec<u64> = (0..100).map(|number| 0x9000 + number * 8).collect();
    let report = checked(&with(&[block(0x1100, 100, &targets), root(0x1100)]));
    assert_eq!(report.finding_count, 100);
    assert_eq!(report.findings.len(), CheckReport::MOST_FINDINGS);
}

#[test]
fn pointers_into_the_missing_part_are_no_findings() {
    let (_, file) = write(&with(&[block(0x1100, 1, &[0x9000]), root(0x1100)]));
    let report = check(Cursor::new(&file[..file.len() - 1]), MEMORY).unwrap();
    assert!(report.is_sound());
}

#[test]
fn a_summary_counts_by_kind() {
    let custom = OwnedBlock {
        address: 0x1100,
        words: 2,
        custom: Some((0x700, 4096)),
        ..OwnedBlock::default()
    };
    let records = with(&[
        Record::Block(custom),
        Record::CustomKind(0x700, b"_bigarr02".to_vec()),
        Record::Finaliser(Finaliser { kind: FinaliserKind::First, value: 0x1008, function: 0 }),
        Record::Meta(1, b"OCaml".to_vec()),
    ]);
    let (totals, file) = write(&records);
    let summary = Summary::read(&file[..]).unwrap();
    assert_eq!((summary.counted, summary.declared), (totals, Some(totals)));
    assert_eq!(summary.roots.get(&RootKind::Global), Some(&1));
    assert_eq!(summary.finalisers.get(&FinaliserKind::First), Some(&1));
    let custom = &summary.customs[&0x700];
    assert_eq!((&custom.identifier[..], custom.blocks), (&b"_bigarr02"[..], 1));
    assert_eq!((custom.outside.allocated, summary.outside.allocated), (4096, 4096));
    assert_eq!(summary.segments[&SegmentKind::Major].words, 512);
    assert_eq!(summary.meta(heaptap_heap::MetaKey::RUNTIME), Some(&b"OCaml"[..]));
}
