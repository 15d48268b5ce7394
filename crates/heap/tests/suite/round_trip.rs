//! What is written is read again.

use heaptap_heap::{
    Completion, Encoder, EphemeronKey, Pointer, Root, RootOwner, Suspended, Workspace,
};
use proptest::prelude::*;

use crate::snapshot::{OwnedBlock, Record, by_kind, read, record, write, write_record};

/// A block that is bigger than a chunk.
fn huge_block(address: u64, words: u64) -> OwnedBlock {
    let pointers = (0..words)
        .filter(|field| field % 7 != 3)
        .map(|field| Pointer {
            field,
            target: field.wrapping_mul(0x9e37_79b9_7f4a) & 0x7fff_ffff_fff8,
        })
        .collect();
    OwnedBlock { address, words, tag: 0, pointers, ..OwnedBlock::default() }
}

#[test]
fn a_block_that_spans_chunks() {
    let small = OwnedBlock { address: 0x1000, words: 1, tag: 7, ..OwnedBlock::default() };
    let mut huge = huge_block(0x2000, 600_000);
    huge.codes = (0..100_000).map(|field| (field, field * 48 + 5)).collect();
    huge.custom = Some((0x4444, 1 << 40));
    huge.string = Some(b"contents".to_vec());
    let last = OwnedBlock { address: 0x2000 + 600_001 * 8, ..small.clone() };
    let records = [small, huge, last].map(Record::Block);
    let (totals, file) = write(&records);
    let reading = read(&file).unwrap();
    assert!(reading.error.is_none(), "{:?}", reading.error);
    assert_eq!(reading.records, records);
    assert_eq!((totals.blocks, totals.words), (3, 600_002));
    assert_eq!(totals.pointers, 600_000 - 600_000 / 7 - u64::from(600_000 % 7 > 3u32));
}

#[test]
fn an_ephemeron_that_spans_chunks() {
    let keys = (0..100_000).map(|index| EphemeronKey { index: index * 3, target: index << 20 });
    let records =
        [Record::Ephemeron { address: 0x5000, data: Some(0x5555_0000), keys: keys.collect() }];
    let (totals, file) = write(&records);
    let reading = read(&file).unwrap();
    assert!(reading.error.is_none(), "{:?}", reading.error);
    assert_eq!(reading.records, records);
    assert_eq!((totals.ephemerons, totals.ephemeron_keys), (1, 100_000));
}

#[test]
fn more_shapes_than_codes() {
    let blocks = (0..200_000u64).map(|number| {
        let words = number % 24 + 1;
        let pointers = vec![Pointer { field: number % words, target: number * 8 }];
        let tag = (number % 50) as u32;
        OwnedBlock { address: number << 10, words, tag, pointers, ..OwnedBlock::default() }
    });
    let records: Vec<_> = blocks.map(Record::Block).collect();
    let (_, file) = write(&records);
    assert_eq!(read(&file).unwrap().records, records);
}

/// One process writes the blocks, another one the names and the end.
#[test]
fn a_suspended_file_is_completed() {
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 1);
    let mut block = huge_block(0x2000, 30);
    block.codes = vec![(3, 0x400), (7, 0x300), (8, 0x400)];
    write_record(&mut encoder, &Record::Block(block.clone())).unwrap();
    let owners = [(0x700, 0), (0, 1), (0x500, 2), (0x700, 3)].map(|(return_address, slot)| {
        RootOwner::Stack { thread: 1, depth: 2, return_address, slot }
    });
    let roots = owners.map(|owner| Record::Root(Root { owner, target: 0x2000 }));
    roots.iter().for_each(|root| write_record(&mut encoder, root).unwrap());
    let (_, mut file) = encoder.suspend().unwrap();

    let reading = read(&file).unwrap();
    assert!(matches!(reading.completion, Completion::CutShort { .. }));
    let suspended = Suspended::read(&file[..]).unwrap().expect("totals");
    assert_eq!(suspended.codes, [0x300, 0x400, 0x500, 0x700]);
    assert_eq!(suspended.return_addresses, [0x500, 0x700]);
    assert_eq!(suspended.totals.blocks, 1);

    let mut encoder = Encoder::resume(&mut file, &mut workspace, 1, suspended.totals);
    let name =
        Record::Name { address: 0x300, function: b"f".into(), file: b"f.ml".into(), line: 3 };
    write_record(&mut encoder, &name).unwrap();
    let (totals, _) = encoder.finish().unwrap();
    let reading = read(&file).unwrap();
    assert_eq!(reading.completion, Completion::Complete);
    assert_eq!(reading.totals, Some(totals));
    assert_eq!((totals.blocks, totals.names), (1, 1));
    let mut expected = vec![Record::Block(block)];
    expected.extend(roots);
    expected.push(name);
    assert_eq!(by_kind(&reading.records), by_kind(&expected));
}

proptest! {
    #[test]
    fn any_snapshot_comes_back(records in prop::collection::vec(record(), 0..200)) {
        let (totals, file) = write(&records);
        let reading = read(&file).unwrap();
        prop_assert!(reading.error.is_none(), "{:?}", reading.error);
        prop_assert_eq!(reading.completion, Completion::Complete);
        prop_assert_eq!(reading.totals, Some(totals));
        prop_assert!(!reading.is_broken_off);
        prop_assert_eq!(reading.codes_seen.len() as u64, totals.codes_seen);
        prop_assert_eq!(by_kind(&reading.records), by_kind(&records));
    }
}
