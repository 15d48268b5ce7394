//! Sampled blocks, from their allocation to their end.
//!
//! [`Generations`] holds what one mutator's collector sweeps: its young blocks
//! apart from its major ones, so that after a minor collection only the young
//! are visited. [`Directory`] finds a block by its address, for memory that is
//! freed one by one and by any thread.
//!
//! Runs on mutators and inside the collector: no locks, no malloc. Memory grows
//! by mapping pages, before the collector needs it: whatever a sweep may have to
//! store was reserved when its block was added.

mod directory;
mod ends;
mod generations;

pub(crate) use directory::Directory;
pub(crate) use ends::Ends;
pub(crate) use generations::{Fate, Generations};
