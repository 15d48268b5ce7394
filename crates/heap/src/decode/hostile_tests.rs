//! Files that are made to harm: the checksums are right, the contents are not.

use proptest::prelude::*;

use super::input::ChunkInput;
use super::reader::{Completion, Reader};
use crate::chunk::{ChunkHeader, ChunkKind, FILE_HEADER, file_header};
use crate::encode::{Encoder, Workspace};
use crate::model::{
    Finaliser, FinaliserKind, Item, MetaKey, Name, Root, RootOwner, Segment, SegmentKind, Tracked,
};

/// A chunk of stored streams, with lengths and a checksum that are right.
fn chunk(kind: u8, streams: &[Vec<u8>]) -> Vec<u8> {
    let mut stored = Vec::new();
    for stream in streams {
        stored.extend((stream.len() as u32).to_le_bytes());
        stored.extend((stream.len() as u32).to_le_bytes());
    }
    stored.extend(streams.concat());
    let mut header = ChunkHeader {
        kind,
        streams: streams.len() as u8,
        raw: streams.iter().map(|stream| stream.len() as u32).sum(),
        stored: stored.len() as u32,
        crc: 0,
    };
    header.crc = header.checksum(&stored);
    [&header.bytes()[..], &stored].concat()
}

/// Reads everything. Returns the number of items and of their pointers.
fn read(file: &[u8]) -> (u64, u64) {
    let mut reader = Reader::new(file).expect("the header of the file is right");
    let (mut items, mut pointers) = (0, 0);
    while let Ok(Some(item)) = reader.next_item() {
        items += 1;
        if let Item::Block(block) = item {
            assert!(block.words <= 1 << 61 && block.address & 7 == 0);
            assert!(block.pointers.iter().all(|pointer| pointer.field < block.words));
            pointers += block.pointers.len() as u64;
        }
    }
    (items, pointers)
}

/// A small snapshot with a bit of everything.
fn sample() -> Vec<u8> {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let mut write = || -> Result<(), i32> {
        encoder.meta(MetaKey::PROGRAM, b"program")?;
        encoder.segment(Segment { kind: SegmentKind::Major, start: 0x1000, words: 512 })?;
        for number in 0..60 {
            encoder.begin_block(0x1008 + number * 64, number % 7, number as u32 % 3)?;
            for field in 0..number % 7 {
                encoder.pointer(field, 0x1008 + (number * field % 60) * 64)?;
            }
            encoder.end_block()?;
        }
        encoder.begin_block(0x2008, 40, 0)?;
        encoder.pointer(3, 0x1008)?;
        encoder.pointer(4, u64::MAX - 7)?;
        encoder.code(5, 0x400)?;
        encoder.custom(0x500, 7)?;
        encoder.string(b"contents")?;
        encoder.end_block()?;
        encoder.root(Root { owner: RootOwner::LocalC { thread: 1 }, target: 0x1008 })?;
        encoder.root(Root { owner: RootOwner::Hook { slot: 7 }, target: 0x1008 })?;
        let (value, function) = (0x1008, 0x2008);
        encoder.finaliser(Finaliser { kind: FinaliserKind::Last, value, function })?;
        encoder.begin_ephemeron(0x1008)?;
        encoder.ephemeron_key(3, 0x1008)?;
        encoder.ephemeron_data(0x1008)?;
        encoder.end_ephemeron()?;
        encoder.thread(1, 2, b"main")?;
        encoder.name(Name { address: 0x400, function: b"f", file: b"f.ml", line: 3 })?;
        encoder.tracked(Tracked { address: 0x1008, id: 7 })
    };
    write().expect("memory takes everything");
    encoder.finish().expect("memory takes everything").1
}

proptest! {
    #[test]
    fn any_contents_of_a_chunk_are_read_or_refused(
        kind in 0u8..20,
        streams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..=8),
        parts in 0u64..200_000,
    ) {
        let mut streams = streams;
        if kind == ChunkKind::Blocks as u8 && let Some(parameters) = streams.first_mut() {
            *parameters = vec![1, parts as u8 | 0x80, (parts >> 7) as u8 | 0x80, (parts >> 14) as u8];
        }
        let file = [&file_header()[..], &chunk(kind, &streams), &chunk(kind, &streams)].concat();
        let (items, pointers) = read(&file);
        prop_assert!(items <= 1 << 18 && pointers <= 1 << 19, "{items} {pointers}");
    }

    /// One byte of a chunk's contents is changed before the checksum is computed.
    #[test]
    fn a_changed_byte_is_read_or_refused(byte in any::<u8>(), at in 0usize..2000) {
        let file = sample();
        let mut chunks = ChunkInput::new(&file[..]).unwrap();
        let mut changed = file_header().to_vec();
        let mut left = at;
        while let Some(kind) = chunks.next().unwrap() {
            let mut streams = chunks.streams.to_vec();
            for stream in &mut streams {
                match stream.get_mut(left) {
                    Some(slot) => {
                        *slot = byte;
                        left = usize::MAX;
                    }
                    None => left = left.saturating_sub(stream.len()),
                }
            }
            changed.extend(chunk(kind, &streams));
        }
        read(&changed);
    }
}

#[test]
fn chunks_of_a_later_version_are_skipped() {
    let file = sample();
    let (header, rest) = file.split_at(FILE_HEADER);
    let with_another = [header, &chunk(99, &[vec![1, 2, 3]]), rest].concat();
    let mut reader = Reader::new(&with_another[..]).unwrap();
    while reader.next_item().unwrap().is_some() {}
    assert_eq!(reader.completion(), Completion::Complete);
    assert_eq!(reader.skipped_chunks(), 1);
    let without = read(&file);
    assert_eq!(read(&with_another), without);
}

#[test]
fn the_first_version_is_read() {
    let mut file = sample();
    let expected = read(&file);
    file[8] = 1;
    let crc = heaptap_codec::crc::crc32c(&[&file[..12]]);
    file[12..FILE_HEADER].copy_from_slice(&crc.to_le_bytes());
    assert_eq!(read(&file), expected);
}

#[test]
fn a_later_version_of_the_file_is_named() {
    let mut header = file_header();
    header[8] = 7;
    let crc = heaptap_codec::crc::crc32c(&[&header[..12]]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    let error = Reader::new(&header[..]).unwrap_err();
    assert!(error.to_string().contains("version 7"), "{error}");
    assert!(error.to_string().contains("use a newer heaptap"), "{error}");
}
