//! Answers to questions about a heap: who holds it, along which path, what piles up, what never goes.
//!
//! - `heap_analysis`: [`HeapAnalysis`], everything that the questions share, computed once.
//! - `rows`: tables by holder and by kind (`kind_row`); `mark_bits`: what many rows reach, marked at once.
//! - `retaining`: the holder of each block.
//! - `paths`: how the program reaches a block; `referrers`: what points to blocks of a kind.
//! - `components`: strongly connected components.
//! - `cycles`: finalisers that keep their own values alive; `chains`: ephemerons that hang on each other.
//! - `suspects`: where memory piles up.

mod chains;
mod components;
mod cycles;
mod heap_analysis;
mod kind_row;
mod mark_bits;
mod paths;
mod referrers;
mod retaining;
mod rows;
mod suspects;

pub use chains::EphemeronChain;
pub use components::components;
pub use cycles::FinaliserCycle;
pub use heap_analysis::HeapAnalysis;
pub use kind_row::KindRow;
pub use paths::{HeldBy, PathFinder};
pub use referrers::Referrer;
pub use retaining::RetainingHolders;
pub use rows::{HolderRow, Level};
pub use suspects::{Accumulation, Arrangement, OutsideMemory, Suspects};
