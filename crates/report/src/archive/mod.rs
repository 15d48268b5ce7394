//! The binary form of a trace's aggregate, its table of blocks and its locations:
//! what the viewer's page holds instead of the trace.
//!
//! It is not a format for keeping: a page has the program that reads it inside, so
//! both always have the same [`VERSION`]. It is columnar, and compresses well. A
//! page may come by mail, so reading it trusts nothing: no input makes it panic, or
//! take much more memory than the input.

mod bytes;
mod callees;
mod read;
mod tree;
mod write;

use heaptap_trace::{LocationTable, TraceInfo};

use crate::aggregate::Aggregate;
use crate::blocks::BlockTable;

pub use bytes::ArchiveError;

/// The first bytes of an archive.
const MAGIC: &[u8] = b"heaptap archive ";

/// Changes with every change of the layout.
const VERSION: u64 = 9;

/// A trace that was read to its end.
pub struct Archive {
    /// The name of the trace.
    pub name: String,
    /// What the trace says of itself.
    pub info: TraceInfo,
    /// Why the end of the trace is missing, and until when it covers the program.
    pub cut_short: Option<String>,
    /// Why not all that the program did was read.
    pub incomplete: Option<String>,
    /// What was found wrong with the trace.
    pub notices: Vec<String>,
    /// The aggregate of all blocks, with whole stacks. An archive that was read lacks
    /// what no view shows: the lifetimes of each path, and its number of blocks.
    pub aggregate: Aggregate,
    /// The table of blocks.
    pub blocks: BlockTable,
    /// The locations of the frames.
    pub locations: LocationTable,
    /// Results that the table cannot give exactly, by the name of their query.
    pub answers: Vec<(String, String)>,
}

/// What an archive is written from: a trace that may still grow keeps its parts.
#[derive(Clone, Copy)]
pub struct ArchiveParts<'a> {
    /// The name of the trace.
    pub name: &'a str,
    /// What the trace says of itself.
    pub info: &'a TraceInfo,
    /// See [`Archive::cut_short`].
    pub cut_short: Option<&'a str>,
    /// See [`Archive::incomplete`].
    pub incomplete: Option<&'a str>,
    /// What was found wrong with the trace.
    pub notices: &'a [String],
    /// The aggregate of all blocks, with whole stacks.
    pub aggregate: &'a Aggregate,
    /// The table of blocks.
    pub blocks: &'a BlockTable,
    /// The locations of the frames.
    pub locations: &'a LocationTable,
    /// See [`Archive::answers`].
    pub answers: &'a [(String, String)],
}

impl Archive {
    /// The bytes of the archive, not compressed.
    pub fn to_bytes(&self) -> Vec<u8> {
        let parts = ArchiveParts {
            name: &self.name,
            info: &self.info,
            cut_short: self.cut_short.as_deref(),
            incomplete: self.incomplete.as_deref(),
            notices: &self.notices,
            aggregate: &self.aggregate,
            blocks: &self.blocks,
            locations: &self.locations,
            answers: &self.answers,
        };
        parts.to_bytes()
    }
}
