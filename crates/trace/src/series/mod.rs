//! The sidecar that makes a trace a part of a series: `FILE.series`.
//!
//! A program that runs for months is traced into many files, the parts of a series, of which the
//! oldest are deleted. Each part is an ordinary trace. Beside it, this file says which series it
//! belongs to, which blocks were alive when it began, with their stacks, and what became later of
//! blocks that are not in the part. So any row of parts that follow each other can be read as one
//! trace: the sidecar of the first one stands for all parts before it.
//!
//! `docs/series-format.md` has the bytes. In short: a magic number, then chunks, each with its
//! length and its CRC-32C. Chunks hold records ([`record`]). A file that ends in the middle of a
//! chunk is sound up to the chunk before.
//!
//! - `record`: the records, and how each is coded.
//! - `encode`: [`SeriesEncoder`], which the traced program writes through.
//! - `decode`: [`SeriesReader`].
//! - `carried`: what the sidecar has, as events.
//! - `source`: [`PartSource`], a part together with its sidecar as one source of events.
//! - `tail`: [`SeriesTail`], the same of parts that are still written.

mod carried;
mod decode;
mod encode;
mod record;
mod source;
mod tail;
#[cfg(test)]
mod tests;

use std::ffi::{OsStr, OsString};

pub use decode::{SeriesDefect, SeriesReader, SeriesSummary};
pub use encode::SeriesEncoder;
pub use record::{CarriedBlock, CarriedEnds, SeriesRecord};
pub use source::PartSource;
pub use tail::{SeriesTail, TakeSeriesEvent};

/// What a sidecar begins with.
pub const SERIES_MAGIC: [u8; 8] = *b"\x89SERIES\n";

/// The most bytes of the records in a chunk.
const MAX_CHUNK: usize = 1 << 20;

/// Bytes in front of the records of a chunk: their number, and their checksum.
const CHUNK_HEADER: usize = 8;

/// Blocks that are not in the part in which they are first known have ids from here on: those
/// that were sampled at an earlier rate after the part had begun.
pub const STRAY_IDS: u64 = 1 << 48;

/// What a series is known by.
pub type SeriesId = [u8; 16];

/// What the sidecar of a part says first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SeriesHead {
    /// The series.
    pub series: SeriesId,
    /// The number of the part in the series, from 0.
    pub part: u64,
    /// The rate at which the part is sampled.
    pub rate: f64,
    /// When the part begins, in microseconds since the epoch: the start time of its trace.
    pub start_time: u64,
    /// When the series begins.
    pub series_start: u64,
    /// A block of the part has this more as its id in the series than as its id in the part; blocks
    /// of earlier parts have lower ones.
    pub first_id: u64,
}

/// The name of the sidecar that makes the trace in `file` a part of a series.
pub fn series_name(file: &OsStr) -> OsString {
    let mut name = file.to_owned();
    name.push(".series");
    name
}
