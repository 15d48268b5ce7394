//! `heaptap heap` on heaps that are made for a question: lists, slices of arrays outside the heap, mapped files.

use heaptap_heap::{
    Encoder, MetaKey, OutsideArea, OutsideKind, Root, RootOwner, Segment, SegmentKind, Tracked,
    Workspace,
};
use heaptap_trace::{Block, Format, Source, TraceInfo};
use serde_json::Value;

use crate::program::{Place, heaptap};
use crate::traces::{Sources, Writer, trace_info};

const CUSTOM: u32 = 255;
const OPERATIONS: u64 = 0x700;
const START: u64 = 0x1_0000;

fn at(number: u64) -> u64 {
    START + 8 + number * 32
}

/// A snapshot of blocks of three words, which the caller describes.
fn made(describe: impl Fn(&mut Encoder<'_, Vec<u8>>) -> Result<(), i32>) -> Vec<u8> {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let mut write = || -> Result<(), i32> {
        encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
        encoder.meta_number(MetaKey::HEADER_WORDS, 1)?;
        encoder.segment(Segment { kind: SegmentKind::Major, start: START, words: 1 << 20 })?;
        encoder.module(0, b"Main")?;
        describe(&mut encoder)
    };
    write().unwrap();
    encoder.finish().unwrap().1
}

fn root(encoder: &mut Encoder<'_, Vec<u8>>, field: u32, block: u64) -> Result<(), i32> {
    let owner = RootOwner::Global { module: 0, field };
    encoder.root(Root { owner, target: at(block) })
}

/// A list of a thousand cells that begins in field 1 of a record, and ends in a string.
fn list() -> Vec<u8> {
    made(|encoder| {
        for number in 0..=1000 {
            encoder.begin_block(at(number), if number == 0 { 2 } else { 3 }, 0)?;
            let field = if number == 0 { 1 } else { 2 };
            encoder.pointer(field, at(number + 1))?;
            encoder.end_block()?;
        }
        encoder.begin_block(at(1001), 1, 252)?;
        encoder.end_block()?;
        root(encoder, 7, 0)
    })
}

#[test]
fn a_path_through_a_list_is_folded_and_names_fields() {
    let place = Place::new();
    let path = place.file("a.heap", &list());
    let target = format!("{:#x}", at(1001));
    let text = heaptap(&format!("heap --path {target}"), &[&path]).text(0);
    let cells = format!(
        "  field 1: 1000 × block of 3 words at {:#x}, linked by field 2, the last at {:#x}",
        at(1),
        at(1000)
    );
    let shortest: Vec<&str> = text.lines().skip(4).take(4).collect();
    let expected = [
        "  Main, field 7".to_owned(),
        format!("  block of 2 words at {:#x}", at(0)),
        cells.clone(),
        format!("  field 2: string at {target}"),
    ];
    assert_eq!(shortest, expected, "{text}");
    assert!(text.contains(&format!("{cells}, retains 31.3 KiB")), "{text}");
    let held: Value =
        serde_json::from_str(&heaptap(&format!("heap --json --path {target}"), &[&path]).text(0))
            .unwrap();
    assert_eq!(held["shortest"].as_array().unwrap().len(), 4);
    assert_eq!(held["dominators"].as_array().unwrap().len(), 6);
}

/// An array of a million bytes, slices of it and of a mapped file, in one variable and in another.
fn slices() -> Vec<u8> {
    made(|encoder| {
        let area = |number: u64, start, bytes, kind| OutsideArea {
            block: at(number),
            operations: OPERATIONS,
            start,
            bytes,
            kind,
        };
        for number in 0..22 {
            let shown = if number == 0 { 1_000_000 } else { 500_000 };
            encoder.begin_block(at(number), 3, CUSTOM)?;
            encoder.custom(OPERATIONS, shown)?;
            encoder.end_block()?;
            let (start, kind) = match number {
                21 => (900_000_000, OutsideKind::Mapped),
                _ => (500_000_000, OutsideKind::Allocated),
            };
            encoder.outside_area(area(number, start, shown + number, kind))?;
        }
        encoder.begin_block(at(30), 3, 0)?;
        encoder.pointer(0, at(20))?;
        encoder.pointer(1, at(21))?;
        encoder.end_block()?;
        for number in 0..20 {
            root(encoder, number, number.into())?;
        }
        root(encoder, 20, 30)?;
        encoder.root(Root { owner: RootOwner::Hook { slot: 8 }, target: at(1) })
    })
}

