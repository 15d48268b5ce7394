//! Small heap snapshots.

use heaptap_heap::{
    Encoder, Finaliser, FinaliserKind, KindNamespace, MetaKey, Name, Root, RootOwner, Segment,
    SegmentKind, Tracked, Workspace,
};

type Snapshot<'w> = Encoder<'w, Vec<u8>>;
type Feature = fn(&mut Snapshot<'_>) -> Result<(), i32>;

const FEATURES: &[(&str, Feature)] = &[
    ("empty", |_| Ok(())),
    ("facts", facts),
    ("small-blocks", small_blocks),
    ("big-blocks", big_blocks),
    ("extras", extras),
    ("roots", roots),
    ("held", held),
    ("names", names),
    ("all", all_features),
];

/// Every seed: its name and its bytes.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    let mut workspace = Box::new(Workspace::new());
    let mut files = Vec::new();
    for (name, feature) in FEATURES {
        let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
        feature(&mut encoder).expect("a valid snapshot");
        files.push((*name, encoder.finish().expect("a valid snapshot").1));
    }
    files
}

fn address(number: u64) -> u64 {
    0x7f00_0000_0008 + number * 48
}

fn facts(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    encoder.meta(MetaKey::RUNTIME, b"OCaml 4.14.1 native")?;
    encoder.meta_number(MetaKey::PID, 4711)?;
    let (kind, start) = (SegmentKind::Major, 0x7f00_0000_0000);
    encoder.segment(Segment { kind, start, words: 4096 })
}

fn small_blocks(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    for number in 0..80 {
        let words = 1 + number % 5;
        encoder.begin_block(address(number), words, (number % 3) as u32)?;
        for field in 0..words / 2 {
            encoder.pointer(field * 2, address(number * (field + 7) % 80))?;
        }
        encoder.end_block()?;
    }
    Ok(())
}

fn big_blocks(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    for number in 100..103 {
        encoder.begin_block(address(number * 7), 40, 0)?;
        for field in (number - 100)..30 {
            encoder.pointer(field, address(field * number % 80))?;
        }
        encoder.pointer(39, u64::MAX - 7)?;
        encoder.end_block()?;
    }
    Ok(())
}

fn extras(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    for number in 200..206 {
        encoder.begin_block(address(number), 4, 247)?;
        encoder.code(0, 0x40_0000 + number * 16)?;
        encoder.custom(0x50_0000, number << 10)?;
        encoder.string(b"contents")?;
        encoder.end_block()?;
    }
    Ok(())
}

fn roots(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    let (depth, return_address, slot) = (3, 0x40_0010, 2);
    for owner in [
        RootOwner::Global { module: 1, field: 2 },
        RootOwner::Stack { thread: 1, depth, return_address, slot },
        RootOwner::LocalC { thread: 1 },
        RootOwner::GlobalC { slot: 0x60_0000 },
        RootOwner::Hook { slot: 0x60_0008 },
        RootOwner::Continuation { block: address(3), depth, return_address, slot },
        RootOwner::Host { kind: 7, index: 9 },
    ] {
        encoder.root(Root { owner, target: address(5) })?;
    }
    Ok(())
}

fn held(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    for kind in [FinaliserKind::First, FinaliserKind::Last, FinaliserKind::Pending] {
        encoder.finaliser(Finaliser { kind, value: address(1), function: address(2) })?;
    }
    for number in 0..3 {
        encoder.begin_ephemeron(address(number))?;
        encoder.ephemeron_key(number, address(number + 5))?;
        encoder.ephemeron_data(address(number + 6))?;
        encoder.ephemeron_key(number + 4, address(number + 1))?;
        encoder.end_ephemeron()?;
    }
    Ok(())
}

fn names(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    encoder.module(1, b"Main")?;
    encoder.thread(1, 0, b"main")?;
    encoder.code_seen(0x40_0000)?;
    encoder.custom_kind(0x50_0000, b"_bigarr02")?;
    encoder.kind_name(KindNamespace::Tag, 247, b"closure")?;
    let (function, file) = (b"Main.f", b"main.ml");
    encoder.name(Name { address: 0x40_0000, function, file, line: 7 })?;
    encoder.tracked(Tracked { address: address(4), id: 12 })
}

fn all_features(encoder: &mut Snapshot<'_>) -> Result<(), i32> {
    for feature in [facts, small_blocks, big_blocks, extras, roots, held, names] {
        feature(encoder)?;
    }
    Ok(())
}
