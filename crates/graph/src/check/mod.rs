//! Whether the parts of a snapshot fit together.
//!
//! The first reading finds where blocks are, the second where pointers lead. Memory: one bit
//! for each word of the pages that hold blocks, and some bytes for each segment, module and thread.
//! The caller sets a limit, because a small file can describe very many blocks. Where a pointer or a slot of a
//! suspended stack leads to no block, the graph is loaded, too: it is a defect only of what is alive.

mod finding;

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Seek};

pub use finding::Finding;

use heaptap_heap::{
    Block, Completion, Defect, Item, Pointer, ReadError, Reader, Root, RootOwner, Segment, Totals,
};

use crate::graph::{BlockStarts, GraphError, HeapGraph, LoadOptions, LostPointer, StartsBuilder};

/// What [`check()`] found.
#[derive(Debug)]
pub struct CheckReport {
    /// What was read.
    pub counted: Totals,
    /// How the file ends. Of a file that is cut short, pointers are not followed: their targets
    /// may be in the missing part.
    pub completion: Completion,
    /// The first findings, at most [`CheckReport::MOST_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many there are in all.
    pub finding_count: u64,
    /// How many pointers of blocks that no root reaches lead to no block. That is no defect: garbage may
    /// outlive what it points to.
    pub lost_by_garbage: u64,
    /// The error that ended the reading.
    pub error: Option<ReadError>,
    /// Chunks of a later version, which were skipped.
    pub skipped_chunks: u64,
}

impl CheckReport {
    /// How many findings are kept.
    pub const MOST_FINDINGS: usize = 20;

    /// Whether nothing is wrong. A file that is cut short may be sound.
    pub fn is_sound(&self) -> bool {
        self.finding_count == 0 && self.error.is_none()
    }

    fn find(&mut self, finding: Finding) {
        self.finding_count += 1;
        if self.findings.len() < CheckReport::MOST_FINDINGS {
            self.findings.push(finding);
        }
    }
}

/// Checks a snapshot from its beginning. An error is returned if not even its header can be read, or if
/// the file cannot be read a second time, or if it takes more than about `memory` bytes.
pub fn check(mut input: impl Read + Seek, memory: u64) -> Result<CheckReport, ReadError> {
    let mut report = CheckReport {
        counted: Totals::default(),
        completion: Completion::Unknown,
        findings: Vec::new(),
        finding_count: 0,
        lost_by_garbage: 0,
        error: None,
        skipped_chunks: 0,
    };
    let starts = FirstReading::default().read(&mut input, memory, &mut report)?;
    if report.error.is_some() || report.completion != Completion::Complete {
        return Ok(report);
    }
    input.rewind().map_err(|error| ReadError { defect: Defect::Io(error), chunk: 0, offset: 0 })?;
    let second = SecondReading { starts, ids: Ids::default(), has_lost_pointers: false };
    if second.read(&mut input, memory, &mut report)? {
        find_lost_pointers(input, memory, &mut report)?;
    }
    Ok(report)
}

/// Pointers of blocks, and slots of suspended stacks, that lead to no block although the block or the
/// continuation is alive.
fn find_lost_pointers(
    input: impl Read + Seek,
    memory: u64,
    report: &mut CheckReport,
) -> Result<(), ReadError> {
    let graph = HeapGraph::load(input, LoadOptions { memory, fields: false });
    let graph = graph.map_err(|error| match error {
        GraphError::Read(error) => error,
        GraphError::CutShort | GraphError::TooBig | GraphError::Memory(_) => {
            ReadError { defect: Defect::Memory(memory), chunk: 0, offset: 0 }
        }
    })?;
    for &LostPointer { block, field, target } in graph.lost_pointers() {
        let block = graph.address(block).unwrap_or_default();
        report.find(match field {
            Some(field) => Finding::DanglingPointer { block, field, target },
            None => Finding::NoBlock { from: "root", target },
        });
    }
    report.lost_by_garbage = graph.lost_by_garbage();
    Ok(())
}

fn beyond<R: Read>(memory: u64, reader: &Reader<R>) -> ReadError {
    let (chunk, offset) = reader.position();
    ReadError { defect: Defect::Memory(memory), chunk, offset }
}

/// Where segments and blocks are.
#[derive(Default)]
struct FirstReading {
    /// By start.
    segments: BTreeMap<u64, SegmentEnd>,
    starts: StartsBuilder,
}

/// A segment, and where its last block ends.
struct SegmentEnd {
    segment: Segment,
    end: u64,
}

