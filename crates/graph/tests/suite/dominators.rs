//! Dominators and retained sizes, compared with what becomes unreachable when a node is taken away.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;

use heaptap_graph::{
    DominatorTree, HeapAnalysis, HeapGraph, HolderId, HolderName, HolderTree, Kinds, LoadOptions,
    Node, PathFinder, Reach, RetainedKind, RetainedTree, Share,
};
use heaptap_heap::{Encoder, FinaliserKind, RootKind, RootOwner, Segment, SegmentKind, Workspace};
use proptest::prelude::*;

use crate::made_heap::{Heap, OPTIONS, address, heap};
use crate::snapshot::{Record, write};

/// The graph as plain sets: what each node keeps alive.
pub(crate) struct Flow {
    pub(crate) edges: BTreeMap<Node, BTreeSet<Node>>,
}

impl Flow {
    pub(crate) fn new(heap: &Heap, holders: &HolderTree) -> Flow {
        let mut edges: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
        let block = |number: usize| Node::Block(number as u32);
        let mut edge = |from, to| _ = edges.entry(from).or_default().insert(to);
        for (number, (_, targets)) in heap.blocks.iter().enumerate() {
            targets.iter().for_each(|target| edge(block(number), block(*target)));
        }
        heap.suspended.iter().for_each(|(from, to)| edge(block(*from), block(*to)));
        let alive = heap.reachable(&heap.roots().into_values().flatten().collect::<Vec<_>>());
        for (ephemeron, data, keys) in &heap.ephemerons {
            let all = alive.contains(ephemeron) && keys.iter().all(|key| alive.contains(key));
            if let (true, Some(data)) = (all, data) {
                edge(block(*ephemeron), block(*data));
            }
        }
        for holder in holders.ids().skip(1) {
            edge(Node::Holder(holders.parent(holder)), Node::Holder(holder));
        }
        for (owner, target) in &heap.roots {
            edge(Node::Holder(find(holders, &path(*owner))), block(*target));
        }
        for &(kind, value, function) in &heap.finalisers {
            let names = [HolderName::Kind(RootKind::Finaliser), HolderName::Finalisers(kind)];
            let holder = Node::Holder(find(holders, &names));
            edge(holder, block(function));
            if kind != FinaliserKind::Last {
                edge(holder, block(value));
            }
        }
        Flow { edges }
    }

    /// What the program reaches without passing these nodes.
    pub(crate) fn reachable_without(&self, without: &BTreeSet<Node>) -> BTreeSet<Node> {
        let program = Node::Holder(HolderTree::PROGRAM);
        let (mut seen, mut open) = (BTreeSet::new(), vec![program]);
        while let Some(node) = open.pop() {
            if !without.contains(&node) && seen.insert(node) {
                open.extend(self.edges.get(&node).into_iter().flatten());
            }
        }
        seen
    }

    /// What goes with a node.
    fn lost(&self, alive: &BTreeSet<Node>, node: Node) -> BTreeSet<Node> {
        let kept = self.reachable_without(&BTreeSet::from([node]));
        alive.difference(&kept).copied().collect()
    }

    /// What a holder holds alone. A module and its variables are one holder: the first variable
    /// that points to a block which no other node of the module dominates has that block and what goes with it.
    pub(crate) fn held_alone(&self, holders: &HolderTree, holder: HolderId) -> BTreeSet<Node> {
        let alive = self.reachable_without(&BTreeSet::new());
        let mut held = self.lost(&alive, Node::Holder(holder));
        if !matches!(holders.name(holder), HolderName::Variable { .. }) {
            return held;
        }
        let module = holders.parent(holder);
        let of_module = self.lost(&alive, Node::Holder(module));
        let roots = |variable: HolderId| &self.edges[&Node::Holder(variable)];
        for block in roots(holder) {
            let is_first = holders.children(module).find(|one| roots(*one).contains(block));
            let is_below = |node: &&Node| {
                **node != *block
                    && **node != Node::Holder(module)
                    && self.lost(&alive, **node).contains(block)
            };
            if is_first == Some(holder)
                && of_module.contains(block)
                && !of_module.iter().any(|node| is_below(&node))
            {
                held.extend(self.lost(&alive, *block));
            }
        }
        held
    }
}

