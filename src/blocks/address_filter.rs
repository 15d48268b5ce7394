//! Which addresses certainly are no tracked block's.
//!
//! Nearly all frees are of blocks that were not sampled. A host finds that out by itself, in six
//! instructions: for each value of 16 bits of an address there is a count of tracked blocks, and
//! mostly it is 0. The header's `heaptap_sampled` reads the counts, so their layout is public:
//! [`BUCKETS`] numbers of 16 bits, indexed by bits 4 to 19.
//!
//! A count is raised before its block is in a table and lowered after it has left. The host that
//! frees a block has got it, by whatever way, from the thread that allocated it: so it sees the
//! count that is not 0.

use std::sync::atomic::{AtomicU16, Ordering};

use crate::sys::memory::MappedArray;

/// How many counts there are.
pub(crate) const BUCKETS: usize = 1 << 16;

/// The bits of an address below those that are looked at.
const SHIFT: u32 = 4;

/// A count that has reached this stays: blocks may be there for ever.
const FULL: u16 = u16::MAX;

/// The counts.
pub(crate) struct AddressFilter {
    counts: MappedArray<AtomicU16>,
}

/// The counts while nothing is tracked.
static NOTHING: [AtomicU16; BUCKETS] = [const { AtomicU16::new(0) }; BUCKETS];

impl AddressFilter {
    /// `None` without memory.
    pub(crate) fn new() -> Option<AddressFilter> {
        Some(AddressFilter { counts: MappedArray::new(BUCKETS)? })
    }

    /// For the host, which reads them. Valid as long as the filter.
    pub(crate) fn counts(&self) -> *const u16 {
        self.counts.as_ptr().cast()
    }

    /// Counts that are all 0 for ever.
    pub(crate) fn of_nothing() -> *const u16 {
        NOTHING.as_ptr().cast()
    }

    /// Whether a block at this address may be tracked.
    #[inline]
    pub(crate) fn may_have(&self, address: usize) -> bool {
        self.count(address).is_none_or(|count| count.load(Ordering::Relaxed) != 0)
    }

    /// A block at this address will be tracked.
    pub(super) fn add(&self, address: usize) {
        self.change(address, |count| count + 1);
    }

    /// A block at this address is not tracked any more.
    pub(super) fn remove(&self, address: usize) {
        self.change(address, |count| count.saturating_sub(1));
    }

    fn change(&self, address: usize, to: impl Fn(u16) -> u16) {
        if let Some(count) = self.count(address) {
            let change = |count| (count != FULL).then(|| to(count));
            // An error is a count that is full.
            let _ = count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, change);
        }
    }

    #[inline]
    fn count(&self, address: usize) -> Option<&AtomicU16> {
        self.counts.get(address >> SHIFT & (BUCKETS - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_counts_what_is_there() {
        let filter = AddressFilter::new().unwrap();
        let (one, other) = (0x7f00_1230, 0x5f00_1230);
        assert!(!filter.may_have(one));
        filter.add(one);
        filter.add(other);
        assert!(filter.may_have(one));
        assert!(!filter.may_have(one + 16));
        filter.remove(one);
        assert!(filter.may_have(one));
        filter.remove(other);
        assert!(!filter.may_have(one));
    }

    #[test]
    fn a_count_that_was_full_stays() {
        let filter = AddressFilter::new().unwrap();
        for _ in 0..BUCKETS + 10 {
            filter.add(0x1000);
        }
        for _ in 0..2 * BUCKETS {
            filter.remove(0x1000);
        }
        assert!(filter.may_have(0x1000));
    }
}