impl FirstReading {
    fn read(
        mut self,
        input: impl Read,
        memory: u64,
        report: &mut CheckReport,
    ) -> Result<BlockStarts, ReadError> {
        let mut reader = Reader::new(input)?;
        loop {
            match reader.next_item() {
                Ok(Some(item)) => {
                    report.counted.count(&item);
                    match item {
                        Item::Segment(segment) => self.add_segment(segment, report),
                        Item::Block(block) if block.is_first => self.add_block(&block, report),
                        _ => {}
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    report.error = Some(error);
                    break;
                }
            }
            if self.starts.memory() + self.segments.len() as u64 * 64 > memory {
                return Err(beyond(memory, &reader));
            }
        }
        report.completion = reader.completion();
        report.skipped_chunks = reader.skipped_chunks();
        if let (Some(declared), Completion::Complete) = (reader.totals(), report.completion) {
            let counted = report.counted.named();
            for ((name, declared), (_, counted)) in declared.named().into_iter().zip(counted) {
                if declared != counted {
                    report.find(Finding::TotalDiffers { name, declared, counted });
                }
            }
        }
        Ok(self.starts.finish())
    }

    fn add_segment(&mut self, segment: Segment, report: &mut CheckReport) {
        // An empty young heap ends where its neighbour may begin.
        if segment.words == 0 {
            return;
        }
        let before = self.segments.range(..=segment.start).next_back();
        let after = self.segments.range(segment.start..).next();
        let overlaps = before.is_some_and(|(_, before)| end_of(&before.segment) > segment.start)
            || after.is_some_and(|(&start, _)| end_of(&segment) > start);
        if overlaps {
            report.find(Finding::SegmentsOverlap { start: segment.start });
        }
        self.segments.insert(segment.start, SegmentEnd { segment, end: segment.start });
    }

    fn add_block(&mut self, block: &Block<'_>, report: &mut CheckReport) {
        let address = block.address;
        let end = address.saturating_add(block.words << 3);
        match self.segments.range_mut(..=address).next_back() {
            Some((_, segment)) if end <= end_of(&segment.segment) => {
                // Of a block without words at the end of a segment, only the header lies in it.
                let ends_another = block.words == 0 && address == segment.segment.start;
                if address < segment.end && !ends_another {
                    report.find(Finding::Overlap { block: address, end: segment.end });
                }
                segment.end = segment.end.max(end);
            }
            _ => report.find(Finding::OutsideSegments { block: address }),
        }
        self.starts.add(address);
    }
}

fn end_of(segment: &Segment) -> u64 {
    segment.start.saturating_add(segment.words.saturating_mul(8))
}

/// Ids that are used, and those that are listed.
#[derive(Default)]
struct Ids {
    used: BTreeSet<(&'static str, u32)>,
    listed: BTreeSet<(&'static str, u32)>,
}

impl Ids {
    fn memory(&self) -> u64 {
        (self.used.len() + self.listed.len()) as u64 * 64
    }

    fn compare(&self, report: &mut CheckReport) {
        for &(list, id) in self.used.difference(&self.listed) {
            report.find(Finding::UnknownId { list, id: id.into() });
        }
    }

    fn add_root(&mut self, root: &Root) {
        match root.owner {
            RootOwner::Global { module, .. } => drop(self.used.insert(("module", module))),
            RootOwner::Stack { thread, .. }
            | RootOwner::Handler { thread, .. }
            | RootOwner::LocalC { thread } => {
                self.used.insert(("thread", thread));
            }
            _ => {}
        }
    }
}

/// Where pointers and roots lead.
struct SecondReading {
    starts: BlockStarts,
    ids: Ids,
    /// A pointer or a slot of a suspended stack leads to no block.
    has_lost_pointers: bool,
}

impl SecondReading {
    /// Returns whether pointers or slots of suspended stacks lead to no block.
    fn read(
        mut self,
        input: impl Read,
        memory: u64,
        report: &mut CheckReport,
    ) -> Result<bool, ReadError> {
        let mut reader = Reader::new(input)?;
        while let Some(item) = reader.next_item()? {
            self.follow(&item, report);
            if self.ids.memory() > memory {
                return Err(beyond(memory, &reader));
            }
        }
        self.ids.compare(report);
        Ok(self.has_lost_pointers)
    }

    fn is_block(&self, address: u64) -> bool {
        self.starts.number(address).is_some()
    }

    /// Finds out whether an item leads to blocks.
    fn follow(&mut self, item: &Item<'_>, report: &mut CheckReport) {
        let mut lead = |from: &'static str, target: u64| {
            if !self.is_block(target) {
                report.find(Finding::NoBlock { from, target });
            }
        };
        match item {
            Item::Block(block) => self.follow_pointers(block),
            Item::Root(root) => self.follow_root(root, report),
            Item::Finaliser(finaliser) => {
                for target in [finaliser.value, finaliser.function] {
                    if target != 0 {
                        lead("finaliser", target);
                    }
                }
            }
            Item::Ephemeron(ephemeron) => {
                lead("ephemeron", ephemeron.address);
                ephemeron.data.into_iter().for_each(|data| lead("ephemeron", data));
                ephemeron.keys.iter().for_each(|key| lead("ephemeron", key.target));
            }
            Item::Tracked(tracked) => lead("followed block", tracked.address),
            Item::OutsideArea(area) => lead("area outside the heap", area.block),
            Item::Module { id, .. } => drop(self.ids.listed.insert(("module", *id))),
            Item::Thread { id, .. } => drop(self.ids.listed.insert(("thread", *id))),
            _ => {}
        }
    }

    fn follow_pointers(&mut self, block: &Block<'_>) {
        let is_lost = |pointer: &Pointer| !self.is_block(pointer.target);
        self.has_lost_pointers = self.has_lost_pointers || block.pointers.iter().any(is_lost);
    }

    fn follow_root(&mut self, root: &Root, report: &mut CheckReport) {
        self.ids.add_root(root);
        let leads = self.is_block(root.target);
        match root.owner {
            RootOwner::Continuation { block, .. } if self.is_block(block) => {
                self.has_lost_pointers |= !leads;
            }
            RootOwner::Continuation { block, .. } => {
                report.find(Finding::NoBlock { from: "continuation", target: block });
            }
            _ if leads => {}
            _ => report.find(Finding::NoBlock { from: "root", target: root.target }),
        }
    }
}
