//! Return address → frame, over all tables that the host has added.
//!
//! Tables may be added on any thread at any time; adders take turns by a mutex
//! that no reader takes. Readers follow one atomic pointer to an array that is
//! only ever added to ([`Slots`]). An array without room is replaced by one
//! twice as large. The old one stays until the tables are dropped, since a
//! reader may still be in it; as sizes double, all old ones together are no
//! larger than the newest. A table is added whole or not at all.
//!
//! A runtime that keeps its own index of return addresses lends it instead
//! ([`FrameIndex`]). Its frames are read where they are, and entered when a walk
//! first reaches them ([`LazyFrames`]), so that a program with a hundred thousand
//! frames starts as fast as one with few.

#![allow(unsafe_code, reason = "follows the pointer to the current array")]

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use heaptap_trace::LocationList;

use super::formats::neutral::{NeutralFrame, NeutralPlace, NeutralTable};
use super::formats::{
    CrossingRule, Explained, FrameIndex, FrameRecords, FrameTable, IndexedFrame, TableDefect,
};
use super::lazy_frames::LazyFrames;
use super::slots::{Slots, spread};
use super::step::{CrossingRules, Entry, Step};
use crate::sys::lock::lock_until;
use crate::sys::process_memory::ProcessMemory;

/// Whose records lie in a range of addresses.
struct Origin {
    /// Of the records, both inclusive.
    first: u64,
    last: u64,
    records: Arc<dyn FrameRecords>,
}

/// The host's own record of a frame. For the writer thread.
pub(crate) struct FrameSource {
    /// What `record` belongs to.
    records: Arc<dyn FrameRecords>,
    record: u64,
}

impl FrameSource {
    /// See [`FrameRecords::part_key`].
    pub(crate) fn part_key(&self, part: usize) -> Option<u64> {
        // SAFETY: `FrameTables::source` pairs a record with the object that returned it.
        unsafe { self.records.part_key(self.record, part) }
    }

    /// See [`FrameRecords::locate`].
    pub(crate) fn locate(
        &self,
        part: Option<usize>,
        memory: &ProcessMemory,
        list: &mut LocationList,
    ) -> Explained {
        // SAFETY: `FrameTables::source` pairs a record with the object that returned it.
        unsafe { self.records.locate(self.record, part, memory, list) }
    }
}

/// What only adders and the writer thread look at.
struct AddedTables {
    /// Every array there ever was; the last is the current one. Boxed, since
    /// readers hold pointers to them.
    #[expect(clippy::vec_box, reason = "readers hold pointers to the boxes' insides")]
    arrays: Vec<Box<Slots>>,
    /// In the order of their records, no two of which overlap.
    origins: Vec<Origin>,
    count: usize,
}

/// See [`FrameTables::lock_until`].
pub(crate) struct TablesLock<'a> {
    _guard: MutexGuard<'a, AddedTables>,
}

/// More is not reserved at once, whatever the host asks for.
const MAX_RESERVED: usize = 1 << 24;

/// A runtime's index, and the frames that were found through it.
struct Borrowed {
    index: Arc<dyn FrameIndex>,
    lazy_frames: LazyFrames,
}

/// All frame tables of a tracer.
pub(crate) struct FrameTables {
    /// Points into the last of the arrays of `added`.
    current: AtomicPtr<Slots>,
    /// How many tables were added.
    generation: AtomicU64,
    rules: CrossingRules,
    added: Mutex<AddedTables>,
    borrowed: OnceLock<Borrowed>,
}

impl FrameTables {
    pub(crate) fn new() -> Self {
        let mut first = Box::new(Slots::with_room_for(0));
        let current = AtomicPtr::new(&raw mut *first);
        let added = AddedTables { arrays: vec![first], origins: Vec::new(), count: 0 };
        Self {
            current,
            generation: AtomicU64::new(0),
            rules: CrossingRules::new(),
            added: Mutex::new(added),
            borrowed: OnceLock::new(),
        }
    }

    /// Adds a table of the neutral format. Any thread, not inside a hook.
    ///
    /// # Safety
    /// As for [`NeutralTable::new`]; the table stays valid until `self` is dropped.
    pub(crate) unsafe fn add_neutral(
        &self,
        frames: *const NeutralFrame,
        count: usize,
        places: *const NeutralPlace,
        place_count: u32,
    ) -> Result<(), TableDefect> {
        // SAFETY: the contract of this function is that of `NeutralTable::new`.
        let table = unsafe { NeutralTable::new(frames, count, places, place_count) };
        self.add(Arc::new(table))
    }

