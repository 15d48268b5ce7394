//! Tables, paths, components and cycles, compared with plain references.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use heaptap_graph::{
    HeapAnalysis, HolderTree, Level, Node, PathFinder, Reach, RetainedKind, components,
};
use heaptap_heap::{FinaliserKind, Pointer, Root, RootOwner};
use proptest::prelude::*;

use crate::dominators::{Flow, load};
use crate::made_heap::{Heap, address, heap};
use crate::snapshot::{OwnedBlock, Record};

fn analysed(heap: &Heap) -> HeapAnalysis {
    HeapAnalysis::new(load(&heap.records()).0).unwrap()
}

proptest! {
    #[test]
    fn nodes_that_reach_each_other_are_one_component(
        count in 1usize..40,
        pairs in prop::collection::vec((0usize..40, 0usize..40), 0..80),
    ) {
        let mut edges: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (from, to) in pairs.into_iter().filter(|(from, to)| *from < count && *to < count) {
            edges.entry(from).or_default().push(to);
        }
        let reach = |start: usize| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(node) = open.pop() {
                if seen.insert(node) {
                    open.extend(edges.get(&node).into_iter().flatten());
                }
            }
            seen
        };
        let successor = |node: u32, index: u32| {
            edges.get(&(node as usize))?.get(index as usize).map(|to| *to as u32)
        };
        let found = components(count as u32, successor);
        let reached: Vec<_> = (0..count).map(reach).collect();
        for one in 0..count {
            for other in 0..count {
                let together = reached[one].contains(&other) && reached[other].contains(&one);
                prop_assert_eq!(found[one] == found[other], together, "{} and {}", one, other);
            }
        }
    }

    #[test]
    fn rows_have_what_would_be_freed(heap in heap()) {
        let analysis = analysed(&heap);
        let flow = Flow::new(&heap, &analysis.holders);
        let alive = flow.reachable_without(&BTreeSet::new());
        let bytes = |nodes: &BTreeSet<Node>| nodes.iter().map(|node| match node {
            Node::Block(block) => analysis.graph.bytes(*block),
            Node::Holder(_) => 0,
        }).sum::<u64>();
        let mut own = Reach::default();
        let rows = analysis.kind_rows();
        let kinds: Vec<_> = rows.iter().map(|row| row.kind).collect();
        let (freed_without, reaches) =
            (analysis.freed_without(&kinds), analysis.reachable_from_kinds(&kinds));
        for (at, row) in rows.iter().enumerate() {
            let of_kind = |node: &&Node| matches!(node, Node::Block(block) if analysis.kind(*block) == row.kind);
            let blocks: BTreeSet<Node> = alive.iter().filter(of_kind).copied().collect();
            prop_assert_eq!(row.own.blocks, blocks.len() as u64);
            prop_assert_eq!(row.own.bytes, bytes(&blocks));
            let kept = flow.reachable_without(&blocks);
            let freed = bytes(&alive.difference(&kept).copied().collect());
            prop_assert_eq!(freed_without[at], freed);
            let of_kind: Vec<_> = (0..heap.blocks.len())
                .filter(|number| blocks.contains(&Node::Block(analysis.graph.number(address(*number)).unwrap())))
                .collect();
            prop_assert_eq!(reaches[at], heap.reach(&heap.reachable(&of_kind)));
            prop_assert!(row.at_least <= freed && row.at_least >= row.own.bytes);
            own = own.plus(row.own);
        }
        prop_assert_eq!(own, analysis.graph.reachable().reachable);
        for level in [Level::Kind, Level::Module, Level::Variable, Level::Domain, Level::Thread, Level::Frame] {
            let rows = analysis.holder_rows(level);
            let first = rows.iter().map(|row| row.first_reached.reach).fold(Reach::default(), Reach::plus);
            prop_assert_eq!(first, own, "{:?}", level);
            let holders: Vec<_> = rows.iter().map(|row| row.holder).collect();
            let each = holders.iter().map(|holder| analysis.holders.reachable(&analysis.graph, *holder));
            prop_assert_eq!(analysis.reachable_from_holders(&holders), each.collect::<Vec<_>>());
            let names: BTreeSet<_> = holders.iter().map(|holder| analysis.holders.name(*holder)).collect();
            let is_one_row = matches!(level, Level::Kind | Level::Module | Level::Domain | Level::Thread);
            prop_assert!(!is_one_row || names.len() == rows.len(), "{:?}: {:?}", level, names);
            for row in &rows {
                prop_assert_eq!(row.exclusive, bytes(&flow.held_alone(&analysis.holders, row.holder)));
            }
        }
    }

    #[test]
    fn paths_are_shortest_and_all_holders_are_found(heap in heap()) {
        let analysis = analysed(&heap);
        let flow = Flow::new(&heap, &analysis.holders);
        let mut distance: BTreeMap<Node, usize> = BTreeMap::new();
        let mut queue: VecDeque<Node> = analysis.holders.ids().map(Node::Holder).collect();
        queue.iter().for_each(|node| _ = distance.insert(*node, 0));
        while let Some(node) = queue.pop_front() {
            let next = distance[&node] + 1;
            for target in flow.edges.get(&node).into_iter().flatten() {
                if !distance.contains_key(target) {
                    distance.insert(*target, next);
                    queue.push_back(*target);
                }
            }
        }
        let reached_from = |start: Node| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(node) = open.pop() {
                if seen.insert(node) {
                    let targets = flow.edges.get(&node).into_iter().flatten();
                    open.extend(targets.filter(|target| matches!(target, Node::Block(_))));
                }
            }
            seen
        };
        let finder = PathFinder::new(&analysis);
        for number in 0..heap.blocks.len() {
            let block = analysis.graph.number(address(number)).unwrap();
            let Some(held) = finder.held_by(block) else {
                prop_assert!(!distance.contains_key(&Node::Block(block)));
                continue;
            };
            let path = &held.shortest;
            prop_assert_eq!(path.len(), distance[&Node::Block(block)] + 1);
            prop_assert!(matches!(path[0], Node::Holder(_)));
            for pair in path.windows(2) {
                prop_assert!(flow.edges[&pair[0]].contains(&pair[1]));
            }
            let expected: Vec<_> = analysis.holders.ids()
                .filter(|id| *id != HolderTree::PROGRAM && reached_from(Node::Holder(*id)).contains(&Node::Block(block)))
                .collect();
            prop_assert_eq!(&held.holders, &expected);
            for node in &held.dominators {
                let kept = flow.reachable_without(&BTreeSet::from([*node]));
                prop_assert!(!kept.contains(&Node::Block(block)));
            }
        }
    }

    #[test]
    fn referrers_are_all_pointers_of_what_is_alive(heap in heap()) {
        let analysis = analysed(&heap);
        for row in analysis.kind_rows() {
            let mut expected: BTreeMap<RetainedKind, u64> = BTreeMap::new();
            for position in 0..analysis.dominators.len() as u32 {
                if let Node::Block(block) = analysis.dominators.node(position) {
                    let number = block as usize;
                    let suspended = heap.suspended.iter().filter(|(from, _)| *from == number).map(|(_, to)| to);
                    let to_kind = |target: &&usize| analysis.kind(**target as u32) == row.kind;
                    let count = heap.blocks[number].1.iter().chain(suspended).filter(to_kind).count();
                    *expected.entry(RetainedKind::Blocks(analysis.kind(block))).or_default() += count as u64;
                }
            }
            // Those through ephemerons come on top.
            for referrer in analysis.referrers(row.kind) {
                if let RetainedKind::Blocks(_) = referrer.from {
                    let plain = expected.remove(&referrer.from).unwrap_or_default();
                    prop_assert!(referrer.pointers >= plain);
                    prop_assert!(referrer.pointers - plain <= heap.ephemerons.len() as u64);
                }
            }
            prop_assert!(expected.values().all(|count| *count == 0));
        }
    }

    #[test]
    fn a_finaliser_that_reaches_its_value_is_a_cycle(heap in heap()) {
        let analysis = analysed(&heap);
        let calls = || heap.finalisers.iter().filter(|finaliser| finaliser.0 == FinaliserKind::First);
        // By pointers, and from a value to its function.
        let reach = |start: usize| {
            let (mut seen, mut open) = (BTreeSet::new(), vec![start]);
            while let Some(block) = open.pop() {
                if seen.insert(block) {
                    open.extend(&heap.blocks[block].1);
                    open.extend(heap.suspended.iter().filter(|(from, _)| *from == block).map(|(_, to)| to));
                    open.extend(calls().filter(|call| call.1 == block).map(|call| call.2));
                }
            }
            seen
        };
        let expected: BTreeSet<_> = calls()
            .filter(|(_, value, function)| reach(*function).contains(value))
            .map(|(_, value, function)| (*value as u32, *function as u32))
            .collect();
        let found = analysis.finaliser_cycles();
        prop_assert_eq!(found.iter().map(|cycle| (cycle.value, cycle.function)).collect::<BTreeSet<_>>(), expected);
    }
}

