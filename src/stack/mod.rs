//! Where the program is: frame tables, the stack walk, native frames.
//!
//! - `table`: return address → how to get to the caller, read without locks by every
//!   mutator. `formats` is the seam to the hosts' formats of tables, and has the
//!   neutral one; `step` packs what they say into a word, and numbers their rules for
//!   crossing C code. The frames of a host's own index are `lazy_frames`: entered when
//!   a walk first reaches them.
//! - `walk`: the managed frames of one sample, as the number that it shares with the
//!   previous sample and the new ones.
//! - `native`: the frames of C code inside the innermost managed frame.
//! - `memory`: the one place that reads a stack.
//!
//! Walks and lookups run on mutators, inside hooks: no malloc, no locks, no panics, no
//! system calls, little stack. Adding tables, on a thread of the host, and explaining
//! frames, on the writer thread, may lock and allocate.

pub(crate) mod formats;
mod lazy_frames;
pub(crate) mod memory;
pub(crate) mod native;
#[cfg(test)]
mod paint;
mod slots;
mod step;
pub(crate) mod table;
pub(crate) mod walk;

pub(crate) use table::{FrameTables, TablesLock};
pub(crate) use walk::{Markers, SMALL_STACK, Start, Walk, Walker};
