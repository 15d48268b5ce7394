//! Whether the parts of a snapshot fit together.
//!
//! The first reading finds where blocks are, the second where pointers lead. Memory: one bit
//! for each word of the pages that hold blocks, and some bytes for each segment, module and thread.
//! The caller sets a limit, because a small file can describe very many blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io::{Read, Seek};

use crate::format::{
    Block, Completion, Defect, Item, ReadError, Reader, Root, RootOwner, Segment, Totals,
};
use crate::graph::{BlockStarts, StartsBuilder};
use crate::summary::count;

/// Something in a snapshot that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Finding {
    /// A block lies in no segment.
    OutsideSegments {
        /// The block's address.
        block: u64,
    },
    /// A block begins before the one before it in its segment ends.
    Overlap {
        /// The block's address.
        block: u64,
        /// Where the block before ends.
        end: u64,
    },
    /// Two segments overlap.
    SegmentsOverlap {
        /// Where the second one begins.
        start: u64,
    },
    /// A pointer leads to no block.
    DanglingPointer {
        /// The address of the block with the pointer.
        block: u64,
        /// The pointer's field.
        field: u64,
        /// Where it points to.
        target: u64,
    },
    /// Something else leads to no block.
    NoBlock {
        /// What does: `root`, `continuation`, `finaliser`, `ephemeron` or `followed block`.
        from: &'static str,
        /// Where it points to.
        target: u64,
    },
    /// A root or a block names something that is not listed.
    UnknownId {
        /// What it is: `module` or `thread`.
        list: &'static str,
        /// The id.
        id: u64,
    },
    /// The writer counted otherwise.
    TotalDiffers {
        /// What was counted.
        name: &'static str,
        /// By the writer.
        declared: u64,
        /// By the reader.
        counted: u64,
    },
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::OutsideSegments { block } => {
                write!(f, "the block at {block:#x} lies in no segment")
            }
            Finding::Overlap { block, end } => write!(
                f,
                "the block at {block:#x} begins before the one before it ends, at {end:#x}"
            ),
            Finding::SegmentsOverlap { start } => {
                write!(f, "the segment at {start:#x} overlaps the one before it")
            }
            Finding::DanglingPointer { block, field, target } => write!(
                f,
                "field {field} of the block at {block:#x} points to {target:#x}, where no block begins"
            ),
            Finding::NoBlock { from, target } => {
                write!(f, "a {from} points to {target:#x}, where no block begins")
            }
            Finding::UnknownId { list, id } => {
                write!(f, "a root is in {list} {id}, which is not listed")
            }
            Finding::TotalDiffers { name, declared, counted } => write!(
                f,
                "{}: {counted} were read, and the writer counted {declared}",
                name.replace('_', " ")
            ),
        }
    }
}

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
        error: None,
        skipped_chunks: 0,
    };
    let starts = FirstReading::default().read(&mut input, memory, &mut report)?;
    if report.error.is_some() || report.completion != Completion::Complete {
        return Ok(report);
    }
    input.rewind().map_err(|error| ReadError { defect: Defect::Io(error), chunk: 0, offset: 0 })?;
    let mut reader = Reader::new(&mut input)?;
    let mut ids = Ids::default();
    while let Some(item) = reader.next_item()? {
        follow(&starts, &item, &mut ids, &mut report);
        if ids.memory() > memory {
            return Err(beyond(memory, &reader));
        }
    }
    ids.compare(&mut report);
    Ok(report)
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
                    count(&mut report.counted, &item);
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
            RootOwner::Stack { thread, .. } | RootOwner::LocalC { thread } => {
                self.used.insert(("thread", thread));
            }
            _ => {}
        }
    }
}

/// Finds out whether an item leads to blocks.
fn follow(starts: &BlockStarts, item: &Item<'_>, ids: &mut Ids, report: &mut CheckReport) {
    let mut lead = |from: &'static str, target: u64| {
        if starts.number(target).is_none() {
            report.find(Finding::NoBlock { from, target });
        }
    };
    match item {
        Item::Block(block) => {
            for pointer in block.pointers {
                if starts.number(pointer.target).is_none() {
                    report.find(Finding::DanglingPointer {
                        block: block.address,
                        field: pointer.field,
                        target: pointer.target,
                    });
                }
            }
        }
        Item::Root(root) => {
            ids.add_root(root);
            lead("root", root.target);
            if let RootOwner::Continuation { block, .. } = root.owner {
                lead("continuation", block);
            }
        }
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
        Item::Followed(followed) => lead("followed block", followed.address),
        Item::Module { id, .. } => drop(ids.listed.insert(("module", *id))),
        Item::Thread { id, .. } => drop(ids.listed.insert(("thread", *id))),
        _ => {}
    }
}
