//! sampling: decides which words are sampled.
//!
//! Every word of every allocation is sampled with the same probability, the rate,
//! independently of the block it is in. So the distances between samples are geometric:
//! [`gap`] draws them, with its own [`logarithm`]. [`young`] places them in the young heap,
//! where addresses alone decide which part of a combined allocation is sampled. [`count`]
//! counts down the words of all other allocations. `docs/statistics.md` has the mathematics.
//!
//! Runs on mutators, inside hooks: no malloc, no locks, no system calls. The cost is
//! measured by `benches/sampling.rs`.

mod count;
mod gap;
mod logarithm;
mod young;

pub(crate) use count::Countdown;
pub(crate) use gap::{Gaps, Rate};
pub(crate) use young::{PartSizes, SampledPart, YoungSamples};

/// Bytes in a word.
pub(crate) const WORD: usize = size_of::<usize>();
