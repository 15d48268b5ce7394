//! `docs/heap-format.md` describes what is written.

use heaptap_heap::{MetaKey, Totals};
use proptest::prelude::*;

use crate::oracle;
use crate::snapshot::{OwnedBlock, Record, read, record, write};

fn document() -> String {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/heap-format.md");
    std::fs::read_to_string(path).expect("docs/heap-format.md")
}

/// The first two cells of the table below a heading, from its third line on.
fn table(document: &str, heading: &str) -> Vec<(u32, String)> {
    let section = document.split(heading).nth(1).expect(heading);
    let rows = section.lines().skip_while(|line| !line.starts_with('|'));
    rows.take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|row| {
            let cells: Vec<_> = row.split('|').map(str::trim).collect();
            (cells[1].parse().expect("a number"), cells[2].to_owned())
        })
        .collect()
}

#[test]
fn meta_keys_are_listed() {
    let known = (0..100).filter_map(|key| Some((key, MetaKey(key).name()?.to_owned())));
    assert_eq!(table(&document(), "### Meta keys"), known.collect::<Vec<_>>());
}

#[test]
fn totals_are_listed_in_their_order() {
    let names = Totals::default().named().map(|(name, _)| name.replace('_', " "));
    let known = (1..).zip(names);
    assert_eq!(table(&document(), "### Totals"), known.collect::<Vec<_>>());
}

fn check(records: &[Record]) {
    let (totals, file) = write(records);
    let reading = read(&file).expect("a snapshot");
    let decoded = oracle::decode(&file);
    assert_eq!(decoded.records, reading.records);
    assert_eq!(decoded.codes_seen, reading.codes_seen);
    assert_eq!(decoded.totals, totals.named().map(|(_, number)| number));
}

proptest! {
    #[test]
    fn a_reader_written_from_the_document_reads_the_same(
        records in prop::collection::vec(record(), 0..150),
    ) {
        check(&records);
    }
}

/// A block of several chunks, and more shapes than codes.
#[test]
fn a_long_snapshot_is_read_the_same() {
    let pointers = |number: u64, count: u64| {
        (0..count)
            .map(|field| heaptap_heap::Pointer {
                field: field * 2,
                target: number.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(field as u32) >> 20
                    << 3,
            })
            .collect()
    };
    let mut records: Vec<_> = (0..150_000u64)
        .map(|number| {
            let (words, tag) = (2 + number % 13, (number % 37) as u32);
            let pointers = pointers(number >> 3, words / 2);
            let address = 0x1000 + number * 160;
            Record::Block(OwnedBlock { address, words, tag, pointers, ..OwnedBlock::default() })
        })
        .collect();
    let pointers = pointers(7, 200_000);
    let (address, words) = (0x7f00_0000_0000, 500_000);
    records.push(Record::Block(OwnedBlock { address, words, pointers, ..OwnedBlock::default() }));
    check(&records);
}
