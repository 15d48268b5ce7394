//! Files that are cut short or damaged.

use heaptap_heap::{Completion, Defect};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::snapshot::{OwnedBlock, Reading, Record, read, record, write};

/// What was read of the beginning of a file is the beginning of what is read of all of it.
fn is_beginning(part: &Reading, whole: &Reading) -> bool {
    let complete = part.records.len() - usize::from(part.is_broken_off);
    part.records[..complete] == whole.records[..complete]
        && whole.codes_seen.starts_with(&part.codes_seen)
}

fn check_cut(file: &[u8], whole: &Reading, length: usize) {
    let reading = match read(&file[..length]) {
        Ok(reading) => reading,
        Err(error) => {
            // Nothing at all has been written of the first chunk.
            assert!(length < 16, "{length}: {error}");
            assert!(matches!(error.defect, Defect::NotASnapshot | Defect::HeaderCutShort));
            return;
        }
    };
    assert!(reading.error.is_none(), "{length}: {:?}", reading.error);
    let Completion::CutShort { valid } = reading.completion else {
        panic!("{length} of {} bytes: {:?}", file.len(), reading.completion)
    };
    assert!(valid <= length as u64 && valid >= 16);
    assert!(is_beginning(&reading, whole), "{length}");
}

/// Some thousand bytes with every kind of chunk, and some chunks of blocks.
fn sample() -> Vec<u8> {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let records: Vec<Record> =
        std::iter::repeat_with(|| record().new_tree(&mut runner).expect("a record").current())
            .filter(|record| match record {
                Record::Block(OwnedBlock { words, string, .. }) => {
                    *words < 30 && string.as_ref().is_none_or(|string| string.len() < 30)
                }
                Record::Meta(_, text) | Record::Module(_, text) | Record::Thread(_, _, text) => {
                    text.len() < 30
                }
                _ => true,
            })
            .take(40)
            .collect();
    write(&records).1
}

#[test]
fn a_file_cut_at_any_byte_is_valid_up_to_its_last_chunk() {
    let file = sample();
    let whole = read(&file).unwrap();
    assert!(whole.error.is_none());
    for length in 0..file.len() {
        check_cut(&file, &whole, length);
    }
}

#[test]
fn every_flipped_bit_is_found() {
    let mut file = sample();
    for bit in 0..file.len() * 8 {
        file[bit / 8] ^= 1 << (bit % 8);
        let is_found = match read(&file) {
            Err(_) => true,
            Ok(reading) => reading.error.is_some(),
        };
        assert!(is_found, "bit {} of byte {}", bit % 8, bit / 8);
        file[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn what_follows_the_end_is_found() {
    let (_, mut file) = write(&[]);
    file.push(0);
    let error = read(&file).unwrap().error.expect("a defect");
    assert!(matches!(error.defect, Defect::TrailingBytes), "{error}");
}

#[test]
fn an_error_says_where() {
    let mut file = sample();
    let at = file.len() - 20;
    file[at] ^= 1;
    let error = read(&file).unwrap().error.expect("a defect");
    assert!(error.chunk > 3 && error.offset > 16 && error.offset < file.len() as u64);
    let text = error.to_string();
    assert!(text.contains(&format!("chunk {} at byte {}", error.chunk, error.offset)), "{text}");
}

proptest! {
    #[test]
    fn any_snapshot_cut_anywhere(
        records in prop::collection::vec(record(), 1..60),
        cut in any::<prop::sample::Index>(),
    ) {
        let (_, file) = write(&records);
        let whole = read(&file).unwrap();
        check_cut(&file, &whole, cut.index(file.len()));
    }

    #[test]
    fn any_snapshot_with_any_bits_flipped(
        records in prop::collection::vec(record(), 1..60),
        flips in prop::collection::vec(any::<prop::sample::Index>(), 1..4),
    ) {
        let (_, mut file) = write(&records);
        let bits = file.len() * 8;
        let places: std::collections::BTreeSet<_> =
            flips.iter().map(|flip| flip.index(bits)).collect();
        for bit in places {
            file[bit / 8] ^= 1 << (bit % 8);
        }
        if let Ok(reading) = read(&file) {
            prop_assert!(reading.error.is_some(), "{:?}", reading.completion);
        }
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
        let (_, file) = write(&[]);
        let _ = read(&[&file[..16], &bytes].concat());
    }
}
