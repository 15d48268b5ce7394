//! Reachability, compared with a plain reference that goes round until nothing changes.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use heaptap_heap::{
    EphemeronKey, Finaliser, FinaliserKind, GraphError, HeapGraph, Pointer, Reach, Root, RootKind,
    RootOwner,
};
use proptest::prelude::*;

use crate::snapshot::{OwnedBlock, Record, write};

const MEMORY: u64 = 1 << 30;

/// A heap by numbers of blocks.
#[derive(Clone, Debug)]
struct Heap {
    /// Words and targets of each block.
    blocks: Vec<(u64, Vec<usize>)>,
    roots: Vec<(RootOwnerKind, usize)>,
    /// Continuation and target.
    suspended: Vec<(usize, usize)>,
    finalisers: Vec<(FinaliserKind, usize, usize)>,
    /// Ephemeron, data and keys.
    ephemerons: Vec<(usize, Option<usize>, Vec<usize>)>,
}

#[derive(Clone, Copy, Debug)]
enum RootOwnerKind {
    Global,
    Hook,
    Host,
}

impl RootOwnerKind {
    fn owner(self) -> RootOwner {
        match self {
            RootOwnerKind::Global => RootOwner::Global { module: 1, field: 2 },
            RootOwnerKind::Hook => RootOwner::Hook { slot: 77 },
            RootOwnerKind::Host => RootOwner::Host { kind: 1, index: 5 },
        }
    }
}

fn heap() -> impl Strategy<Value = Heap> {
    (1usize..60).prop_flat_map(|count| {
        let block = 0..count;
        let owner = prop::sample::select(vec![
            RootOwnerKind::Global,
            RootOwnerKind::Hook,
            RootOwnerKind::Host,
        ]);
        let kind = prop::sample::select(vec![
            FinaliserKind::First,
            FinaliserKind::Last,
            FinaliserKind::Pending,
        ]);
        let blocks =
            prop::collection::vec((4u64..9, prop::collection::vec(block.clone(), 0..3)), count);
        let roots = prop::collection::vec((owner, block.clone()), 0..5);
        let suspended = prop::collection::vec((block.clone(), block.clone()), 0..4);
        let finalisers = prop::collection::vec((kind, block.clone(), block.clone()), 0..4);
        let keys = prop::collection::vec(block.clone(), 0..3);
        let ephemerons =
            prop::collection::vec((block.clone(), prop::option::of(block), keys), 0..12);
        (blocks, roots, suspended, finalisers, ephemerons).prop_map(
            |(blocks, roots, suspended, finalisers, ephemerons)| Heap {
                blocks,
                roots,
                suspended,
                finalisers,
                ephemerons,
            },
        )
    })
}

fn address(block: usize) -> u64 {
    0x10_0000 + block as u64 * 80
}

impl Heap {
    fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (number, (words, targets)) in self.blocks.iter().enumerate() {
            let pointers = (0..).zip(targets);
            records.push(Record::Block(OwnedBlock {
                address: address(number),
                words: *words,
                pointers: pointers
                    .map(|(field, target)| Pointer { field, target: address(*target) })
                    .collect(),
                ..OwnedBlock::default()
            }));
        }
        for &(owner, target) in &self.roots {
            let root = Root { owner: owner.owner(), target: address(target) };
            records.push(Record::Root(root));
        }
        for &(block, target) in &self.suspended {
            let owner = RootOwner::Continuation {
                block: address(block),
                depth: 0,
                return_address: 0x400,
                slot: 0,
            };
            records.push(Record::Root(Root { owner, target: address(target) }));
        }
        for &(kind, value, function) in &self.finalisers {
            let (value, function) = (address(value), address(function));
            records.push(Record::Finaliser(Finaliser { kind, value, function }));
        }
        for (block, data, keys) in &self.ephemerons {
            let keys = (0..).zip(keys);
            records.push(Record::Ephemeron {
                address: address(*block),
                data: data.map(address),
                keys: keys
                    .map(|(index, key)| EphemeronKey { index, target: address(*key) })
                    .collect(),
            });
        }
        records
    }

    fn roots(&self) -> BTreeMap<RootKind, Vec<usize>> {
        let mut roots: BTreeMap<RootKind, Vec<usize>> = BTreeMap::new();
        for &(owner, target) in &self.roots {
            roots.entry(owner.owner().kind()).or_default().push(target);
        }
        for &(kind, value, function) in &self.finalisers {
            let held = roots.entry(RootKind::Finaliser).or_default();
            held.push(function);
            if kind != FinaliserKind::Last {
                held.push(value);
            }
        }
        roots
    }

    /// The reference: every rule is applied until nothing changes.
    fn reachable(&self, roots: &[usize]) -> BTreeSet<usize> {
        let mut alive: BTreeSet<usize> = roots.iter().copied().collect();
        loop {
            let before = alive.len();
            for (number, (_, targets)) in self.blocks.iter().enumerate() {
                if alive.contains(&number) {
                    alive.extend(targets);
                }
            }
            for (block, target) in &self.suspended {
                if alive.contains(block) {
                    alive.insert(*target);
                }
            }
            for (block, data, keys) in &self.ephemerons {
                if alive.contains(block) && keys.iter().all(|key| alive.contains(key)) {
                    alive.extend(data);
                }
            }
            if alive.len() == before {
                return alive;
            }
        }
    }

    fn reach(&self, blocks: &BTreeSet<usize>) -> Reach {
        let words = blocks.iter().map(|block| self.blocks[*block].0).sum();
        Reach { blocks: blocks.len() as u64, words }
    }
}

