//! Traces: what they say, and the memtrace file format. No dependencies.
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
//!   [`LocationTable`]; and the traits that every format implements,
//!   [`EventSource`] and [`EventSink`].
//! - `memtrace`: the memtrace format: [`Reader`] and [`Merged`] are sources,
//!   [`Encoder`] is a sink. A second format would be a folder beside it.
//! - `recognise`: [`FileKind`], the kind of a file by its first bytes.
//!
//! `memtrace` depends on `model`, never the reverse.
//!
//! Input is hostile. Nothing here is unsafe, and no input causes a panic: slices
//! are taken with `get`, arithmetic on numbers from a file is checked or cannot
//! overflow, and the fuzz targets run with overflow checks and debug assertions.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod memtrace;
mod model;
mod recognise;

pub use memtrace::{
    Defect, DomainEncoder, ElidableFrames, Encoder, Format, Input, LeftOut, Limits, Located,
    Losses, Merged, Mode, ReadError, Reader, SmallAlloc, Stream, Tally, TraceOrigin, Version,
    WriteError,
};
pub use model::{
    Allocation, Backtrace, Block, Code, End, Event, EventKind, EventSink, EventSource, Frames,
    LOST_FRAME, Locate, Location, LocationList, LocationTable, NameId, NamedLocation, Source,
    TraceInfo,
};
pub use recognise::FileKind;
