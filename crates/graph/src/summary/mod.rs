//! What a snapshot holds, counted in one reading.

mod outside;

use std::collections::BTreeMap;
use std::io::Read;

use heaptap_heap::{
    Completion, FinaliserKind, Item, MetaKey, ReadError, Reader, RootKind, SegmentKind, Totals,
};

use crate::graph::OutsideBytes;
use outside::OutsideSums;

/// At most this number of kinds of custom blocks are told apart.
const MOST_CUSTOM_KINDS: usize = 4096;

/// Segments of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentSum {
    /// How many there are.
    pub count: u64,
    /// Their words.
    pub words: u64,
}

/// Custom blocks of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CustomSum {
    /// The identifier; empty if the snapshot has none.
    pub identifier: Vec<u8>,
    /// How many there are.
    pub blocks: u64,
    /// What they keep outside the heap; what several of them keep counts once.
    pub outside: OutsideBytes,
}

/// What a snapshot holds.
#[derive(Debug)]
pub struct Summary {
    /// The facts about the snapshot, in the order of the file.
    pub meta: Vec<(MetaKey, Vec<u8>)>,
    /// What was counted in reading it.
    pub counted: Totals,
    /// What its writer counted; `None` if the file is cut short.
    pub declared: Option<Totals>,
    /// Segments by kind.
    pub segments: BTreeMap<SegmentKind, SegmentSum>,
    /// Roots by kind. What finalisers hold is not among them.
    pub roots: BTreeMap<RootKind, u64>,
    /// Finalisers by kind.
    pub finalisers: BTreeMap<FinaliserKind, u64>,
    /// Custom blocks by the address of their operations.
    pub customs: BTreeMap<u64, CustomSum>,
    /// What all of these keep outside the heap.
    pub outside: OutsideBytes,
    /// How the file ends.
    pub completion: Completion,
    /// Chunks of a later version, which were skipped.
    pub skipped_chunks: u64,
    /// The error that ended the reading. Everything before it was counted.
    pub error: Option<ReadError>,
}

impl Summary {
    /// Reads a snapshot to its end, or to the first damaged chunk. An error is returned if not
    /// even its header can be read.
    pub fn read(input: impl Read) -> Result<Summary, ReadError> {
        let mut reader = Reader::new(input)?;
        let mut summary = Summary {
            meta: Vec::new(),
            counted: Totals::default(),
            declared: None,
            segments: BTreeMap::new(),
            roots: BTreeMap::new(),
            finalisers: BTreeMap::new(),
            customs: BTreeMap::new(),
            outside: OutsideBytes::default(),
            completion: Completion::Unknown,
            skipped_chunks: 0,
            error: None,
        };
        let mut outside = OutsideSums::default();
        loop {
            match reader.next_item() {
                Ok(Some(item)) => {
                    summary.counted.count(&item);
                    summary.add(&item, &mut outside);
                }
                Ok(None) => break,
                Err(error) => {
                    summary.error = Some(error);
                    break;
                }
            }
        }
        let (all, by_kind) = outside.finish(MOST_CUSTOM_KINDS);
        summary.outside = all;
        for (operations, bytes) in by_kind {
            if let Some(sum) = summary.custom(operations) {
                sum.outside = bytes;
            }
        }
        summary.declared = reader.totals().copied();
        summary.completion = reader.completion();
        summary.skipped_chunks = reader.skipped_chunks();
        Ok(summary)
    }

    /// The value of a fact.
    pub fn meta(&self, key: MetaKey) -> Option<&[u8]> {
        let mut values = self.meta.iter().filter(|(found, _)| *found == key);
        values.next().map(|(_, value)| value.as_slice())
    }

    fn add(&mut self, item: &Item<'_>, outside: &mut OutsideSums) {
        match item {
            Item::Meta { key, value } => self.meta.push((*key, value.to_vec())),
            Item::Segment(segment) => {
                let sum = self.segments.entry(segment.kind).or_default();
                sum.count += 1;
                sum.words = sum.words.saturating_add(segment.words);
            }
            Item::Root(root) => *self.roots.entry(root.owner.kind()).or_default() += 1,
            Item::Finaliser(finaliser) => {
                *self.finalisers.entry(finaliser.kind).or_default() += 1;
            }
            Item::Block(block) => {
                if let Some(custom) = block.custom {
                    outside.add_custom(custom, MOST_CUSTOM_KINDS);
                    if let Some(sum) = self.custom(custom.operations) {
                        sum.blocks += 1;
                    }
                }
            }
            Item::OutsideArea(area) => outside.add_area(area, MOST_CUSTOM_KINDS),
            Item::CustomKind { operations, identifier } => {
                if let Some(sum) = self.custom(*operations) {
                    sum.identifier = identifier.to_vec();
                }
            }
            _ => {}
        }
    }

    fn custom(&mut self, operations: u64) -> Option<&mut CustomSum> {
        let is_known = self.customs.contains_key(&operations);
        if !is_known && self.customs.len() >= MOST_CUSTOM_KINDS {
            return None;
        }
        Some(self.customs.entry(operations).or_default())
    }
}