/// A list of 20,000 cells, each with a string: one accumulation, by the name of its variable.
#[test]
fn a_long_list_is_an_accumulation_and_a_small_heap_has_none() {
    let list = |count: u64| {
        let at = |number: u64| 0x10_0000 + number * 128;
        let mut records = Vec::new();
        for number in 0..count {
            let next = (number + 1 < count).then(|| at(number + 1));
            let pointers = [Some(at(number) + 24), next].into_iter().zip(0..);
            let pointers = pointers
                .filter_map(|(target, field)| Some(Pointer { field, target: target? }))
                .collect();
            let cell =
                OwnedBlock { address: at(number), words: 2, pointers, ..OwnedBlock::default() };
            let string = OwnedBlock {
                address: at(number) + 24,
                words: 10,
                tag: 252,
                ..OwnedBlock::default()
            };
            records.extend([cell, string].map(Record::Block));
        }
        let owner = RootOwner::Global { module: 7, field: 3 };
        records.push(Record::Root(Root { owner, target: at(0) }));
        HeapAnalysis::new(load(&records).0).unwrap()
    };
    let analysis = list(20_000);
    let suspects = analysis.suspects();
    assert_eq!(suspects.accumulations.len(), 1, "{suspects:?}");
    let found = suspects.accumulations[0];
    assert_eq!((found.elements, found.retained), (20_000, 20_000 * 12 * 8));
    assert_eq!(found.arrangement, heaptap_graph::Arrangement::Linked);
    let name = analysis.holders.name(found.holder.unwrap());
    assert_eq!(name, heaptap_graph::HolderName::Variable { module: 7, field: 3 });
    assert!(list(900).suspects().is_empty());
}

#[test]
fn a_chain_of_ephemerons_is_found() {
    let count = 500;
    let blocks = vec![(4, vec![]); 2 * count + 1];
    // Ephemeron `n` has key `n` and the next key as data.
    let ephemerons =
        (0..count).map(|number| (number, Some(count + number + 1), vec![count + number])).collect();
    let global = |field| RootOwner::Global { module: 1, field };
    let mut roots: Vec<_> = (0..count).map(|block| (global(block as u32), block)).collect();
    roots.push((global(9999), count));
    let heap =
        Heap { blocks, roots, suspended: vec![], finalisers: vec![], ephemerons, areas: vec![] };
    let chain = analysed(&heap).suspects().chain.unwrap();
    assert_eq!(chain.length, count as u64);
    assert_eq!((chain.first, chain.last), (0, count as u32 - 1));
}
