//! Reachability, compared with a plain reference that goes round until nothing changes.

use std::collections::BTreeSet;
use std::io::Cursor;

use heaptap_graph::{GraphError, HeapGraph, LoadOptions, Reach};
use heaptap_heap::{Pointer, Root, RootOwner};
use proptest::prelude::*;

use crate::made_heap::{Heap, OPTIONS, address, heap};
use crate::snapshot::{OwnedBlock, Record, write};

const GLOBAL: RootOwner = RootOwner::Global { module: 1, field: 2 };

proptest! {
    #[test]
    fn reachable_as_the_reference_has_it(heap in heap()) {
        let (_, file) = write(&heap.records());
        let graph = HeapGraph::load(Cursor::new(&file), OPTIONS).unwrap();
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
    let roots = vec![(GLOBAL, 0), (GLOBAL, 1)];
    let heap =
        Heap { blocks, roots, suspended: vec![], finalisers: vec![], ephemerons, areas: vec![] };
    let (_, file) = write(&heap.records());
    let found = HeapGraph::load(Cursor::new(&file), OPTIONS).unwrap().reachable();
    assert_eq!(found.reachable.blocks, count as u64);
}

#[test]
fn what_leads_nowhere_is_counted_and_left_out() {
    let pointers = vec![Pointer { field: 0, target: 0x9000 }, Pointer { field: 1, target: 0x1000 }];
    let block = OwnedBlock { address: 0x1000, words: 2, pointers, ..OwnedBlock::default() };
    let root = |target| Record::Root(Root { owner: RootOwner::Hook { slot: 8 }, target });
    let all = Reach { blocks: 1, words: 2, bytes: 16 };
    let (_, file) = write(&[Record::Block(block.clone()), root(0x1008)]);
    let graph = HeapGraph::load(Cursor::new(&file), OPTIONS).unwrap();
    assert_eq!((graph.dangling(), graph.pointers()), (1, 1), "not the pointer of garbage");
    assert_eq!((graph.reachable().reachable, graph.reachable().all), (Reach::default(), all));
    let (_, file) = write(&[Record::Block(block), root(0x1008), root(0x1000)]);
    let graph = HeapGraph::load(Cursor::new(&file), OPTIONS).unwrap();
    assert_eq!((graph.dangling(), graph.pointers()), (2, 1));
    assert_eq!((graph.reachable().reachable, graph.reachable().all), (all, all));
}

#[test]
fn a_file_without_its_end_is_not_loaded() {
    let (_, file) = write(&[]);
    let cut = HeapGraph::load(Cursor::new(&file[..file.len() - 1]), OPTIONS);
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
    let loaded = HeapGraph::load(Cursor::new(&file), LoadOptions { memory: limit, fields: false });
    assert!(matches!(loaded, Err(GraphError::Memory(_))), "{loaded:?}");
    let error = heaptap_graph::check(Cursor::new(&file), limit).unwrap_err();
    assert!(matches!(error.defect, heaptap_heap::Defect::Memory(_)), "{error}");
}
