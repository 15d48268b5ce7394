//! Traces: what they say, and the memtrace file format. No dependencies but `heaptap_codec`.
//!
//! A trace is a sequence of events: sampled blocks are allocated, promoted and
//! collected. Source locations explain the frames of their backtraces.
//!
//! ```
//! use heaptap_trace::{EventKind, EventSource as _, Mode, Reader};
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
//!   [`Losses`]; and the traits that every format implements: [`EventSource`] and
//!   [`TraceReader`], [`LiveSource`], [`EventSink`], [`LiveSink`].
//! - `memtrace`: the memtrace format: [`Reader`] and [`Merged`] are sources,
//!   [`Encoder`] is a sink. A second format is a folder beside it.
//! - `formats`: which formats there are. [`open()`] and [`open_in_time_order`] read a trace
//!   of any of them, [`create`] writes one.
//! - `tail`: [`Tail`], which reads a trace that is still being written.
//! - `merge`: [`MergedTraces`], several traces of any format as one.
//! - `series`: the sidecar of a trace that is a part of a series: [`SeriesEncoder`],
//!   [`SeriesReader`], [`PartSource`], which reads a part with it, and [`SeriesTail`], which
//!   reads parts while they are written.
//! - `input`: [`Input`], the bytes that a reader of any format reads.
//! - `recognise`: [`FileKind`], the kind of a file by its first bytes.
//!
//! `memtrace` depends on `model` and `input`, `merge` on `model`, never the reverse. Only
//! `formats` knows what reads and writes each format.
//!
//! Input is hostile. Nothing here is unsafe, and no input causes a panic: slices
//! are taken with `get`, arithmetic on numbers from a file is checked or cannot
//! overflow, and the fuzz targets run with overflow checks and debug assertions.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod formats;
mod input;
mod memtrace;
mod merge;
mod model;
mod recognise;
mod series;
mod tail;

pub use formats::{create, open, open_in_time_order};
pub use input::{Input, Stream};
pub use memtrace::{
    Defect, DomainEncoder, Encoder, Format, IDS_PER_BLOCK, Merged, Reader, Version,
};
pub use merge::{MergeError, MergedItem, MergedTraces, Mismatch, OpenTrace, TraceExtent};
pub use model::{
    Allocation, Backtrace, Block, Code, Completion, CutReason, CutShort, DomainSink,
    ElidableFrames, End, Event, EventKind, EventSink, EventSource, FormatDefect, Frames, KIND_FILE,
    LOST_FRAME, LeftOut, Limits, LiveSink, LiveSource, Locate, Located, Location, LocationList,
    LocationTable, Losses, Mode, NameId, NamedLocation, Place, Polled, ReadError, SmallAlloc,
    Source, TraceDefect, TraceFormat, TraceHead, TraceInfo, TraceOrigin, TraceReader, TraceTotals,
    Unreadable, WriteError, code_of_kind, kind_name_code, kind_of, without_kind,
};
pub use recognise::FileKind;
pub use series::{
    CarriedBlock, CarriedEnds, PartSource, SERIES_MAGIC, STRAY_IDS, SeriesDefect, SeriesEncoder,
    SeriesHead, SeriesId, SeriesReader, SeriesRecord, SeriesSummary, SeriesTail, TakeSeriesEvent,
    series_name,
};
pub use tail::Tail;
