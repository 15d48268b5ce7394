//! Sampled blocks, from their allocation to their end.
//!
//! [`Generations`] holds what one mutator's collector sweeps: its young blocks
//! apart from its major ones, so that after a minor collection only the young
//! are visited. [`AddressTable`] finds a block by its address, for memory that is
//! freed one by one and by any thread.
//!
//! Runs on mutators and inside the collector: no locks, no malloc. Memory grows
//! by mapping pages, before the collector needs it: whatever a sweep may have to
//! store was reserved when its block was added.

mod address_table;
mod generations;
mod pending_ends;

pub(crate) use address_table::AddressTable;
pub(crate) use generations::{Fate, Generations};
pub(crate) use pending_ends::PendingEnds;
