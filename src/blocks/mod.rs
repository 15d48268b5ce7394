//! blocks: sampled blocks, from their allocation to their end.
//!
//! [`Generations`] holds the blocks of one mutator that its collector sweeps. Young and
//! major blocks are separate, so that a minor collection visits the young ones only.
//! [`AddressTable`] finds a block by its address, for memory that any thread may free
//! individually; [`AddressFilter`] tells hosts which frees it need not know of. [`PendingEnds`] are promotions and collections that are not in the event
//! buffer yet. A [`TrackedId`] knows whether its block has a generation.
//!
//! Runs on mutators and inside the collector: no locks, no malloc, no panics. Memory grows
//! by mapping pages, before a collection: what a sweep may have to store is reserved when
//! the block is added.

mod address_filter;
mod address_table;
mod generations;
mod pending_ends;
mod tracked_id;

pub(crate) use address_filter::AddressFilter;
pub(crate) use address_table::AddressTable;
pub(crate) use generations::{Fate, Generation, Generations};
pub(crate) use pending_ends::PendingEnds;
pub(crate) use tracked_id::TrackedId;
