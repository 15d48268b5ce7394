//! The format a second time, as `docs/format.md` describes it and as plainly as
//! possible: growing vectors, searches from the start, no state that could be
//! computed again. Right before fast, and sound traces only: anything else is
//! a panic, which fails the test.

mod cache;
mod events;
mod reader;
mod writer;

pub(crate) use reader::{PlainPacket, PlainTrace, read};
pub(crate) use writer::PlainWriter;