proptest! {
    #[test]
    fn reachable_as_the_reference_has_it(heap in heap()) {
        let (_, file) = write(&heap.records());
        let graph = HeapGraph::load(Cursor::new(&file), MEMORY).unwrap();
        prop_assert_eq!(graph.blocks(), heap.blocks.len());
        prop_assert_eq!(graph.dangling(), 0);
        for (number, (words, targets)) in heap.blocks.iter().enumerate() {
            let block = graph.number(address(number)).unwrap();
            prop_assert_eq!(graph.address(block), Some(address(number)));
            prop_assert_eq!(graph.words(block), *words);
            let suspended = heap.suspended.iter().filter(|(from, _)| *from == number);
            let mut expected: Vec<_> = targets.iter().chain(suspended.map(|(_, to)| to)).copied().collect();
            let mut found: Vec<_> = graph.targets(block).iter().map(|to| *to as usize).collect();
            expected.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(found, expected);
        }
        let found = graph.reachable();
        let roots = heap.roots();
        let all: Vec<_> = roots.values().flatten().copied().collect();
        prop_assert_eq!(found.reachable, heap.reach(&heap.reachable(&all)));
        prop_assert_eq!(found.all, heap.reach(&(0..heap.blocks.len()).collect()));
        prop_assert_eq!(found.kinds.len(), roots.len());
        let (mut before, mut seen) = (Vec::new(), BTreeSet::new());
        for kind in &found.kinds {
            let of_kind = &roots[&kind.kind];
            prop_assert_eq!(kind.roots, of_kind.len() as u64);
            prop_assert_eq!(kind.reachable, heap.reach(&heap.reachable(of_kind)));
            before.extend(of_kind);
            let now = heap.reachable(&before);
            prop_assert_eq!(kind.first_reached, heap.reach(&now.difference(&seen).copied().collect()));
            seen = now;
        }
    }
}

/// A chain of ephemerons that keep each other's keys alive, last one first.
#[test]
fn a_long_chain_of_ephemerons_takes_no_time() {
    let count = 200_000;
    let blocks = vec![(4, vec![]); count];
    let ephemerons = (1..count - 1).rev().map(|key| (0, Some(key + 1), vec![key])).collect();
    let roots = vec![(RootOwnerKind::Global, 0), (RootOwnerKind::Global, 1)];
    let heap = Heap { blocks, roots, suspended: vec![], finalisers: vec![], ephemerons };
    let (_, file) = write(&heap.records());
    let found = HeapGraph::load(Cursor::new(&file), MEMORY).unwrap().reachable();
    assert_eq!(found.reachable.blocks, count as u64);
}

#[test]
fn what_leads_nowhere_is_counted_and_left_out() {
    let pointers = vec![Pointer { field: 0, target: 0x9000 }, Pointer { field: 1, target: 0x1000 }];
    let block = OwnedBlock { address: 0x1000, words: 2, pointers, ..OwnedBlock::default() };
    let root = Root { owner: RootOwner::Hook { slot: 8 }, target: 0x1008 };
    let (_, file) = write(&[Record::Block(block), Record::Root(root)]);
    let graph = HeapGraph::load(Cursor::new(&file), MEMORY).unwrap();
    assert_eq!((graph.dangling(), graph.pointers()), (2, 1));
    assert_eq!(graph.reachable().reachable, Reach::default());
    assert_eq!(graph.reachable().all, Reach { blocks: 1, words: 2 });
}

#[test]
fn a_file_without_its_end_is_not_loaded() {
    let (_, file) = write(&[]);
    let cut = HeapGraph::load(Cursor::new(&file[..file.len() - 1]), MEMORY);
    assert!(matches!(cut, Err(GraphError::CutShort)));
}

/// Some hundred kilobytes that describe millions of blocks, far from each other.
#[test]
fn memory_is_limited() {
    let blocks = (0..600_000u64).map(|number| OwnedBlock {
        address: number << 20,
        words: 1,
        ..OwnedBlock::default()
    });
    let records: Vec<_> = blocks.map(Record::Block).collect();
    let (_, file) = write(&records);
    assert!(file.len() < 100_000, "{}", file.len());
    let limit = 100 << 20;
    let loaded = HeapGraph::load(Cursor::new(&file), limit);
    assert!(matches!(loaded, Err(GraphError::Memory(_))), "{loaded:?}");
    let error = heaptap_heap::check(Cursor::new(&file), limit).unwrap_err();
    assert!(matches!(error.defect, heaptap_heap::Defect::Memory(_)), "{error}");
}
