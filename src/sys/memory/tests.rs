use super::mapping::{PAGE, RESERVE_BYTES, take_from_reserve};
use super::*;
use proptest::prelude::*;

#[test]
fn a_region_is_zeroed_and_writable() {
    let mut region = Region::new(10_000).unwrap();
    assert_eq!(region.len(), 10_000);
    assert!(region.iter().all(|&word| word == 0));
    region.as_mut()[9_999] = 7;
    assert_eq!(region.as_ref()[9_999], 7);
}

#[test]
fn parts_of_the_reserve_and_other_mappings_do_not_overlap() {
    // Small ones, and two that do not both fit the reserve.
    let lens = [1, 600, 2 << 20, 5, 2 << 20, 70_000];
    let mut regions: Vec<_> = lens.map(|len| Region::new(len).unwrap()).into();
    for (number, region) in (1..).zip(&mut regions) {
        assert!(region.iter().all(|&word| word == 0));
        region.fill(number);
    }
    drop(regions.remove(1));
    for (number, region) in [1, 3, 4, 5, 6].into_iter().zip(&regions) {
        assert!(region.iter().all(|&word| word == number));
    }
    assert!(take_from_reserve(RESERVE_BYTES + PAGE).is_none());
    assert!(take_from_reserve(usize::MAX).is_none());
}

#[test]
fn impossible_sizes_are_refused() {
    assert!(Region::new(usize::MAX).is_none());
    assert!(Region::new(usize::MAX / 16).is_none());
    assert!(MappedVec::<u64>::new(usize::MAX / 8).is_none());
    let mut array = MappedVec::<u64>::new(1).unwrap();
    assert!(array.push(3));
    assert!(!array.reserve(usize::MAX));
    assert!(!array.reserve(usize::MAX / 16));
    assert_eq!(*array, [3]);
}

#[test]
fn elements_of_an_odd_size_survive_growth() {
    let mut array = MappedVec::<[u8; 24]>::new(0).unwrap();
    for i in 0..100_000_u32 {
        assert!(array.push([(i % 251) as u8; 24]));
    }
    assert!(array.capacity() >= 100_000);
    assert!((0..100_000).all(|i| array[i] == [(i % 251) as u8; 24]));
}

#[derive(Clone, Debug)]
enum Step {
    Push(u32),
    Truncate(usize),
    Reserve(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => any::<u32>().prop_map(Step::Push),
        1 => (0_usize..3000).prop_map(Step::Truncate),
        1 => (0_usize..3000).prop_map(Step::Reserve),
    ]
}

proptest! {
    #[test]
    fn it_behaves_like_a_vec(steps in proptest::collection::vec(step(), 0..4000)) {
        let mut mapped = MappedVec::new(1).unwrap();
        let mut vec = Vec::new();
        for step in steps {
            match step {
                Step::Push(value) => { prop_assert!(mapped.push(value)); vec.push(value) }
                Step::Truncate(len) => { mapped.truncate(len); vec.truncate(len) }
                Step::Reserve(more) => {
                    prop_assert!(mapped.reserve(more));
                    prop_assert!(mapped.capacity() >= vec.len() + more);
                }
            }
            prop_assert_eq!(&*mapped, &*vec);
        }
    }
}
