//! Where the program is: frame tables, the stack walk, native frames.
//!
//! - `table`: return address → frame size, read without locks by every mutator;
//!   `formats` parses what hosts hand in; of tables that a host keeps an index
//!   of, frames are entered when they are `lazy_frames`.
//! - `walk`: the managed frames of one sample, as what they share with the
//!   previous sample's and what is new.
//! - `native`: the frames of C code inside the innermost managed frame.
//! - `memory`: the one place that reads a stack.
//!
//! Everything but adding tables and refreshing modules runs on mutators inside
//! hooks: no malloc, no locks, no panics, no system calls, little stack.

pub(crate) mod formats;
mod lazy_frames;
mod memory;
pub(crate) mod native;
#[cfg(test)]
mod paint;
mod slots;
pub(crate) mod table;
pub(crate) mod walk;

pub(crate) use formats::neutral::Place;
pub(crate) use table::{FrameTables, OcamlVersion, Source};
pub(crate) use walk::{FEW, Outer, Start, Walk, Walker};