#[test]
fn data_that_slices_share_counts_once_and_mapped_files_apart() {
    let place = Place::new();
    let path = place.file("a.heap", &slices());
    let figures: Value = serde_json::from_str(&heaptap("heap --json", &[&path]).text(0)).unwrap();
    assert_eq!(figures["outside_bytes"], 1_000_000);
    assert_eq!(figures["mapped_bytes"], 500_021);
    // The hook holds a slice too, so that no variable holds the data alone.
    let rows = figures["table"]["rows"].as_array().unwrap();
    let sum = |field: &str| rows.iter().map(|row| row[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("outside_bytes"), sum("first_outside_bytes")), (0, 1_000_000));
    assert_eq!((&rows[0]["name"], sum("mapped_bytes")), (&"Main, field 0".into(), 500_021));
    let text = heaptap("heap", &[&path]).text(0);
    assert!(text.contains("Main, field 0 (+ 976.6 KiB outside, shared)"), "{text}");
    assert!(text.contains("Main, field 20 (+ 488.3 KiB mapped)"), "{text}");
    let info = heaptap("info", &[&path]).text(0);
    assert!(
        info.contains("22 of operations at 0x700, 976.6 KiB outside, 488.3 KiB mapped"),
        "{info}"
    );
    let dump = heaptap("dump", &[&path]).text(0);
    let line = format!("outside mapped {:#x} 0x700 0x35a4e900 500021", at(21));
    assert!(dump.contains(&line), "{dump}");
    heaptap("snapshot --check", &[&path]).says(0, &[]);
    let (hprof, folded) = (place.path("a.hprof"), place.path("a.folded"));
    let export = |format: &str, out: &std::path::Path| {
        heaptap(&format!("export --to {format} -o {}", out.display()), &[&path])
            .says(0, &["500021 bytes of mapped files are not in the export"]);
        std::fs::metadata(out).unwrap().len()
    };
    assert!((1_000_000..1_100_000).contains(&export("hprof", &hprof)));
    export("folded", &folded);
}

/// A trace whose only block is outside the heap, of so many words, and a snapshot with its custom block.
fn join(words: u64, outside_bytes: u64, tag: u32) -> crate::program::Run {
    let place = Place::new();
    let info = TraceInfo { pid: 4711, sample_rate: 1.0, ..trace_info() };
    let mut writer = Writer::of(Format::V3, &info);
    writer.time += 500;
    let block = Block { length: words, samples: words, source: Source::External };
    let id = writer.alloc(0, block, &[Sources::FIRST]);
    let trace = place.file("a.ctf", &writer.finish());
    let heap = made(|encoder| {
        encoder.meta_number(MetaKey::PID, info.pid)?;
        encoder.meta_number(MetaKey::TRACE_START, info.start_time)?;
        encoder.meta(MetaKey::TRACE_FILE, b"/nowhere/a.ctf")?;
        encoder.begin_block(at(0), 3, tag)?;
        if tag == CUSTOM {
            encoder.custom(OPERATIONS, outside_bytes)?;
        }
        encoder.end_block()?;
        root(encoder, 0, 0)?;
        encoder.tracked(Tracked { address: at(0), id })
    });
    let heap = place.file("a.heap", &heap);
    heaptap("report --heap", &[&heap, &trace])
}

#[test]
fn a_block_outside_the_heap_is_compared_with_what_its_custom_block_shows() {
    join(1000, 8007, CUSTOM).text(0);
    // Kinds other than bigarrays do not say what they keep.
    join(1000, 0, CUSTOM).text(0);
    join(1000, 8008, CUSTOM).says(2, &["its blocks have other sizes"]);
    join(3, 8000, CUSTOM).says(2, &["its blocks have other sizes"]);
    join(1000, 0, 0).says(2, &["its blocks have other sizes"]);
}
