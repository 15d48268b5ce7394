//! Answers to questions about a heap: who holds it, along which path, what piles up, what never goes.
//!
//! - `analysis`: [`HeapAnalysis`], everything that the questions share, computed once.
//! - `rows`: tables by holder and by label (`label_row`); `lanes`: what many rows reach, marked at once.
//! - `paths`: how the program reaches a block; `referrers`: what points to blocks of a label.
//! - `components`: strongly connected components.
//! - `cycles`: finalisers that keep their own values alive; `chains`: ephemerons that hang on each other.
//! - `suspects`: where memory piles up.

mod analysis;
mod chains;
mod components;
mod cycles;
mod label_row;
mod lanes;
mod paths;
mod referrers;
mod rows;
mod suspects;

pub use analysis::HeapAnalysis;
pub use chains::EphemeronChain;
pub use components::components;
pub use cycles::FinaliserCycle;
pub use label_row::LabelRow;
pub use paths::{HeldBy, PathFinder};
pub use referrers::Referrer;
pub use rows::{HolderRow, Level};
pub use suspects::{Accumulation, Arrangement, OutsideMemory, Suspects};
