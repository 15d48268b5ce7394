//! What is wrong with a snapshot.

use std::fmt;

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
