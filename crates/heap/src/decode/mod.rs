//! From chunks to items, in bounded memory.
//!
//! `input` reads and verifies one chunk at a time, `blocks` and `records` decode it,
//! `reader` is the public face.

mod blocks;
mod error;
#[cfg(test)]
mod hostile_tests;
mod input;
mod reader;
mod records;
mod suspended;

pub use error::{Defect, ReadError};
pub use reader::{Completion, Reader};
pub use suspended::Suspended;
