//! The memtrace file format: decoder and encoder.

mod cache;
mod decode;
pub(crate) mod defect;
mod encode;
pub(crate) mod header;
mod mtf;
pub(crate) mod rules;
pub(crate) mod wire;

pub use crate::memtrace::decode::{Input, Limits, Losses, Merged, Mode, Reader, Stream, Tally};
pub use crate::memtrace::defect::{Defect, Located, ReadError};
pub use crate::memtrace::encode::{
    Block, DomainEncoder, Encoder, End, Format, Frames, LeftOut, Locate, LocationList, SmallAlloc,
    WriteError,
};
pub use crate::memtrace::header::Version;