    /// Adds a table. Any thread, not inside a hook.
    pub(crate) fn add(&self, table: Arc<dyn FrameTable>) -> Result<(), TableDefect> {
        let frames = table.frames()?;
        let entries: Vec<Entry> =
            frames.iter().map(|frame| self.rules.entry(frame)).collect::<Result<_, _>>()?;
        let (Some(first), Some(last)) = (entries.first(), entries.last()) else {
            return Ok(());
        };
        let origin = Origin { first: first.record, last: last.record, records: table };
        if let Some(twice) = find_twice(&entries) {
            return Err(TableDefect::Duplicate(twice));
        }
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let is_known = |entry: &&Entry| self.slots().find(entry.return_address).is_some();
        if let Some(known) = entries.iter().find(is_known) {
            return Err(TableDefect::Duplicate(known.return_address));
        }
        self.publish(&mut added, &entries);
        let before = added.origins.partition_point(|known| known.first < origin.first);
        added.origins.insert(before, origin);
        // After the entries: whoever sees the new generation finds them.
        self.generation.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Borrows a runtime's index, once. Boundary frames are not found through it:
    /// the tables that have some are added. False, and nothing is borrowed, when
    /// there is no memory. Not inside a hook.
    pub(crate) fn borrow(&self, index: Arc<dyn FrameIndex>) -> bool {
        let Some(lazy_frames) = LazyFrames::of(index.capacity()) else { return false };
        let is_first = self.borrowed.set(Borrowed { index, lazy_frames }).is_ok();
        self.generation.fetch_add(1, Ordering::Release);
        is_first
    }

    /// Makes room for this many more frames at once. Any thread, not inside a hook.
    pub(crate) fn reserve(&self, frames: usize) {
        let mut added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let count = added.count.saturating_add(frames.min(MAX_RESERVED));
        if count > self.slots().room() {
            self.grow(&mut added, count);
        }
    }

    /// Replaces the current array by one with room for `count` entries.
    fn grow(&self, added: &mut AddedTables, count: usize) {
        let mut larger = Box::new(Slots::with_room_for(count));
        for entry in self.slots().iter() {
            larger.insert(entry);
        }
        self.current.store(&raw mut *larger, Ordering::Release);
        added.arrays.push(larger);
    }

    fn publish(&self, added: &mut AddedTables, entries: &[Entry]) {
        let count = added.count + entries.len();
        if count > self.slots().room() {
            self.grow(added, count);
        }
        let current = self.slots();
        for &entry in entries {
            current.insert(entry);
        }
        added.count = count;
    }

    #[inline]
    fn slots(&self) -> &Slots {
        let current = self.current.load(Ordering::Acquire);
        // SAFETY: points into one of the boxes of `added`, which live as long as
        // `self` and are only changed through their atomics.
        unsafe { &*current }
    }

    /// How to get from a frame to its caller; 0 if no table has the address.
    /// Mutators, inside hooks.
    #[inline]
    pub(super) fn step(&self, return_address: u64) -> Step {
        self.find(return_address).map_or(0, |entry| entry.step)
    }

    /// The rule of a boundary's step that is not a neutral one. Mutators, inside
    /// hooks.
    #[inline]
    pub(super) fn rule(&self, step: Step) -> Option<&'static CrossingRule> {
        self.rules.get(step)
    }

    #[inline]
    fn find(&self, return_address: u64) -> Option<Entry> {
        self.slots().find(return_address).or_else(|| self.find_borrowed(return_address))
    }

    /// A frame of the runtime's index, which is entered if it is found for the
    /// first time.
    fn find_borrowed(&self, return_address: u64) -> Option<Entry> {
        let Borrowed { index, lazy_frames } = self.borrowed.get()?;
        lazy_frames.find(return_address).or_else(|| {
            let IndexedFrame { size, record } = index.find(return_address)?;
            let entry = Entry { return_address, step: size, record };
            lazy_frames.insert(entry);
            Some(entry)
        })
    }

    /// Changes whenever an address may have become known. Mutators.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// The host's record of a return address; `None` if no table has the address.
    /// The writer thread; waits while a table is being added.
    pub(crate) fn source(&self, return_address: u64) -> Option<FrameSource> {
        let Some(Entry { record, .. }) = self.slots().find(return_address) else {
            // Every frame of a sample was entered before.
            let Borrowed { index, lazy_frames } = self.borrowed.get()?;
            let record = lazy_frames.find_ever(return_address)?.record;
            let records: Arc<dyn FrameRecords> = index.clone();
            return Some(FrameSource { records, record });
        };
        let added = self.added.lock().unwrap_or_else(PoisonError::into_inner);
        let after = added.origins.partition_point(|origin| origin.first <= record);
        let origin = added.origins.get(after.checked_sub(1)?)?;
        if record > origin.last {
            return None;
        }
        Some(FrameSource { records: Arc::clone(&origin.records), record })
    }

    /// Keeps everyone from adding tables and from [`Self::source`], until what is
    /// returned is dropped. `None` if the lock is still held at the deadline.
    pub(crate) fn lock_until(&self, deadline: Instant) -> Option<TablesLock<'_>> {
        Some(TablesLock { _guard: lock_until(&self.added, deadline)? })
    }

    /// What the tables say about an address, for tests of formats: the distance to
    /// the caller's stack pointer, or the rule of a boundary.
    #[cfg(test)]
    pub(crate) fn caller(&self, return_address: u64) -> Option<super::formats::Caller> {
        use super::formats::Caller;
        match self.step(return_address) {
            0 => None,
            step if super::step::is_distance(step) => Some(Caller::Distance(step)),
            step => self.rule(step).map(Caller::Beyond),
        }
    }
}

/// A return address that is twice among the entries. By a table of its own, since
/// to sort them would take several times as long.
fn find_twice(entries: &[Entry]) -> Option<u64> {
    let length = (2 * entries.len()).next_power_of_two().max(2);
    let shift = 64 - length.trailing_zeros();
    // 0 is no return address.
    let mut seen = vec![0u64; length];
    for &Entry { return_address, .. } in entries {
        let mut at = (spread(return_address) >> shift) as usize;
        while let Some(&known) = seen.get(at)
            && known != 0
        {
            if known == return_address {
                return Some(return_address);
            }
            at = (at + 1) % length;
        }
        if let Some(free) = seen.get_mut(at) {
            *free = return_address;
        }
    }
    None
}

#[cfg(test)]
mod tests;
