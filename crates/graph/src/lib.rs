//! What a heap snapshot says: its blocks as a graph, what holds them, what they retain.
//!
//! - `summary`: [`Summary`], what a snapshot holds, counted.
//! - `check`: [`check()`], whether its parts fit together.
//! - `graph`: [`HeapGraph`], the blocks as a graph, and what is reachable in it.
//! - `holders`: [`HolderTree`], what holds the roots: modules and variables, threads and frames.
//! - `dominators`: [`DominatorTree`], what a block or a holder retains.
//! - `kinds`: [`Kinds`] and [`Names`], what blocks and holders are called.
//! - `retained`: [`RetainedTree`], the dominator tree with blocks that are alike joined.
//! - `analysis`: [`HeapAnalysis`], tables, paths, suspects, cycles.
//! - `types`: [`BlockTypes`], OCaml types of blocks, from the declared types of variables.
//!
//! Snapshots are read by `heaptap_heap`. They are hostile: nothing here is unsafe, no snapshot causes a panic, and
//! memory is bounded by [`LoadOptions`].

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod analysis;
mod check;
mod dominators;
mod graph;
mod holders;
mod kinds;
mod retained;
mod summary;
mod types;

pub use analysis::{
    Accumulation, Arrangement, EphemeronChain, FinaliserCycle, HeapAnalysis, HeldBy, HolderRow,
    KindRow, Level, OutsideMemory, PathFinder, Referrer, RetainingHolders, Suspects, components,
};
pub use check::{CheckReport, Finding, check};
pub use dominators::{DominatorChildren, DominatorTree, Node};
pub use graph::{
    Area, AreaId, BlockShape, CodeName, CustomNode, FinaliserNode, GivenName, GivenNames,
    GraphError, HeapFacts, HeapGraph, KindReach, LoadOptions, OutsideBytes, Reach, Reachability,
    RootHolder, ShapeId, ThreadFacts,
};
pub use holders::{HolderId, HolderName, HolderTree, Share};
pub use kinds::{BlockKind, KindId, Kinds, Names, SizeRange};
pub use retained::{RetainedId, RetainedKind, RetainedNode, RetainedTree};
pub use summary::{CustomSum, SegmentSum, Summary};
pub use types::{
    BlockTypes, Builtin, Constructor, Definition, DefinitionBody, FieldType, GlobalRoot, Mismatch,
    ModuleGlobals, ModuleProblem, PolymorphicCase, ProblemKind, TableError, TypeCoverage,
    TypeExpression, TypeId, TypeShare, TypeSource, TypeTable, TypedBlocks,
};
