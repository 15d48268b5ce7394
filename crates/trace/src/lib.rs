//! The memtrace file format: encoder and decoder, without dependencies.
//!
//! A trace is a sequence of packets of at most 32 KiB: a trace info, then
//! allocations, promotions and collections with the source locations they
//! need. `docs/format.md` explains it to the byte.
//!
//! ```
//! use heaptap_trace::{Happening, Mode, Reader};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/tiny.v2.ctf");
//! let mut reader = Reader::new(std::fs::File::open(path)?, Mode::Lenient)?;
//! let mut words = 0;
//! while let Some(event) = reader.next_event()? {
//!     if let Happening::Alloc(allocation) = event.what {
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
//! - `decode`: [`Reader`], from any source in bounded memory; hostile input is
//!   expected. [`Merged`] puts several domains in the order of time.
//! - `encode`: [`Encoder`], to any output; the same events give the same bytes
//!   as the original writer.
//! - `event`, `info`, `location`: what a trace tells. `defect`: what can
//!   be wrong with one.
//! - `header`, `cache`, `mtf`, `wire`, `rules`, `index`, `seeded`: what both sides share,
//!   from packet headers down to numbers and hashes.
//!
//! Nothing here is unsafe, and no input makes it panic: slices are taken with
//! `get`, arithmetic on what a file says is checked or cannot overflow, and the
//! fuzz targets run with both overflow checks and debug assertions.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod cache;
mod decode;
mod defect;
mod encode;
mod event;
mod header;
mod index;
mod info;
mod location;
mod mtf;
mod rules;
mod seeded;
mod wire;

pub use decode::{Input, Limits, Losses, Merged, Mode, Reader, Stream, Tally};
pub use defect::{Defect, Located, ReadError};
pub use encode::{
    Block, DomainEncoder, Encoder, End, Format, Frames, LeftOut, Locate, LocationList, SmallAlloc,
    WriteError,
};
pub use event::{Allocation, Backtrace, Code, Event, EventKind, LOST_FRAME, Source};
pub use header::Version;
pub use info::TraceInfo;
pub use location::{Location, LocationTable, NameId, NamedLocation};
