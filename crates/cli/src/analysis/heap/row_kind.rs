//! The option `--by`.

use clap::ValueEnum;
use heaptap_graph::Level;
use heaptap_report::figures::heap::tables::HeapRows;

/// What a row is.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum HeapRowKind {
    /// Kinds of roots: globals, stacks, C code, finalisers
    Kind,
    /// Modules
    Module,
    /// Variables of modules, frames, and what else holds roots
    Variable,
    /// Domains
    Domain,
    /// Threads
    Thread,
    /// Frames of stacks
    Frame,
    /// Blocks that are alike: by tag and size, closures by function, customs by identifier
    Block,
    /// OCaml types of blocks, with --types
    Type,
    /// Custom blocks by identifier
    Custom,
    /// Where what is alive was allocated, how long ago, and who holds it: joins the trace that was being written
    Site,
}

impl HeapRowKind {
    /// The rows of a table; `None` for sites, which take the trace.
    pub(crate) fn rows(self) -> Option<HeapRows> {
        Some(match self {
            HeapRowKind::Kind => HeapRows::Holders(Level::Kind),
            HeapRowKind::Module => HeapRows::Holders(Level::Module),
            HeapRowKind::Variable => HeapRows::Holders(Level::Variable),
            HeapRowKind::Domain => HeapRows::Holders(Level::Domain),
            HeapRowKind::Thread => HeapRows::Holders(Level::Thread),
            HeapRowKind::Frame => HeapRows::Holders(Level::Frame),
            HeapRowKind::Block => HeapRows::Blocks,
            HeapRowKind::Type => HeapRows::Types,
            HeapRowKind::Custom => HeapRows::Customs,
            HeapRowKind::Site => return None,
        })
    }
}
