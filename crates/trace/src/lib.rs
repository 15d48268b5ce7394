//! The memtrace file format: encoder and decoder, without dependencies.
//!
//! A trace is a sequence of packets of at most 32 KiB: a trace info, then
//! allocations, promotions and collections with the source locations they
//! need. `docs/format.md` explains it to the byte.
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
//!   [`LocationTable`].
//! - `memtrace`: the memtrace format. `decode` is [`Reader`] and [`Merged`],
//!   `encode` is [`Encoder`], `defect` lists what can be wrong with a file; the
//!   rest is shared by both sides, from packet headers down to single numbers.
//!
//! Nothing here is unsafe, and no input makes it panic: slices are taken with
//! `get`, arithmetic on what a file says is checked or cannot overflow, and the
//! fuzz targets run with both overflow checks and debug assertions.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod memtrace;
mod model;

pub use memtrace::{
    Block, Defect, DomainEncoder, Encoder, End, Format, Frames, Input, LeftOut, Limits, Locate,
    Located, LocationList, Losses, Merged, Mode, ReadError, Reader, SmallAlloc, Stream, Tally,
    Version, WriteError,
};
pub use model::{
    Allocation, Backtrace, Code, Event, EventKind, LOST_FRAME, Location, LocationTable, NameId,
    NamedLocation, Source, TraceInfo,
};
