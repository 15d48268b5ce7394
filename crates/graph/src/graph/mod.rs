//! The blocks of a snapshot as a graph.
//!
//! - `starts`: from addresses to numbers of blocks.
//! - `shapes`: tags and sizes of blocks; `facts`: names; `given_names`: names from elsewhere.
//! - `heap_graph`: the graph in memory; `load`: how it is read from a file.
//! - `reach`: what is reachable from which roots; `lost_pointers`: what leads to no block.
//! - `areas`: memory outside the heap. `bit_set`: sets of blocks.

mod areas;
mod bit_set;
mod facts;
mod given_names;
mod heap_graph;
mod load;
mod lost_pointers;
mod reach;
mod shapes;
mod starts;

pub use areas::{Area, AreaId, CustomNode, OutsideBytes};
pub(crate) use areas::{AreaRange, for_each_area};
pub(crate) use bit_set::BitSet;
pub use facts::{CodeName, HeapFacts, ThreadFacts};
pub use given_names::{GivenName, GivenNames};
pub(crate) use heap_graph::LostPointer;
pub use heap_graph::{FinaliserNode, HeapGraph, RootHolder};
pub use load::{GraphError, LoadOptions};
pub use reach::{KindReach, Reach, Reachability};
pub(crate) use reach::{Marking, Watchers};
pub use shapes::{BlockShape, ShapeId};
pub(crate) use starts::{BlockStarts, StartsBuilder};
