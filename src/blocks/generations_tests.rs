use std::collections::BTreeMap;

use proptest::prelude::*;

use heaptap_trace::Source;

use super::*;
use crate::queue::{BlockId, EndWord};

fn id(number: u64) -> BlockId {
    BlockId::new(3, number)
}

fn tracked(number: u64) -> TrackedId {
    TrackedId::new(id(number), Source::Minor)
}

/// The numbers of the blocks of an end.
fn numbers(end: EndWord) -> impl Iterator<Item = u64> {
    end.blocks().blocks().map(BlockId::number)
}

/// A flush into a full event buffer.
fn keep_all(_: &mut PendingEnds) {}

fn take_ends(blocks: &mut Generations) -> Vec<EndWord> {
    let ends = blocks.ends.to_vec();
    blocks.ends.clear();
    ends
}

fn with(young: &[usize], major: &[usize]) -> Generations {
    let mut blocks = Generations::new().unwrap();
    assert!(blocks.reserve(young.len() + major.len()));
    for &address in young {
        blocks.add_young(address, tracked(address as u64));
    }
    for &address in major {
        blocks.add_major(address, tracked(address as u64));
    }
    blocks
}

#[test]
fn a_minor_collection_visits_young_blocks_only() {
    let mut blocks = with(&[1, 2, 3], &[10]);
    blocks.sweep(
        Generation::Young,
        |address| match address {
            1 => Fate::Dead,
            2 => Fate::Promoted(20),
            _ => Fate::Alive(33),
        },
        keep_all,
    );
    assert_eq!(take_ends(&mut blocks), [EndWord::collected(id(1)), EndWord::promoted(id(2))]);
    let mut seen = Vec::new();
    blocks.sweep(
        Generation::Major,
        |address| {
            seen.push(address);
            Fate::Alive(address)
        },
        keep_all,
    );
    assert_eq!(seen, [10, 20]);
    assert_eq!(blocks.len(), 3);
}

/// External memory has no generation: only the end of the block that owns it is recorded.
#[test]
fn external_memory_is_not_promoted() {
    let mut blocks = with(&[1, 3], &[]);
    assert!(blocks.reserve(1));
    blocks.add_young(2, TrackedId::new(id(2), Source::External));
    blocks.sweep(Generation::Young, Fate::Alive, keep_all);
    blocks.sweep(Generation::Young, |address| Fate::Promoted(address + 10), keep_all);
    let promoted: Vec<u64> = take_ends(&mut blocks).into_iter().flat_map(numbers).collect();
    assert_eq!(promoted, [1, 3]);
    let mut heir = with(&[], &[]);
    assert!(heir.adopt(&mut blocks));
    heir.sweep(
        Generation::Major,
        |address| if address == 12 { Fate::Dead } else { Fate::Alive(address) },
        keep_all,
    );
    assert_eq!(take_ends(&mut heir), [EndWord::collected(id(2))]);
}

#[test]
fn major_addresses_can_be_changed() {
    let mut blocks = with(&[1], &[10, 11]);
    blocks.major_addresses().for_each(|address| *address += 100);
    let mut seen = Vec::new();
    blocks.sweep(
        Generation::Major,
        |address| {
            seen.push(address);
            Fate::Dead
        },
        keep_all,
    );
    assert_eq!(seen, [110, 111]);
}

#[test]
fn an_heir_adopts_blocks_and_ends() {
    let mut heir = with(&[1], &[2]);
    let mut other = with(&[3], &[4, 5]);
    other.sweep(Generation::Young, |_| Fate::Dead, keep_all);
    assert!(heir.adopt(&mut other));
    assert_eq!((heir.len(), other.len()), (4, 0));
    assert_eq!(take_ends(&mut heir), [EndWord::collected(id(3))]);
    assert!(heir.ends.is_empty());
}

/// Random steps of a collector: which one, what becomes of blocks, and how much space the
/// event buffer has.
fn steps() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    prop::collection::vec((0..4u8, any::<u8>(), any::<u8>()), 1..60)
}

proptest! {
    /// Every block is promoted at most once and then collected exactly once, however
    /// little space the event buffer has.
    #[test]
    fn no_end_is_lost_or_doubled(steps in steps()) {
        let mut blocks = Generations::new().unwrap();
        let mut recorded: BTreeMap<u64, Vec<End>> = BTreeMap::new();
        let mut next = 0u64;
        for (step, fates, space) in steps {
            let mut flush = |ends: &mut PendingEnds| {
                let some = ends.len().min(usize::from(space) % 5);
                for &end in &ends[..some] {
                    for number in numbers(end) {
                        recorded.entry(number).or_default().push(end.end());
                    }
                }
                ends.remove_first(some);
            };
            let fate = |address: usize| match address.wrapping_mul(31) as u8 ^ fates {
                0..90 => Fate::Dead,
                90..190 => Fate::Promoted(address + 1_000_000),
                _ => Fate::Alive(address + 8),
            };
            match step {
                0 | 1 => {
                    prop_assert!(blocks.reserve(2));
                    blocks.add_young(1000 + next as usize * 16, tracked(next));
                    blocks.add_major(2000 + next as usize * 16, tracked(next + 1));
                    next += 2;
                }
                2 => blocks.sweep(Generation::Young, fate, &mut flush),
                _ => {
                    blocks.sweep(Generation::Major, fate, &mut flush);
                    flush(&mut blocks.ends);
                }
            }
        }
        blocks.sweep(Generation::Young, |_| Fate::Dead, keep_all);
        blocks.sweep(Generation::Major, |_| Fate::Dead, keep_all);
        for &end in blocks.ends.iter() {
            for number in numbers(end) {
                recorded.entry(number).or_default().push(end.end());
            }
        }
        prop_assert_eq!(blocks.len(), 0);
        prop_assert_eq!(recorded.len() as u64, next);
        for ends in recorded.values() {
            let promoted_before = [End::Promote, End::Collect];
            prop_assert!(ends == &[End::Collect] || ends == &promoted_before, "{:?}", ends);
        }
    }
}
