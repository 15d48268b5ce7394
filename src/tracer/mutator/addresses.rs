//! Hooks for blocks that are tracked by their address: ends, moves, reallocation.
//!
//! Several sampled blocks may have one address: memory that has grown is recorded as new words
//! there. Whatever happens to the memory happens to all of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::blocks::{AddressFilter, AddressTable};
use crate::queue::EndWord;
use crate::tracer::failure::Failure;
use crate::tracer::mutator::Mutator;
use crate::tracer::options::Tracking;

/// Moving blocks are in the table of addresses under a number with this bit, which no address has.
const MOVING: usize = 1 << 63;

impl Mutator {
    /// The counts by which the host finds out that a block was not sampled.
    pub(crate) fn sampled_counts(&self) -> *const u16 {
        self.session.filter.counts()
    }

    /// The same for a host without a mutator.
    pub(crate) fn nothing_sampled() -> *const u16 {
        AddressFilter::of_nothing()
    }

    /// External memory is about to be released.
    pub(crate) fn external_free(&mut self, address: usize) {
        if !self.session.filter.may_have(address) {
            return;
        }
        while let Some(id) = self.recorder.by_address.take(address) {
            self.record_end(EndWord::collected(id.block()));
        }
        while let Some(id) = self.session.tagged.take(address) {
            self.record_end(EndWord::collected(id.block()));
        }
    }

    /// A block that is tracked by its address was collected.
    pub(crate) fn block_collect(&mut self, address: usize) -> Result<(), Failure> {
        self.check_tracking(Tracking::Addresses)?;
        self.external_free(address);
        Ok(())
    }

    /// A block that is tracked by its address has moved, and may have been
    /// promoted.
    pub(crate) fn block_move(
        &mut self,
        from: usize,
        to: usize,
        promoted: bool,
    ) -> Result<(), Failure> {
        self.check_tracking(Tracking::Addresses)?;
        if !self.session.filter.may_have(from) {
            return Ok(());
        }
        // Without memory a tag stays alive in the sidecar.
        move_all(&self.session.tagged, from, to);
        if !promoted {
            let kept = move_all(&self.recorder.by_address, from, to);
            return if kept { Ok(()) } else { Err(Failure::Memory) };
        }
        // Through another key: at the same address it would be found again and again.
        let passing = self.moving_key();
        move_all(&self.recorder.by_address, from, passing);
        let mut kept = true;
        while let Some(id) = self.recorder.by_address.take(passing) {
            if id.has_generation() {
                self.record_end(EndWord::promoted(id.block()));
            }
            kept &= self.recorder.by_address.add(to, id);
        }
        if kept { Ok(()) } else { Err(Failure::Memory) }
    }

    /// Memory is about to be reallocated: what was sampled at its address waits under the number
    /// that is returned; 0 if there is nothing.
    pub(crate) fn realloc_begin(&mut self, from: usize) -> usize {
        if !self.is_live() || !self.session.filter.may_have(from) {
            return 0;
        }
        let key = self.moving_key();
        let tables = [&self.recorder.by_address, &self.session.tagged];
        let found = tables.map(|table| move_all_counted(table, from, key).0);
        if found == [0, 0] { 0 } else { key }
    }

    /// It is at this address now.
    pub(crate) fn realloc_end(&mut self, key: usize, to: usize) -> Result<(), Failure> {
        if key == 0 {
            return Ok(());
        }
        if key & MOVING == 0 || to & MOVING != 0 {
            return Err(Failure::Option);
        }
        let moved = move_all(&self.recorder.by_address, key, to);
        let tags = move_all(&self.session.tagged, key, to);
        if moved && tags { Ok(()) } else { Err(Failure::Memory) }
    }

    /// A key that no other block has.
    fn moving_key(&self) -> usize {
        // Spread over the filter's counts, which are few.
        let number = self.session.moving.fetch_add(1, Ordering::Relaxed);
        MOVING | number.wrapping_mul(16) & !MOVING
    }
}

/// Moves all blocks of an address to another. False without memory: then some stay alive in the
/// trace.
fn move_all(table: &Arc<AddressTable>, from: usize, to: usize) -> bool {
    move_all_counted(table, from, to).1
}

/// The same, with how many there were.
fn move_all_counted(table: &Arc<AddressTable>, from: usize, to: usize) -> (usize, bool) {
    let (mut count, mut kept) = (0, true);
    if from == to {
        return (count, kept);
    }
    while let Some(id) = table.take(from) {
        count += 1;
        kept &= table.add(to, id);
    }
    (count, kept)
}
