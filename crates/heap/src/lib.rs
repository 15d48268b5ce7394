//! Heap snapshots: which blocks a program's heap holds, and what points to them. No dependencies but `heaptap_codec`.
//!
//! A snapshot lists the blocks of a heap in address order, the pointers between
//! them, the roots, the finalisers and the ephemerons, and what is known about
//! modules, threads and code addresses. `docs/heap-format.md` describes the file to the byte.
//!
//! [`Encoder`] writes it without allocating, in a process that must not; [`Reader`]
//! reads it in bounded memory. What the file says as a graph is `heaptap_graph`'s.
//!
//! A file is a header and a sequence of chunks. Each chunk carries its lengths
//! and a checksum, and decodes without the chunks before it, so a file is valid
//! up to its last whole chunk. The last chunk of a complete file is `End`.
//!
//! - `model`: the items of a snapshot, shared by both directions.
//! - `chunk`: the bytes, with `heaptap_codec`.
//! - `codes`: the small numbers that say what follows.
//! - `shape`, `target`, `block_model`: what encoder and decoder of blocks keep in step: the table of shapes, the
//!   predictions of targets, the probabilities.
//! - `encode`: from calls to chunks, in a fixed workspace, without allocation.
//! - `decode`: from chunks to items.
//!
//! Input is hostile. Nothing here is unsafe, no input causes a panic, and no
//! number in a file makes the reader allocate more than a chunk's worth of memory.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

mod block_model;
mod chunk;
mod codes;
mod decode;
mod encode;
mod model;
mod shape;
mod target;
mod totals;

pub use chunk::{HEADER_BYTES, MAGIC, is_snapshot_header};
pub use decode::{Completion, Defect, ReadError, Reader, Suspended};
pub use encode::{Encoder, Sink, Workspace};
pub use model::{
    Block, Code, CustomBlock, Ephemeron, EphemeronKey, Finaliser, FinaliserKind, Item,
    KindNamespace, MAX_STRING, MetaKey, Name, OutsideArea, OutsideKind, Pointer, Root, RootKind,
    RootOwner, Segment, SegmentKind, Tracked,
};
pub use totals::Totals;
