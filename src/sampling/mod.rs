//! Which words are sampled.
//!
//! Every word of every allocation is sampled with the same probability, the
//! rate, whatever block it is part of. [`gap`] draws how far it is from one
//! sample to the next, by a [`logarithm`] of our own; [`young`] lays these gaps
//! onto the young heap, where a combined allocation is split among its parts by
//! the addresses themselves; [`count`] counts down the words of all other
//! allocations.
//!
//! Runs on mutators, inside hooks: no allocation, no locks, no system calls.

mod count;
mod gap;
mod logarithm;
mod young;

pub(crate) use count::Countdown;
pub(crate) use gap::{Gaps, Rate};
pub(crate) use young::{PartSizes, SampledPart, YoungSamples};

/// Bytes in a word.
pub(crate) const WORD: usize = size_of::<usize>();