fn path(owner: RootOwner) -> Vec<HolderName> {
    let kind = HolderName::Kind(owner.kind());
    // No thread of these heaps says that it runs on another domain.
    let in_thread = |thread, last| {
        let thread = HolderName::Thread(thread);
        vec![HolderTree::THREADS, HolderName::Domain(0), thread, last]
    };
    match owner {
        RootOwner::Global { module, field } => {
            vec![kind, HolderName::Module(module), HolderName::Variable { module, field }]
        }
        RootOwner::Stack { thread, depth, return_address, .. } => {
            in_thread(thread, HolderName::Frame { depth, return_address })
        }
        RootOwner::Handler { thread, fiber, return_address, .. } => {
            in_thread(thread, HolderName::Handlers { fiber, return_address })
        }
        RootOwner::LocalC { thread } => in_thread(thread, HolderName::LocalC),
        RootOwner::DomainLocal { domain } => {
            let domains = HolderName::Domain(domain);
            vec![HolderTree::THREADS, domains, HolderName::DomainLocal(domain)]
        }
        RootOwner::Hook { slot } => vec![kind, HolderName::Slot(slot)],
        RootOwner::Host { kind: of, index } => {
            vec![kind, HolderName::HostKind(of), HolderName::HostRoot(index)]
        }
        other => panic!("{other:?}"),
    }
}

/// The holder below the program that the roots of a kind are in.
fn top(kind: RootKind) -> HolderName {
    match kind {
        RootKind::Stack | RootKind::DomainLocal | RootKind::LocalC => HolderTree::THREADS,
        other => HolderName::Kind(other),
    }
}

/// The blocks that the roots of each of these point to.
fn tops(heap: &Heap) -> BTreeMap<HolderName, Vec<usize>> {
    let mut tops: BTreeMap<HolderName, Vec<usize>> = BTreeMap::new();
    for (kind, blocks) in heap.roots() {
        tops.entry(top(kind)).or_default().extend(blocks);
    }
    tops
}

/// The holder with this path of names.
fn find(holders: &HolderTree, names: &[HolderName]) -> HolderId {
    let named = |holder: &HolderId| {
        let path: Vec<_> = holders.path(*holder).into_iter().map(|id| holders.name(id)).collect();
        path == names
    };
    holders.ids().find(named).unwrap()
}

pub(crate) fn load(records: &[Record]) -> (HeapGraph, HolderTree) {
    let (_, file) = write(records);
    let graph = HeapGraph::load(Cursor::new(&file), OPTIONS).unwrap();
    let holders = HolderTree::new(&graph).unwrap();
    (graph, holders)
}

