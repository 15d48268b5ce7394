//! Whether the parts of a snapshot fit together.
//!
//! The first reading finds where blocks are, the second where pointers lead. Memory: one bit
//! for each word of the pages that hold blocks.

use std::collections::BTreeSet;
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
/// the file cannot be read a second time.
pub fn check(mut input: impl Read + Seek) -> Result<CheckReport, ReadError> {
    let mut report = CheckReport {
        counted: Totals::default(),
        completion: Completion::Unknown,
        findings: Vec::new(),
        finding_count: 0,
        error: None,
        skipped_chunks: 0,
    };
    let starts = FirstReading::default().read(&mut input, &mut report)?;
    if report.error.is_some() || report.completion != Completion::Complete {
        return Ok(report);
    }
    input.rewind().map_err(|error| ReadError { defect: Defect::Io(error), chunk: 0, offset: 0 })?;
    let mut reader = Reader::new(&mut input)?;
    let mut ids = Ids::default();
    while let Some(item) = reader.next_item()? {
        follow(&starts, &item, &mut ids, &mut report);
    }
    ids.compare(&mut report);
    Ok(report)
}

/// Where segments and blocks are.
#[derive(Default)]
struct FirstReading {
    segments: Vec<SegmentEnd>,
    starts: StartsBuilder,
    /// The segment of the block before.
    current: usize,
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

    /// Segments are kept by ascending start.
    fn add_segment(&mut self, segment: Segment, report: &mut CheckReport) {
        let at = self.segments.partition_point(|other| other.segment.start < segment.start);
        let before = at.checked_sub(1).and_then(|before| self.segments.get(before));
        let after = self.segments.get(at);
        let overlaps = before.is_some_and(|before| end_of(&before.segment) > segment.start)
            || after.is_some_and(|after| end_of(&segment) > after.segment.start);
        if overlaps {
            report.find(Finding::SegmentsOverlap { start: segment.start });
        }
        self.segments.insert(at, SegmentEnd { segment, end: segment.start });
        self.current = at;
    }

    fn add_block(&mut self, block: &Block<'_>, report: &mut CheckReport) {
        let address = block.address;
        let end = address.saturating_add(block.words << 3);
        let contains = |segment: &SegmentEnd| {
            segment.segment.start <= address && end <= end_of(&segment.segment)
        };
        if !self.segments.get(self.current).is_some_and(contains) {
            let at = self.segments.partition_point(|other| other.segment.start <= address);
            self.current = at.saturating_sub(1);
        }
        match self.segments.get_mut(self.current) {
            Some(segment) if contains(segment) => {
                if address < segment.end {
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
