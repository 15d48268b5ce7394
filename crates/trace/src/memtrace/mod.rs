//! The memtrace file format: decoder and encoder.
//!
//! - `decode`: [`Reader`], [`Merged`] for the events of several domains in
//!   the order of time, and [`Tail`] for a file that is still being written.
//! - `encode`: [`Encoder`].
//! - `defect`: everything that can be wrong with a file.
//! - `header`, `info`, `event`, `cache`, `mtf`, `wire`, `zeroed`, `rules`: what both sides
//!   share, from packet headers down to single numbers.
//!
//! `docs/format.md` describes the format to the byte.
//!
//! What is shared is `inline(always)` where it is small: with plain `inline`, reading and
//! writing take up to 0.6 % more instructions (`callgrind` of `heaptap info` and `recode`).

mod cache;
mod decode;
mod defect;
mod encode;
mod event;
mod header;
mod info;
mod mtf;
pub(crate) mod rules;
mod wire;
mod zeroed;

pub(crate) use crate::memtrace::decode::Tail;
pub use crate::memtrace::decode::{Merged, Reader};
pub use crate::memtrace::defect::Defect;
pub use crate::memtrace::encode::{DomainEncoder, Encoder, Format};
pub use crate::memtrace::header::Version;
pub(crate) use crate::memtrace::header::head;
pub use crate::memtrace::rules::IDS_PER_BLOCK;
