//! Traces: what they say, and the memtrace file format. No dependencies but `heaptap_codec`.
//!
//! A trace is a sequence of events: sampled blocks are allocated, promoted and
//! collected. Source locations explain the frames of their backtraces.
//!
//! ```
//! use heaptap_trace::{EventKind, Mode, Reader};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.v2.ctf");
//! let mut reader = Reader::new(std::fs::File::open(path)?, Mode::Lenient)?;
//! let mut words = 0;
//! while let Some(event) = reader.next_event()? {
//!     if let EventKind::Alloc(allocation) = event.kind {
//!         words += allocation.samples;
//!     }
//! }
//! println!("about {} words allocated", words as f64 / reader.info().sample_rate);
//! # Ok(())
//! # }
//! ```
//!
//! The map:
//!
//! - `model`: what a trace says, whatever its format: [`Event`], [`TraceInfo`],
//!   [`LocationTable`]; what can go wrong in reading it, [`ReadError`] and
//!   [`Losses`]; and the traits that every format implements, [`EventSource`] and
//!   [`EventSink`].
//! - `memtrace`: the memtrace format: [`Reader`] and [`Merged`] are sources,
//!   [`Follower`] reads a trace that is still being written, [`Encoder`] is a sink. A second format would be a folder beside it, with
//!   a variant in `recognise` and in `open`.
//! - `merge`: [`MergedTraces`], several traces of any format as one.
//! - `input`: [`Input`], the bytes that a reader of any format reads.
//! - `recognise`: [`FileKind`], the kind of a file by its first bytes.
//! - `open`: [`open()`] and [`open_in_time_order`], which read a trace of any format.
//!
//! `memtrace` depends on `model` and `input`, `merge` on `model`, never the reverse. Only `recognise` and
//! `open` know which formats there are.
//!
//! Input is hostile. Nothing here is unsafe, and no input causes a panic: slices
//! are taken with `get`, arithmetic on numbers from a file is checked or cannot
//! overflow, and the fuzz targets run with overflow checks and debug assertions.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod input;
mod memtrace;
mod merge;
mod model;
mod open;
mod recognise;

pub use input::{Input, Stream};
pub use memtrace::{
    Completion, Defect, DomainEncoder, ElidableFrames, Encoder, Followed, Follower, Format,
    IDS_PER_BLOCK, LeftOut, Merged, Reader, SmallAlloc, Tally, TraceOrigin, Version, WriteError,
};
pub use merge::{MergeError, MergedItem, MergedTraces, Mismatch, OpenTrace, TraceExtent};
pub use model::{
    Allocation, Backtrace, Block, Code, CutReason, CutShort, End, Event, EventKind, EventSink,
    EventSource, FormatDefect, Frames, LOST_FRAME, Limits, Locate, Located, Location, LocationList,
    LocationTable, Losses, Mode, NameId, NamedLocation, ReadError, Source, TraceInfo,
};
pub use open::{open, open_in_time_order};
pub use recognise::FileKind;