proptest! {
    #[test]
    fn a_node_retains_what_is_lost_without_it(heap in heap()) {
        let (graph, holders) = load(&heap.records());
        let tree = DominatorTree::new(&graph, &holders).unwrap();
        let flow = Flow::new(&heap, &holders);
        let alive = flow.reachable_without(&BTreeSet::new());
        prop_assert_eq!(tree.len(), alive.len());
        let bytes = |node: &Node| match node {
            Node::Block(block) => graph.bytes(*block),
            Node::Holder(_) => 0,
        };
        let mut dominated_by: BTreeMap<Node, BTreeSet<Node>> = BTreeMap::new();
        for node in &alive {
            let kept = flow.reachable_without(&BTreeSet::from([*node]));
            let lost: BTreeSet<Node> = alive.difference(&kept).copied().collect();
            let position = tree.position(*node).unwrap();
            prop_assert_eq!(tree.node(position), *node);
            let held = match node {
                Node::Holder(holder) => flow.held_alone(&holders, *holder),
                Node::Block(_) => lost.clone(),
            };
            prop_assert_eq!(tree.retained(position), held.iter().map(bytes).sum::<u64>(), "{:?}", node);
            for other in lost.into_iter().filter(|other| other != node) {
                dominated_by.entry(other).or_default().insert(*node);
            }
        }
        let children = tree.children();
        for node in &alive {
            // The immediate dominator is the one that all others dominate.
            let position = tree.position(*node).unwrap();
            let above = dominated_by.get(node).cloned().unwrap_or_default();
            let nearest = above.iter().find(|one| {
                above.iter().all(|other| other == *one || dominated_by.get(*one).is_some_and(|set| set.contains(other)))
            });
            let found = tree.node(tree.dominator(position));
            let nearest = nearest.map(|nearest| match (nearest, found) {
                (Node::Holder(module), Node::Holder(variable))
                    if flow.held_alone(&holders, variable).contains(node)
                        && holders.parent(variable) == *module => found,
                _ => *nearest,
            });
            prop_assert_eq!(found, nearest.unwrap_or(*node));
            if let Some(nearest) = nearest {
                let above = tree.position(nearest).unwrap();
                prop_assert!(above < position);
                prop_assert!(children.of(above).contains(&position));
            }
        }
        for number in 0..heap.blocks.len() {
            let node = Node::Block(graph.number(address(number)).unwrap());
            prop_assert_eq!(tree.position(node).is_some(), alive.contains(&node));
        }
    }

    #[test]
    fn what_is_reached_first_adds_up(heap in heap()) {
        let (graph, holders) = load(&heap.records());
        let shares = holders.shares(&graph);
        let all = graph.reachable();
        prop_assert_eq!(shares[0].reach, all.reachable);
        let mut before = Vec::new();
        let mut seen = BTreeSet::new();
        for holder in holders.ids() {
            let below = holders.ids().filter(|id| holders.path(*id).contains(&holder) || holder == 0);
            let sum = below
                .map(|id| if holders.ids().any(|child| child != id && holders.parent(child) == id) { Share::default() }
                     else { shares[id as usize] })
                .fold(Share::default(), Share::plus);
            prop_assert_eq!(shares[holder as usize], sum);
        }
        let mut first: BTreeMap<HolderName, Reach> = BTreeMap::new();
        for kind in &all.kinds {
            let sum = first.entry(top(kind.kind)).or_default();
            *sum = sum.plus(kind.first_reached);
            before.extend(heap.roots()[&kind.kind].iter().copied());
            seen = heap.reachable(&before);
        }
        for (name, roots) in tops(&heap) {
            let holder = find(&holders, &[name]);
            prop_assert_eq!(holders.reachable(&graph, holder), heap.reach(&heap.reachable(&roots)));
            prop_assert_eq!(shares[holder as usize].reach, first[&name]);
        }
        prop_assert_eq!(heap.reach(&seen), all.reachable);
    }

    /// Memory outside the heap goes with the last block that keeps it.
    #[test]
    fn areas_are_retained_by_what_all_their_blocks_need(heap in heap()) {
        let (graph, holders) = load(&heap.records());
        let tree = DominatorTree::new(&graph, &holders).unwrap();
        let flow = Flow::new(&heap, &holders);
        let alive = flow.reachable_without(&BTreeSet::new());
        let areas: Vec<(u64, BTreeSet<Node>)> = heap
            .joined_areas()
            .into_iter()
            .map(|(bytes, blocks)| {
                let blocks = blocks.into_iter().map(|block| Node::Block(block as u32));
                (bytes, blocks.filter(|block| alive.contains(block)).collect::<BTreeSet<_>>())
            })
            .filter(|(_, blocks)| !blocks.is_empty())
            .collect();
        let all: u64 = areas.iter().map(|area| area.0).sum();
        prop_assert_eq!(tree.retained_outside(0).allocated, all);
        prop_assert_eq!(holders.shares(&graph)[0].outside.allocated, all);
        // A module's own go to its variables, and to the blocks that these point to.
        let of_variables: BTreeSet<Node> = holders
            .ids()
            .filter(|id| matches!(holders.name(*id), HolderName::Variable { .. }))
            .flat_map(|id| flow.edges[&Node::Holder(id)].iter().copied().chain([Node::Holder(id)]))
            .collect();
        for node in &alive {
            let lost = flow.lost(&alive, *node);
            let freed = areas.iter().filter(|(_, blocks)| blocks.is_subset(&lost));
            let freed: u64 = freed.map(|(bytes, _)| bytes).sum();
            let found = tree.retained_outside(tree.position(*node).unwrap()).allocated;
            let is_exact = !of_variables.contains(node);
            prop_assert!(if is_exact { found == freed } else { found >= freed }, "{node:?}: {found}, {freed}");
        }
    }

    #[test]
    fn joining_alike_blocks_loses_nothing(heap in heap(), most in prop::sample::select(vec![4, 10_000])) {
        let (graph, holders) = load(&heap.records());
        let tree = DominatorTree::new(&graph, &holders).unwrap();
        let kinds = Kinds::new(&graph);
        let joined = RetainedTree::new(&tree, most, |block| graph.bytes(block), |block| kinds.of(&graph, block),
            |from, to| kinds.pointer_of_record(&graph, from, to));
        let nodes = joined.nodes();
        let reachable = graph.reachable().reachable;
        prop_assert_eq!(nodes.iter().map(|node| node.blocks).sum::<u64>(), reachable.blocks);
        prop_assert_eq!(nodes[0].retained, reachable.bytes);
        for (id, node) in (0..).zip(nodes) {
            prop_assert!(id == 0 || node.parent < id);
            if let RetainedKind::Holder(holder) = node.kind {
                prop_assert_eq!(node.retained, tree.retained_by(holder));
            }
            // No kind comes more than twice on a path, nor twice in a row.
            let path: Vec<_> = joined.path(id).iter().map(|id| nodes[*id as usize].kind).collect();
            prop_assert!(path.windows(2).all(|pair| pair[0] != pair[1]));
            prop_assert!(path.iter().all(|one| path.iter().filter(|other| *other == one).count() <= 2));
        }
        for position in 0..tree.len() as u32 {
            let node = nodes[joined.node_of(position).unwrap() as usize];
            match (tree.node(position), node.kind) {
                (Node::Block(block), RetainedKind::Blocks(kind)) => prop_assert_eq!(kinds.of(&graph, block), kind),
                (Node::Holder(holder), RetainedKind::Holder(kind)) => prop_assert_eq!(holder, kind),
                (Node::Block(_), RetainedKind::Others) => prop_assert!(nodes.len() >= most),
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn two_kinds_share_what_both_reach(heap in heap()) {
        let (graph, holders) = load(&heap.records());
        let roots = tops(&heap);
        for (one, of_one) in &roots {
            for (other, of_other) in &roots {
                let [a, b] = [one, other].map(|name| find(&holders, &[*name]));
                let both = heap.reachable(of_one).intersection(&heap.reachable(of_other)).copied().collect();
                prop_assert_eq!(holders.shared(&graph, a, b), heap.reach(&both));
            }
        }
    }
}

/// Lists are deep: nothing may recurse.
#[test]
fn a_list_of_ten_million_blocks_is_retained_by_its_head() {
    let count = 10_000_000u32;
    let at = |number: u32| 0x10_0000 + u64::from(number) * 24;
    let mut workspace = Box::new(Workspace::new());
    let mut encoder = Encoder::new(Vec::new(), &mut workspace, 0);
    let mut write = || -> Result<(), i32> {
        let words = u64::from(count) * 3;
        encoder.segment(Segment { kind: SegmentKind::Major, start: at(0), words })?;
        for number in 0..count {
            encoder.begin_block(at(number), 2, 0)?;
            if number + 1 < count {
                encoder.pointer(1, at(number + 1))?;
            }
            encoder.end_block()?;
        }
        let owner = RootOwner::Global { module: 0, field: 0 };
        encoder.root(heaptap_heap::Root { owner, target: at(0) })
    };
    write().unwrap();
    let file = encoder.finish().unwrap().1;
    let options = LoadOptions { memory: 4 << 30, fields: false };
    let graph = HeapGraph::load(Cursor::new(file), options).unwrap();
    let analysis = HeapAnalysis::new(graph).unwrap();
    let all = u64::from(count) * 16;
    assert_eq!((analysis.retained_by(0), analysis.retained_by(count - 1)), (all, 16));
    assert_eq!(analysis.reachable_bytes(), all);
    let held = PathFinder::new(&analysis).held_by(count - 1).unwrap();
    assert_eq!(held.shortest.len(), count as usize + 1);
    let row = analysis.kind_rows()[0];
    assert_eq!((row.own.blocks, row.at_least), (count.into(), all));
    assert_eq!(analysis.freed_without(&[row.kind]), [all]);
    assert_eq!(analysis.suspects().accumulations.len(), 1);
}
