//! The blocks of a snapshot as a graph.
//!
//! - `starts`: from addresses to numbers of blocks.
//! - `heap_graph`: the graph in memory, and how it is read from a file.
//! - `reach`: what is reachable from which roots.

mod heap_graph;
mod reach;
mod starts;

pub use heap_graph::{GraphError, HeapGraph};
pub use reach::{KindReach, Reach, Reachability};
pub(crate) use starts::{BlockStarts, StartsBuilder};
