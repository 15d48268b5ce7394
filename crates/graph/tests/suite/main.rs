//! The tests of the graph of a snapshot. Heaps are made up, written and read again.

mod analysis;
mod check;
mod dominators;
mod graph;
mod made_heap;
#[allow(dead_code, reason = "the tests of the format use all of it")]
#[path = "../../../heap/tests/suite/snapshot.rs"]
mod snapshot;
mod types;
