use proptest::prelude::*;

use super::layout::{MAX_PAYLOAD, MAX_SAMPLES, MAX_SMALL_LENGTH};
use super::*;

#[test]
fn ids_keep_lane_and_number() {
    let id = BlockId::new(65_535, BlockId::MAX_NUMBER);
    assert_eq!((id.lane(), id.number()), (65_535, BlockId::MAX_NUMBER));
    assert_eq!(BlockId::from_bits(id.to_bits()), id);
    assert!(id.to_bits() <= MAX_PAYLOAD);
}

/// A [`Record`] that owns its words.
#[derive(Clone, Debug)]
enum Owned {
    Sample([u64; 2], Vec<u64>),
    Time(u64),
    Frames(usize, Vec<u64>),
    RepeatFrame(usize),
    Stack(Vec<u64>),
    SmallAlloc(u64),
    Alloc(Source, Part, u64, u64),
    End(End, BlockRun),
}

fn allocation() -> impl Strategy<Value = (Source, Part, u64, u64)> {
    let source = prop_oneof![Just(Source::Minor), Just(Source::Major), Just(Source::External)];
    let part = prop_oneof![Just(0), any::<u8>()].prop_map(Part::from_bits);
    let samples = prop_oneof![Just(1), 1..=MAX_SAMPLES];
    (source, part, samples, prop_oneof![0..20u64, any::<u64>()])
}

fn owned_record() -> impl Strategy<Value = Owned> {
    let end = prop_oneof![Just(End::Promote), Just(End::Collect)];
    prop_oneof![
        (any::<u64>(), prop::collection::vec(any::<u64>(), 0..40), 0..=MAX_SMALL_LENGTH).prop_map(
            |(ticks, frames, length)| {
                Owned::Sample(Sample::header(ticks, frames.len(), length), frames)
            }
        ),
        (0..=MAX_PAYLOAD).prop_map(Owned::Time),
        (0..u32::MAX as usize, prop::collection::vec(any::<u64>(), 0..40))
            .prop_map(|(keep, new)| Owned::Frames(keep, new)),
        (0..=MAX_PAYLOAD as usize).prop_map(Owned::RepeatFrame),
        prop::collection::vec(any::<u64>(), 0..40).prop_map(Owned::Stack),
        (0..=MAX_PAYLOAD).prop_map(Owned::SmallAlloc),
        allocation().prop_map(|(source, part, n, l)| Owned::Alloc(source, part, n, l)),
        (end, any::<u16>(), 0..=BlockId::MAX_NUMBER, 1..=BlockRun::MAX).prop_map(
            |(end, lane, number, count)| {
                Owned::End(end, BlockRun { first: BlockId::new(lane, number), count })
            }
        ),
    ]
}

fn record(owned: &Owned) -> Record<'_> {
    match owned {
        Owned::Sample(header, inner_first) => Record::Sample(Sample { header, inner_first }),
        Owned::Time(ticks) => Record::Time(*ticks),
        Owned::Frames(keep, new) => Record::Frames { keep: *keep, new },
        Owned::RepeatFrame(times) => Record::RepeatFrame { times: *times },
        Owned::Stack(inner_first) => Record::Stack { inner_first },
        &Owned::SmallAlloc(length) => Record::SmallAlloc { length },
        &Owned::Alloc(source, part, samples, length) => {
            Record::Alloc { source, part, samples, length }
        }
        &Owned::End(end, blocks) => Record::End(end, blocks),
    }
}

proptest! {
    #[test]
    fn alloc_words_decode_to_the_same_allocation(
        (source, part, samples, length) in allocation(),
    ) {
        let alloc = AllocWords::new(source, part, samples, length);
        let mut words = [7; AllocWords::MAX];
        alloc.write_to(&mut words).unwrap();
        let record = words.get(..alloc.len()).unwrap();
        let mut rest = record.iter();
        let decoded = match Record::decode(&mut rest).unwrap() {
            Record::SmallAlloc { length } => (Source::Minor, Part::NONE, 1, length),
            Record::Alloc { source, part, samples, length } => (source, part, samples, length),
            other => panic!("{other:?}"),
        };
        prop_assert_eq!(decoded, (source, part, samples, length));
        prop_assert!(rest.as_slice().is_empty());
        prop_assert_eq!(alloc.small_length(), (record.len() == 1).then_some(length));
    }

    #[test]
    fn encoded_records_are_decoded(records in prop::collection::vec(owned_record(), 0..30)) {
        let len = records.iter().map(|owned| record(owned).len()).sum();
        let mut words = vec![0; len];
        let mut out = &mut words[..];
        for owned in &records {
            out = record(owned).encode(out).unwrap();
        }
        prop_assert!(out.is_empty());
        let mut rest = words.iter();
        for owned in &records {
            prop_assert_eq!(Record::decode(&mut rest), Some(record(owned)));
        }
        prop_assert_eq!(Record::decode(&mut rest), None);
    }

    #[test]
    fn a_run_grows_by_the_next_block_only(number in 0..=BlockId::MAX_NUMBER / 2, other in 0..9u64) {
        let block = |at| BlockId::new(7, number + at);
        let mut run = BlockRun::one(block(0));
        for count in 1..BlockRun::MAX {
            prop_assert!(other == count || !run.grow(block(other)));
            prop_assert!(run.grow(block(count)));
            prop_assert_eq!(run.last(), block(count));
        }
        prop_assert!(!run.grow(block(BlockRun::MAX)));
        let decoded = EndWord::new(End::Collect, run).blocks().blocks();
        prop_assert!(decoded.eq((0..BlockRun::MAX).map(block)));
    }

    #[test]
    fn any_words_are_decoded_without_a_panic(words in prop::collection::vec(any::<u64>(), 0..20)) {
        let mut rest = words.iter();
        while let Some(record) = Record::decode(&mut rest) {
            prop_assert!(record.len() + rest.len() <= words.len());
        }
    }

    #[test]
    fn a_record_that_does_not_fit_is_refused(owned in owned_record(), short in 1..50usize) {
        let record = record(&owned);
        let len = record.len().saturating_sub(short);
        prop_assert!(record.encode(&mut vec![0; len]).is_none());
    }
}
