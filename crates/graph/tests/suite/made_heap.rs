//! Small heaps as values, and what is reachable in them by a plain reference.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use heaptap_graph::{LoadOptions, Reach};
use heaptap_heap::{
    EphemeronKey, Finaliser, FinaliserKind, OutsideArea, OutsideKind, Pointer, Root, RootKind,
    RootOwner,
};
use proptest::prelude::*;

use crate::snapshot::{OwnedBlock, Record};

pub(crate) const OPTIONS: LoadOptions = LoadOptions { memory: 1 << 30, fields: false };

const HEADER_WORDS: u64 = 1;

/// A heap by numbers of blocks.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    /// Words and targets of each block.
    pub(crate) blocks: Vec<(u64, Vec<usize>)>,
    pub(crate) roots: Vec<(RootOwner, usize)>,
    /// Continuation and target.
    pub(crate) suspended: Vec<(usize, usize)>,
    pub(crate) finalisers: Vec<(FinaliserKind, usize, usize)>,
    /// Ephemeron, data and keys.
    pub(crate) ephemerons: Vec<(usize, Option<usize>, Vec<usize>)>,
    /// Block, and the range outside the heap that it keeps.
    pub(crate) areas: Vec<(usize, Range<u64>)>,
}

/// Owners of several kinds, modules, variables, threads and frames.
fn owner() -> impl Strategy<Value = RootOwner> {
    let frame = |thread, depth| RootOwner::Stack {
        thread,
        depth,
        return_address: 0x400 + u64::from(depth),
        slot: 1,
    };
    prop::sample::select(vec![
        RootOwner::Global { module: 1, field: 2 },
        RootOwner::Global { module: 1, field: 3 },
        RootOwner::Global { module: 2, field: 0 },
        frame(0, 0),
        frame(0, 1),
        frame(1, 0),
        RootOwner::Handler { thread: 0, fiber: 1, return_address: 0x401, slot: 2 },
        RootOwner::LocalC { thread: 0 },
        RootOwner::DomainLocal { domain: 0 },
        RootOwner::DomainLocal { domain: 3 },
        RootOwner::Hook { slot: 77 },
        RootOwner::Host { kind: 1, index: 5 },
    ])
}

pub(crate) fn heap() -> impl Strategy<Value = Heap> {
    (1usize..60).prop_flat_map(|count| {
        let block = 0..count;
        let owner = owner();
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
            prop::collection::vec((block.clone(), prop::option::of(block.clone()), keys), 0..12);
        let area = (block, 0u64..12, 0u64..4)
            .prop_map(|(block, start, bytes)| (block, start * 100..(start + bytes) * 100));
        let areas = prop::collection::vec(area, 0..6);
        (blocks, roots, suspended, finalisers, ephemerons, areas).prop_map(
            |(blocks, roots, suspended, finalisers, ephemerons, areas)| Heap {
                blocks,
                roots,
                suspended,
                finalisers,
                ephemerons,
                areas,
            },
        )
    })
}

pub(crate) fn address(block: usize) -> u64 {
    0x10_0000 + block as u64 * 80
}

impl Heap {
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = vec![Record::Meta(8, HEADER_WORDS.to_string().into_bytes())];
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
            let root = Root { owner, target: address(target) };
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
        for (block, range) in &self.areas {
            records.push(Record::OutsideArea(OutsideArea {
                block: address(*block),
                operations: 0x700,
                start: range.start,
                bytes: range.end - range.start,
                kind: OutsideKind::Allocated,
            }));
        }
        records
    }

    /// The areas that are made of ranges which overlap: their sizes, and the blocks that keep them.
    pub(crate) fn joined_areas(&self) -> Vec<(u64, BTreeSet<usize>)> {
        let mut areas: Vec<(Range<u64>, BTreeSet<usize>)> = Vec::new();
        for (block, range) in self.areas.iter().filter(|(_, range)| !range.is_empty()) {
            let mut joined = (range.clone(), BTreeSet::from([*block]));
            // What overlaps the sum may be more than what overlaps this range.
            while let Some(at) = areas
                .iter()
                .position(|(other, _)| other.start < joined.0.end && joined.0.start < other.end)
            {
                let (range, blocks) = areas.swap_remove(at);
                joined.0 = range.start.min(joined.0.start)..range.end.max(joined.0.end);
                joined.1.extend(blocks);
            }
            areas.push(joined);
        }
        areas.into_iter().map(|(range, blocks)| (range.end - range.start, blocks)).collect()
    }

    pub(crate) fn roots(&self) -> BTreeMap<RootKind, Vec<usize>> {
        let mut roots: BTreeMap<RootKind, Vec<usize>> = BTreeMap::new();
        for &(owner, target) in &self.roots {
            roots.entry(owner.kind()).or_default().push(target);
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
    pub(crate) fn reachable(&self, roots: &[usize]) -> BTreeSet<usize> {
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

    pub(crate) fn reach(&self, blocks: &BTreeSet<usize>) -> Reach {
        let words: u64 = blocks.iter().map(|block| self.blocks[*block].0).sum();
        let bytes = (words + HEADER_WORDS * blocks.len() as u64) * 8;
        Reach { blocks: blocks.len() as u64, words, bytes }
    }
}
