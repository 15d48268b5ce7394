//! How bytes of the file formats are coded. No dependencies.
//!
//! | module | job | used by |
//! |---|---|---|
//! | [`cursor`] | [`Cursor`], which reads numbers and strings off bytes | trace, snapshot, sidecar, archive of the page |
//! | [`varint`] | integers in as few bytes as they need | snapshot, archive of the page |
//! | [`buffer`] | [`Buffer`], of a fixed size | snapshot |
//! | [`range`] | an adaptive range coder, and plain bits | snapshot |
//! | [`lz`] | an LZ77 codec | snapshot |
//! | [`crc`] | CRC-32C | snapshot |
//! | [`seeded`] | a hash with a secret, for tables of what a file says | trace, cli |
//!
//! All of it is loaded into traced programs, and `range`, `lz`, `crc`, `buffer` run in a clone of one that may
//! not allocate. Each is written here, and not taken from a library, for a reason that stands in its module.
//!
//! Input is hostile. Nothing here is unsafe, and no input causes a panic.

#![forbid(unsafe_code)]
#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)
)]

pub mod buffer;
pub mod crc;
pub mod cursor;
pub mod lz;
pub mod range;
pub mod seeded;
pub mod varint;

pub use buffer::Buffer;
pub use cursor::Cursor;
