//! Events given many at a time: the file is that of one by one.

use heaptap_trace::{
    Block, Code, DomainEncoder, DomainSink as _, Encoder, End, Format, Frames, LocationTable,
    SmallAlloc, Source, WriteError,
};
use proptest::prelude::*;

use crate::generate::plain_info;

/// An allocation: microseconds since the last one, length, and of its stack what
/// stays of the last one and what is new, from `main` on.
type Given = (u64, u64, usize, Vec<Code>);

fn given() -> impl Strategy<Value = Vec<Given>> {
    // Times now and then beyond what one packet may span, lengths beyond the short
    // ones, and stacks of more frames than can be found at once.
    let pause = prop_oneof![20 => 0..50_u64, 1 => Just(31_000_000)];
    let new = prop_oneof![
        20 => prop::collection::vec(1..40_u64, 0..8),
        1 => prop::collection::vec(1..400_u64, 60..70),
    ];
    prop::collection::vec((pause, 0..19_u64, 0..10_usize, new), 0..200)
}

/// The allocations, with the prefix that their stacks share with the last one.
fn whole(given: &[Given]) -> Vec<(SmallAlloc<'_>, Vec<Code>)> {
    let (mut time, mut depth) = (plain_info().start_time, 0);
    let each = given.iter().map(|(pause, length, keep, new)| {
        time += pause;
        let common_prefix = depth.min(*keep);
        depth = common_prefix + new.len();
        let inner_first = &[][..];
        let alloc =
            SmallAlloc { time, length: *length, common_prefix: common_prefix as u64, inner_first };
        (alloc, new.iter().rev().copied().collect())
    });
    each.collect()
}

fn put_alone(domain: &mut DomainEncoder<'_, Vec<u8>>, alloc: &SmallAlloc<'_>) -> u64 {
    let block = Block { length: alloc.length, samples: 1, source: Source::Minor };
    let new: Vec<Code> = alloc.inner_first.iter().rev().copied().collect();
    let frames = Frames::Suffix { common_prefix: alloc.common_prefix, new: &new };
    domain.alloc(alloc.time, block, frames, &mut &LocationTable::default()).unwrap()
}

proptest! {
    #[test]
    fn allocations_in_crowds_are_as_alone(given in given()) {
        let allocs = whole(&given);
        let allocs: Vec<_> = allocs
            .iter()
            .map(|(alloc, inner_first)| SmallAlloc { inner_first, ..*alloc })
            .collect();
        let [mut alone, mut together] =
            [(); 2].map(|()| Encoder::new(Vec::new(), Format::V3, &plain_info()).unwrap());
        let ids: Vec<_> = allocs.iter().map(|alloc| put_alone(&mut alone.domain(1), alloc)).collect();
        let mut next_ids = Vec::new();
        let mut left = allocs.iter().copied();
        // The first event begins the domain.
        next_ids.extend(left.next().map(|first| put_alone(&mut together.domain(1), &first)));
        while left.len() != 0 {
            let mut domain = together.domain(1);
            let (some, unusual) = domain.alloc_batch(&mut left);
            next_ids.extend(some);
            next_ids.extend(unusual.map(|alloc| put_alone(&mut domain, &alloc)));
        }
        prop_assert_eq!(next_ids, ids);
        let [alone, together] =
            [alone, together].map(|encoder| encoder.finish(&mut &LocationTable::default()).unwrap());
        prop_assert!(alone == together);
    }
}

#[test]
fn a_domain_that_has_not_begun_takes_none() {
    let mut encoder = Encoder::new(Vec::new(), Format::V3, &plain_info()).unwrap();
    let time = plain_info().start_time;
    let alloc = SmallAlloc { time, length: 1, common_prefix: 0, inner_first: &[] };
    let mut allocs = [alloc].into_iter();
    assert_eq!(encoder.domain(1).alloc_batch(&mut allocs), (0..0, None));
    assert_eq!(allocs.len(), 1);
}

/// Objects that are allocated, and the ends of some that were: which of the last
/// 300, and how many.
fn lives() -> impl Strategy<Value = Vec<(usize, bool, u64, u64, u64)>> {
    let pause = prop_oneof![20 => 0..50_u64, 1 => Just(31_000_000)];
    prop::collection::vec((0..400_usize, any::<bool>(), 0..300_u64, 0..70_u64, pause), 0..100)
}

proptest! {
    #[test]
    fn ends_in_crowds_are_as_alone(lives in lives()) {
        let mut locate = &LocationTable::default();
        let [mut alone, mut together] =
            [(); 2].map(|()| Encoder::new(Vec::new(), Format::V2, &plain_info()).unwrap());
        let (mut time, mut next) = (plain_info().start_time, 0);
        for (allocs, promoted, back, count, pause) in lives {
            time += pause;
            for _ in 0..allocs {
                let alloc = SmallAlloc { time, length: 1, common_prefix: 0, inner_first: &[3] };
                next = 1 + put_alone(&mut alone.domain(0), &alloc);
                put_alone(&mut together.domain(0), &alloc);
            }
            let first = next.saturating_sub(back + 1);
            let ids = first..next.min(first + count);
            let end = if promoted { End::Promote } else { End::Collect };
            together.domain(0).end_batch(end, time, ids.clone(), &mut locate).unwrap();
            for id in ids {
                match end {
                    End::Promote => alone.domain(0).promote(time, id, &mut locate).unwrap(),
                    End::Collect => alone.domain(0).collect(time, id, &mut locate).unwrap(),
                }
            }
        }
        let [alone, together] = [alone, together].map(|all| all.finish(&mut locate).unwrap());
        prop_assert!(alone == together);
    }
}

#[test]
fn the_end_of_an_object_that_was_not_allocated_is_refused() {
    let mut locate = &LocationTable::default();
    let mut encoder = Encoder::new(Vec::new(), Format::V2, &plain_info()).unwrap();
    let time = plain_info().start_time;
    let alloc = SmallAlloc { time, length: 1, common_prefix: 0, inner_first: &[3] };
    put_alone(&mut encoder.domain(0), &alloc);
    let refused = encoder.domain(0).end_batch(End::Collect, time, 0..2, &mut locate);
    assert!(matches!(refused, Err(WriteError::Id(1))), "{refused:?}");
}
