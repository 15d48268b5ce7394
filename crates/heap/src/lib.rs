//! Heap snapshots: which blocks a program's heap holds, and what points to them. No dependencies but `heaptap_codec`.
//!
//! A snapshot lists the blocks of a heap in address order, the pointers between
//! them, the roots, the finalisers and the ephemerons, and what is known about
//! modules, threads and code addresses. `docs/heap-format.md` describes the file to the byte.
//!
//! The map:
//!
//! - `format`: the file. [`Encoder`] writes it without allocating, in a process
//!   that must not; [`Reader`] reads it in bounded memory.
//!
//! - `summary`: [`Summary`], what a snapshot holds, counted.
//! - `check`: [`check()`], whether its parts fit together.
//! - `graph`: [`HeapGraph`], the blocks as a graph, and what is reachable in it.
//! - `holders`: [`HolderTree`], what holds the roots: modules and variables, threads and frames.
//! - `dominators`: [`DominatorTree`], what a block or a holder retains.
//! - `labels`: [`Labels`] and [`Names`], what blocks and holders are called.
//! - `retained`: [`RetainedTree`], the dominator tree with blocks that are alike joined.
//! - `answers`: [`HeapAnalysis`], tables, paths, suspects, cycles.
//! - `types`: [`BlockTypes`], OCaml types of blocks, from the declared types of variables.
//!
//! Only `format` is compiled without the feature `graph`: that is what the plugin loads into programs.
//!
//! Input is hostile. Nothing here is unsafe, no input causes a panic, and no
//! number in a file makes the reader allocate more than a chunk's worth of memory.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

#[cfg(feature = "graph")]
mod answers;
#[cfg(feature = "graph")]
mod check;
#[cfg(feature = "graph")]
mod dominators;
mod format;
#[cfg(feature = "graph")]
mod graph;
#[cfg(feature = "graph")]
mod holders;
#[cfg(feature = "graph")]
mod labels;
#[cfg(feature = "graph")]
mod retained;
#[cfg(feature = "graph")]
mod summary;
#[cfg(feature = "graph")]
mod types;

#[cfg(feature = "graph")]
pub use answers::{
    Accumulation, Arrangement, EphemeronChain, FinaliserCycle, HeapAnalysis, HeldBy, HolderRow,
    LabelRow, Level, OutsideMemory, PathFinder, Referrer, Suspects, components,
};
#[cfg(feature = "graph")]
pub use check::{CheckReport, Finding, check};
#[cfg(feature = "graph")]
pub use dominators::{DominatorChildren, DominatorTree, Node};
#[cfg(feature = "graph")]
pub use graph::{
    Area, AreaId, BlockShape, CodeName, CustomNode, FinaliserNode, GivenName, GivenNames,
    GraphError, HeapFacts, HeapGraph, KindReach, LoadOptions, OutsideBytes, Reach, Reachability,
    RootHolder, ShapeId, ThreadFacts,
};
#[cfg(feature = "graph")]
pub use holders::{HolderId, HolderName, HolderTree, Share};
#[cfg(feature = "graph")]
pub use labels::{BlockLabel, LabelId, Labels, Names, SizeRange};
#[cfg(feature = "graph")]
pub use retained::{RetainedId, RetainedLabel, RetainedNode, RetainedTree};
#[cfg(feature = "graph")]
pub use summary::{CustomSum, SegmentSum, Summary};
#[cfg(feature = "graph")]
pub use types::{
    BlockTypes, Builtin, Constructor, Definition, DefinitionBody, FieldType, GlobalRoot, Mismatch,
    ModuleGlobals, ModuleProblem, PolymorphicCase, ProblemKind, TableError, TypeCoverage,
    TypeExpression, TypeId, TypeShare, TypeSource, TypeTable, TypedBlocks,
};

pub use format::{
    Block, Code, Completion, CustomBlock, Defect, Encoder, Ephemeron, EphemeronKey, Finaliser,
    FinaliserKind, Followed, HEADER_BYTES, Item, KindNamespace, MAGIC, MAX_STRING, MetaKey, Name,
    OutsideArea, OutsideKind, Pointer, ReadError, Reader, Root, RootKind, RootOwner, Segment,
    SegmentKind, Sink, Suspended, Totals, Workspace, is_snapshot_header,
};
